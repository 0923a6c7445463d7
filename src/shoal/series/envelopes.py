"""Groups of k under one envelope, made of P-subgroups (last phase of KAPRA), and the exchange of records after it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from shoal.series.method import SeriesGrouping
from shoal.series.pattern import Floats, Ids

LOOK = 1000  # free boxes on either side that a group chooses the next one from
MANY = 50_000  # records from which one pass of exchange is enough: later ones gain a third of a percent of value loss
BAND = (
    100_000  # records of near groups that exchange by themselves, where there are many: in threads, and in less memory
)
REACH = 4  # cells of the same word looked at on either side


def unite(values: Floats, part: NDArray[np.int64], k: int) -> NDArray[np.int32]:
    """The group of every record, made of whole parts (-1: none)."""
    from shoal.kernels.series.envelopes import form_groups, hulls

    parts = int(part.max(initial=-1)) + 1
    if not parts:
        return np.full(len(part), -1, np.int32)
    low, high = hulls(values, values, part, parts)
    size = np.bincount(part[part >= 0], minlength=parts)
    # boxes of like height stand together in memory
    order = np.argsort(low.mean(axis=1), kind="stable")
    group = np.empty(parts, np.int64)
    group[order], _ = form_groups(low[order], high[order], size[order], k, LOOK)
    return np.where(part >= 0, group[part], -1).astype(np.int32)


def exchange(
    values: Floats,
    grouping: SeriesGrouping,
    k: int,
    p: int,
    passes: int,
    marks: NDArray[np.int64] | None = None,
) -> SeriesGrouping:
    """Records change places with, or move to, records of the same word in near groups while value loss falls.

    With ``marks`` only records of one mark change places, and nobody moves: every subgroup keeps its marks. From
    50,000 records on, bands of near groups exchange by themselves, as many at once as there are cores; where a band
    ends depends on the groups alone, so the outcome is the same on every machine.
    """
    if len(values) < MANY:
        return _exchange(values, grouping, k, p, passes, marks)
    group = grouping.group.copy()

    def work(rows: NDArray[np.int64]) -> None:
        first, own = np.unique(group[rows], return_inverse=True)
        part = SeriesGrouping(own.astype(np.int32), grouping.word[rows])
        # one pass each: see MANY
        found = _exchange(values[rows], part, k, p, 1, None if marks is None else marks[rows])
        group[rows] = first[found.group]

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        # a second time with other bands: whoever stood at an edge then stands in the midst of one
        for shift in (0, BAND // 2)[: passes if len(values) > BAND else min(passes, 1)]:
            list(pool.map(work, _bands(values, group, shift)))
    return SeriesGrouping(group, grouping.word)


def _bands(values: Floats, group: NDArray[np.int32], shift: int) -> list[NDArray[np.int64]]:
    """The records of each band: whole groups, whose means follow each other; ``shift`` moves the edges."""
    rank = _rank(values, group)
    kept = np.flatnonzero(group >= 0)
    size = np.bincount(rank[group[kept]])
    band = (np.cumsum(size) - size + shift) // BAND
    order = kept[np.argsort(band[rank[group[kept]]], kind="stable")]
    edges = np.flatnonzero(np.diff(band[rank[group[order]]])) + 1
    return np.split(order, edges) if len(order) else []


def _rank(values: Floats, group: NDArray[np.int32]) -> NDArray[np.int64]:
    """The place of every group in the order of their means."""
    kept = np.flatnonzero(group >= 0)
    total = np.bincount(group[kept], weights=values.sum(axis=1)[kept])
    mean = total / np.maximum(np.bincount(group[kept]), 1)
    rank = np.empty(len(mean), np.int64)
    rank[np.argsort(mean, kind="stable")] = np.arange(len(mean))
    return rank


def _exchange(
    values: Floats, grouping: SeriesGrouping, k: int, p: int, passes: int, marks: NDArray[np.int64] | None
) -> SeriesGrouping:
    from shoal.kernels.series.exchange import exchange as pass_once

    # records of near cells stand together in memory: with a million of them that is most of the time
    cell, _, _ = cells_by_word(values, grouping)
    order = np.argsort(cell, kind="stable")
    values = values[order]
    group, word = grouping.group[order], grouping.word[order]
    free = marks is None
    mark = np.zeros(len(group), np.int64) if marks is None else marks[order]
    for _ in range(passes):
        cell, cell_group, near = cells_by_word(values, SeriesGrouping(group, word))
        if not len(cell_group) or not pass_once(values, cell, cell_group, near, group, k, p, mark, free):
            break
    out = np.empty_like(group)
    out[order] = group
    return SeriesGrouping(out, grouping.word)


def cells_by_word(
    values: Floats, grouping: SeriesGrouping
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cells numbered by word and then by their group's mean, so that near cells of a word have near numbers."""
    kept = grouping.group >= 0
    group, word = grouping.group[kept], grouping.word[kept]
    mean = np.bincount(group, weights=values[kept].sum(axis=1)) / np.maximum(np.bincount(group), 1)
    by_mean = np.argsort(mean, kind="stable")
    rank = np.empty(len(mean), np.int64)
    rank[by_mean] = np.arange(len(mean))
    pair, which = np.unique(word.astype(np.int64) * len(mean) + rank[group], return_inverse=True)
    cell = np.full(len(kept), -1, np.int64)
    cell[kept] = which
    near = _near(pair // max(1, len(mean)))
    return cell, by_mean[pair % max(1, len(mean))], near


def _near(word: NDArray[np.int64]) -> NDArray[np.int64]:
    """For every cell the cells of the same word, nearest numbers first, -1 after the last."""
    cells = len(word)
    near = np.full((cells, 2 * REACH), -1, np.int64)
    filled = np.zeros(cells, np.int64)
    for step in range(1, REACH + 1):
        for sign in (1, -1):
            other = np.arange(cells) + sign * step
            inside = np.flatnonzero((other >= 0) & (other < cells))
            same = inside[word[other[inside]] == word[inside]]
            near[same, filled[same]] = other[same]
            filled[same] += 1
    return near


def number_by_height(values: Floats, group: NDArray[np.int32], word: Ids) -> SeriesGrouping:
    """Groups numbered from 0 by the mean of their records: a number must not tell the order of the input.

    >>> values = np.array([[9.0, 8.0], [1.0, 2.0]])
    >>> number_by_height(values, np.array([0, 1], np.int32), np.array([5, 6], np.int32)).group.tolist()
    [1, 0]
    """
    kept = group >= 0
    if not kept.any():
        return SeriesGrouping(group.astype(np.int32), np.where(kept, word, -1).astype(np.int32))
    _, dense = np.unique(group[kept], return_inverse=True)
    mean = np.bincount(dense, weights=values[kept].sum(axis=1)) / np.bincount(dense)
    rank = np.empty(len(mean), np.int32)
    rank[np.argsort(mean, kind="stable")] = np.arange(len(mean), dtype=np.int32)
    out = np.full(len(group), -1, np.int32)
    out[kept] = rank[dense]
    return SeriesGrouping(out, np.where(kept, word, -1).astype(np.int32))
