"""Suppression of outliers: rows are withheld, up to a limit, where that lowers the total loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.table import Table
from shoal.kernels.shared.promises import T_EQUAL, Rules
from shoal.kernels.tables.local_pairs import Pairs
from shoal.kernels.tables.local_withhold import broken, outliers
from shoal.tables.improve import dense
from shoal.tables.local_start import unite

Labels = NDArray[np.int32]


def withhold(table: Table, pairs: Pairs, rules: Rules, labels: Labels, limit: int) -> Labels:
    """Labels with at most ``limit`` rows more set to -1, worst outliers first.

    A row counts as wholly lost once withheld, so only rows leave whose group gains more than that. Groups keep the
    promises throughout; t-closeness is judged against the released rows alone, so where their distribution has moved
    groups unite until it holds again.
    """
    labels = labels.copy()
    left = limit
    while left > 0:
        order, begin = members(labels)
        gain, row = outliers(table.matrix, order, begin, pairs, rules, float(table.weights.sum()))
        best = np.argsort(-gain, kind="stable")[:left]
        best = best[gain[best] > 0]
        if not len(best):
            break
        labels[row[best]] = -1
        left -= len(best)
    labels = dense(labels)
    if left < limit and (rules.kind >= T_EQUAL).any():
        labels = repair(table, pairs, released(rules, labels), labels)
    return labels


def repair(table: Table, pairs: Pairs, rules: Rules, labels: Labels) -> Labels:
    """Unite groups that break a promise with their neighbours until none does."""
    while (at := int(broken(*members(labels), rules))) >= 0:
        if labels.max() == 0:
            break
        labels = unite(table.matrix, pairs, rules, labels, at)
    return labels


def released(rules: Rules, labels: Labels) -> Rules:
    """The rules with the released rows' own distribution of every sensitive column."""
    overall = np.zeros_like(rules.overall)
    kept = np.flatnonzero(labels >= 0)
    for s in range(len(rules.kind)):
        rows, crowd = kept, len(kept)
        if rules.people:  # a person who has a value twice has it once
            rows = kept[np.unique(rules.pair[s, kept], return_index=True)[1]]
            crowd = len(np.unique(rules.person[kept]))
        counted = np.bincount(rules.value[s, rows], minlength=overall.shape[1])
        overall[s] = counted / max(1, crowd)
    return rules._replace(overall=overall)


def members(labels: Labels) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The released rows, group after group, and where each group begins (one more entry than groups)."""
    order = np.argsort(labels, kind="stable").astype(np.int32)
    size = np.bincount(labels[labels >= 0], minlength=int(labels.max(initial=-1)) + 1)
    return order[len(labels) - int(size.sum()) :], np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
