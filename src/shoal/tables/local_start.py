"""Phase 1 of `local`: tuples of the lattice opened by a rising price, and a place for every row that found none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.shared.boxes import group_boxes
from shoal.kernels.shared.promises import Rules, holds, workspace
from shoal.kernels.tables.local_groups import make_groups
from shoal.kernels.tables.local_hooks import grows, only_counts_rows
from shoal.kernels.tables.local_pairs import Pairs
from shoal.kernels.tables.local_rest import absorb, grow_region, union_costs
from shoal.kernels.tables.mondrian import mondrian
from shoal.tables.base import Progress, silent
from shoal.tables.improve import dense, draws, make_index
from shoal.tables.local_prices import WHOLE, lattice_size, open_tuples

Codes = NDArray[np.int32]
Labels = NDArray[np.int32]
Rows = NDArray[np.int64]
REGION = 2048  # rows among which groups are grown
SAMPLE = 8192  # rows that show which level vectors are useful
BATCH = 256  # rows taken in between two looks at the groups


def start(matrix: Codes, pairs: Pairs, rules: Rules, seed: int = 0, progress: Progress = silent) -> Labels:
    """A label for every row; every group keeps the promises, if all rows as one group do."""
    samples = None
    if lattice_size(pairs) > WHOLE:
        samples = _sample(matrix, pairs, rules, seed)
    labels = open_tuples(matrix, pairs, rules, progress, samples)
    rest = np.flatnonzero(labels < 0)
    if len(rest) >= rules.k:
        more = _grow(matrix, rest, pairs, rules, seed)
        labels[rest] = np.where(more >= 0, more + labels.max() + 1, -1)
    labels = assign_rest(matrix, pairs, rules, labels)
    if samples is not None:  # in many columns few rows have near neighbours, and cutting may do better than growing
        cut: Labels = mondrian(matrix, pairs.shape, rules, True, 8)[0]
        labels = min(labels, cut, key=lambda found: _loss(matrix, pairs, found))
    return labels


def _loss(matrix: Codes, pairs: Pairs, labels: Labels) -> float:
    groups = make_groups(matrix, pairs, labels.copy(), int(labels.max()) + 1)
    return float((groups.size * groups.cost).sum())


def assign_rest(matrix: Codes, pairs: Pairs, rules: Rules, labels: Labels) -> Labels:
    """Rows labelled -1 join a group that keeps the promises with them; if none does, groups unite until one does."""
    rest = np.flatnonzero(labels < 0)
    if len(rest) and labels.max() >= 0:
        groups = make_groups(matrix, pairs, dense(labels), int(labels.max()) + 1)
        ids = np.arange(len(matrix), dtype=np.int32)
        for at in range(0, len(rest), BATCH):
            index = make_index(pairs, groups)
            absorb(matrix, ids, rest[at : at + BATCH], groups, index, pairs, rules, bool(grows(rules)))
        labels = groups.label
    if (labels < 0).any():
        labels = dense(labels)
        labels[labels < 0] = labels.max() + 1
        labels = unite(matrix, pairs, rules, labels, int(labels.max()))
    return dense(labels)


def unite(matrix: Codes, pairs: Pairs, rules: Rules, labels: Labels, group: int) -> Labels:
    """Unite ``group`` with the groups near it, one, two, four … at a time, until the union keeps the promises."""
    low, high = group_boxes(matrix, labels, int(labels.max()) + 1)
    order = np.argsort(union_costs(pairs, low, high, group), kind="stable")
    order = np.concatenate([[group], order[order != group]])
    work = workspace(rules)
    count = 1
    while True:
        joined = np.zeros(len(low), np.bool_)
        joined[order[:count]] = True
        rows = np.flatnonzero(joined[labels] & (labels >= 0)).astype(np.int32)
        if count >= len(order) or holds(rules, rows, 0, len(rows), work):
            labels = labels.copy()
            labels[rows] = group
            return dense(labels)
        count *= 2


def regions(matrix: Codes, pairs: Pairs, most: int) -> Labels:
    """A label per row: parts of about ``most`` rows that lie near each other."""
    rules = Rules(
        max(1, most // 2),
        np.zeros(0, np.int32),
        0,
        np.zeros((0, len(matrix)), np.int32),
        np.zeros((0, 0), np.int32),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros(0),
        np.zeros(0),
        np.zeros(0, np.int64),
        np.zeros((0, 1)),
        np.zeros((0, 1, 1), np.int32),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
    )
    labels: Labels = mondrian(matrix, pairs.shape, rules, False, 1)[0]
    return labels


def _grow(matrix: Codes, rest: Rows, pairs: Pairs, rules: Rules, seed: int) -> Labels:
    """Groups grown among the rows ``rest``, region by region; -1 for rows left over."""
    codes = np.ascontiguousarray(matrix[rest])
    region = regions(codes, pairs, max(REGION, 8 * rules.k)) if len(rest) > REGION else np.zeros(len(rest), np.int32)
    out = np.full(len(rest), -1, np.int32)
    plain = bool(only_counts_rows(rules))
    made = 0
    order = np.argsort(region, kind="stable")
    for number, rows in enumerate(np.split(order, np.cumsum(np.bincount(region))[:-1])):
        found = np.empty(len(rows), np.int32)
        state = draws(seed, number, 1)
        made += grow_region(
            np.ascontiguousarray(codes[rows]), rest[rows].astype(np.int32), pairs, rules, plain, found, made, state
        )
        out[rows] = found
    return out


def _sample(matrix: Codes, pairs: Pairs, rules: Rules, seed: int) -> Codes:
    """Boxes of groups grown among some rows, with fewer members in proportion."""
    n = len(matrix)
    rows = np.arange(n)
    if n > SAMPLE:
        rows = np.sort(np.argsort(draws(seed, 7, n), kind="stable")[:SAMPLE])
    few = rules._replace(
        k=max(2, -(-rules.k * len(rows) // n)), people=0, person=np.zeros(0, np.int32), kind=rules.kind[:0]
    )
    labels = _grow(matrix, rows, pairs, few, seed)
    low, high = group_boxes(np.ascontiguousarray(matrix[rows]), labels, int(labels.max(initial=-1)) + 1)
    return np.stack([low, high], 1)
