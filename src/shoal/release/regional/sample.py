"""Rows that show where to cut a table into regions: of each combination of values in proportion to its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.levels import Codes
from shoal.release.regional.plan import SAMPLE
from shoal.tables.improve import GOLDEN, mixed

BUCKETS = 1 << 21  # of combinations, whose rows are counted together
HELD = 1 << 19  # combinations that are kept before equal ones are brought together
Marks = NDArray[np.uint64]
Counts = NDArray[np.int64]


class Sampler:
    """Rows that show where to cut, chosen by what they say: the same rows in another order give the same cuts.

    All rows are looked at twice: :meth:`count`, then :meth:`take`. The first look counts them in buckets of
    combinations, so that the second keeps in memory what can be in the sample, and little else.

    >>> sampler = Sampler(rows=3)
    >>> rows = np.array([[0], [2], [0]], np.int32)
    >>> sampler.count(rows)
    >>> sampler.take(rows)
    >>> sampler.sample().tolist()
    [[0], [0], [2]]
    """

    def __init__(self, rows: int) -> None:
        self._rows = max(1, rows)
        self._wanted = min(SAMPLE, self._rows)
        self._often = np.zeros(BUCKETS, np.int64)
        self._found: list[tuple[Marks, Counts, Codes]] = []

    def count(self, matrix: Codes) -> None:
        """The first look at some rows."""
        self._often += np.bincount(_buckets_of(_marks(matrix)), minlength=BUCKETS)

    def take(self, matrix: Codes) -> None:
        """The second look at some rows."""
        marks = _marks(matrix)
        often = self._often[_buckets_of(marks)]  # of a combination there are no more rows than in its bucket
        maybe = np.flatnonzero(self._in_sample(marks, often) > 0)
        self._found.append(_together(marks[maybe], np.ones(len(maybe), np.int64), matrix[maybe]))
        first, *others = [len(found) for found, *_ in self._found]
        if sum(others) > max(HELD, first):
            self._found = [self._all()]

    def sample(self) -> Codes:
        """The rows taken, sorted."""
        if not self._found:
            return np.zeros((0, 0), np.int32)
        marks, counts, codes = self._all()
        rows = np.repeat(codes, self._in_sample(marks, counts), axis=0)
        return np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])])

    def _in_sample(self, marks: Marks, counts: Counts) -> Counts:
        """How many of so many equal rows are in the sample: their share, rounded up for some combinations."""
        asked = counts * self._wanted
        rest = (asked % self._rows) / self._rows
        return asked // self._rows + (marks * 2.0**-64 < rest)

    def _all(self) -> tuple[Marks, Counts, Codes]:
        marks, counts, codes = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
        return _together(marks, counts, codes)


def _marks(matrix: Codes) -> Marks:
    """A number for each combination of values, well mixed."""
    marks = np.zeros(len(matrix), np.uint64)
    for column in matrix.T:
        marks = mixed(marks * GOLDEN + (column.astype(np.int64) + 2).astype(np.uint64))
    return marks


def _buckets_of(marks: Marks) -> NDArray[np.int64]:
    return (marks % np.uint64(BUCKETS)).astype(np.int64)


def _together(marks: Marks, counts: Counts, codes: Codes) -> tuple[Marks, Counts, Codes]:
    """Equal combinations as one, with their counts added up."""
    marks, first, which = np.unique(marks, return_index=True, return_inverse=True)
    return marks, np.bincount(which, counts, len(marks)).astype(np.int64), codes[first]
