"""l-diversity inside P-subgroups: no sensitive value in more than size / l of records that cannot be told apart.

Keeping this frequency form also keeps the distinct and the entropy form with the same l.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import PromiseError
from shoal.measures.series import pattern_loss
from shoal.series.envelopes import number_by_height
from shoal.series.method import SeriesGrouping
from shoal.series.pattern import Encoded, Floats

Rows = NDArray[np.int64]


def diverse(codes: Sequence[NDArray[np.int64]], rows: Rows, l: float) -> bool:
    """Whether no value of any sensitive column is in more than ``size / l`` of the rows."""
    return all(int(np.unique(column[rows], return_counts=True)[1].max(initial=0)) * l <= len(rows) for column in codes)


def diversify(
    values: Floats,
    encoded: Encoded,
    grouping: SeriesGrouping,
    sensitive: Sequence[NDArray[np.int64]],
    l: float,
    k: int,
    p: int,
) -> SeriesGrouping:
    """Merge P-subgroups at a coarser level, or suppress the records in excess, whichever loses less pattern.

    A group that cannot be made diverse joins its nearest group. ``sensitive`` are codes per column. Every merge
    keeps k and P; a published word of a merged subgroup is its records' own.
    """
    work = _Work(values, encoded, grouping, sensitive, l, k, p)
    stuck = [g for g in sorted(work.groups) if not work.settle(g)]
    while stuck:
        group = stuck.pop(0)
        if group not in work.groups:
            continue
        other = work.nearest(group)
        if other is None:
            raise PromiseError(
                f"{l:g}-diversity cannot be reached: even all {len(work.rows(group)):,} published series together "
                f"have a value in more than 1/{l:g} of them",
                where="l-diversity",
                hint="lower l, or coarsen the sensitive column",
            )
        work.join(group, other)
        if not work.settle(other):
            stuck.append(other)
    return work.result()


class _Work:
    """Cells of every group while they change: ``groups[g][word]`` are rows."""

    def __init__(
        self,
        values: Floats,
        encoded: Encoded,
        grouping: SeriesGrouping,
        sensitive: Sequence[NDArray[np.int64]],
        l: float,
        k: int,
        p: int,
    ) -> None:
        self.values, self.encoded, self.sensitive, self.l, self.k, self.p = values, encoded, sensitive, l, k, p
        self.losses = encoded.losses()
        self.loss = np.ones(len(values))
        kept = np.flatnonzero(grouping.group >= 0)
        words, which = np.unique(grouping.word[kept], return_inverse=True)
        self.loss[kept] = pattern_loss(encoded.features[kept], encoded.shapes(words), which)
        self.groups: dict[int, dict[int, Rows]] = {}
        order = kept[np.lexsort((kept, grouping.word[kept], grouping.group[kept]))]
        cells = grouping.cells()[order]
        for rows in np.split(order, np.flatnonzero(np.diff(cells)) + 1):
            if len(rows):
                self.groups.setdefault(int(grouping.group[rows[0]]), {})[int(grouping.word[rows[0]])] = rows

    def rows(self, g: int) -> Rows:
        return np.concatenate(list(self.groups[g].values()))

    def settle(self, g: int) -> bool:
        """Make every cell of a group diverse; False if that is impossible inside the group."""
        cells = self.groups[g]
        while True:
            bad = [w for w in cells if not diverse(self.sensitive, cells[w], self.l)]
            if not bad:
                return True
            word = min(bad, key=lambda w: (len(cells[w]), w))
            drop_cost, keep = self._trim(g, word)
            merge_cost, partner = self._partner(cells, word)
            if drop_cost == merge_cost == np.inf:
                return len(cells) > 1 and self._merge_all(g)
            if drop_cost < merge_cost:
                cells[word] = keep
                if not len(keep):
                    del cells[word]
            else:
                self._merge(cells, [word, partner])

    def _trim(self, g: int, word: int) -> tuple[float, Rows]:
        """What it costs to suppress the records in excess, and which stay (all go if fewer than P would)."""
        rows = self.groups[g][word]
        order = rows[np.lexsort((rows, self.loss[rows]))]  # whoever loses most goes first
        keep = order
        before = -1
        while before != len(keep):
            before = len(keep)
            for column in self.sensitive:
                keep = keep[_within_cap(column[keep], self.l)]
        if len(keep) < self.p:
            keep = keep[:0]
        gone = len(rows) - len(keep)
        if sum(len(r) for r in self.groups[g].values()) - gone < self.k:
            return np.inf, keep
        return float(gone - self.loss[rows].sum() + self.loss[keep].sum()), np.sort(keep)

    def _partner(self, cells: dict[int, Rows], word: int) -> tuple[float, int]:
        """The cell with which the union is diverse and loses least pattern."""
        best, partner = np.inf, -1
        for other in sorted(cells):
            if other == word:
                continue
            both = np.concatenate([cells[word], cells[other]])
            if diverse(self.sensitive, both, self.l):
                cost = float(self.losses[self._common(both), both].sum() - self.loss[both].sum())
                if cost < best:
                    best, partner = cost, other
        return best, partner

    def _common(self, rows: Rows) -> int:
        """The finest level at which all rows have one word."""
        codes = self.encoded.codes[:, rows]
        return int(np.flatnonzero((codes == codes[:, :1]).all(axis=1))[-1])

    def _merge(self, cells: dict[int, Rows], words: Sequence[int]) -> None:
        rows = np.sort(np.concatenate([cells.pop(w) for w in words]))
        level = self._common(rows)
        word = int(self.encoded.codes[level, rows[0]])
        if word in cells:  # a third cell publishes this word already
            rows = np.sort(np.concatenate([rows, cells[word]]))
        cells[word] = rows
        self.loss[rows] = self.losses[level, rows]

    def _merge_all(self, g: int) -> bool:
        cells = self.groups[g]
        self._merge(cells, list(cells))
        return self.settle(g)

    def nearest(self, g: int) -> int | None:
        """The group whose envelope together with this one's is narrowest."""
        mine = self.values[self.rows(g)]
        low, high = mine.min(axis=0), mine.max(axis=0)
        best, found = np.inf, None
        for other in sorted(self.groups):
            if other == g:
                continue
            theirs = self.values[self.rows(other)]
            width = np.maximum(high, theirs.max(axis=0)) - np.minimum(low, theirs.min(axis=0))
            if float((width**2).sum()) < best:
                best, found = float((width**2).sum()), other
        return found

    def join(self, g: int, other: int) -> None:
        for word, rows in self.groups.pop(g).items():
            mine = self.groups[other].get(word)
            self.groups[other][word] = rows if mine is None else np.sort(np.concatenate([mine, rows]))

    def result(self) -> SeriesGrouping:
        group = np.full(len(self.values), -1, np.int32)
        word = np.full(len(self.values), -1, np.int32)
        for g, cells in self.groups.items():
            for w, rows in cells.items():
                group[rows], word[rows] = g, w
        return number_by_height(self.values, group, word)


def _within_cap(column: NDArray[np.int64], l: float) -> NDArray[np.bool_]:
    """Which rows stay if each value may occur in at most 1/l of what stays: the first ones of each value."""
    if not len(column):
        return np.zeros(0, np.bool_)
    _, which, count = np.unique(column, return_inverse=True, return_counts=True)
    cap = int(count.max())
    while cap and cap * l > np.minimum(count, cap).sum():
        cap -= 1
    order = np.argsort(which, kind="stable")
    rank = np.empty(len(column), np.int64)
    rank[order] = np.arange(len(column)) - (np.cumsum(count) - count)[which[order]]
    out: NDArray[np.bool_] = rank < cap
    return out
