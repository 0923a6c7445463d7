"""The seam of all series methods: curves and their words in; a group and a published word per record out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import PromiseError, UsageError
from shoal.core.spec import Spec
from shoal.series.pattern import Encoded, Floats, Ids

Progress = Callable[[float, str], None]  # share done (0 to 1), a word on the state


def silent(share: float, word: str) -> None:
    """No progress.

    >>> silent(0.5, "grouping")
    """


@dataclass(frozen=True)
class SeriesGrouping:
    """The k-group of every record (dense from 0; -1: suppressed) and the word it publishes (-1: none).

    >>> SeriesGrouping(np.array([0, 0, -1], np.int32), np.array([3, 3, -1], np.int32)).group.tolist()
    [0, 0, -1]
    """

    group: NDArray[np.int32]
    word: Ids

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def suppressed(self) -> int:
        """Number of records that are not published."""
        return int((self.group < 0).sum())

    def cells(self) -> NDArray[np.int64]:
        """What an observer can tell apart: records with one envelope and one pattern share a number; -1 suppressed."""
        out = np.full(len(self.group), -1, np.int64)
        kept = self.group >= 0
        # both fit in 32 bits, so that one number stands for the two
        pair = self.group[kept].astype(np.int64) << 32 | self.word[kept]
        out[kept] = np.unique(pair, return_inverse=True)[1]
        return out


class SeriesMethod(Spec, frozen=True):
    """How curves are grouped: k of them under one envelope, and inside, P with one pattern.

    >>> from shoal.series.kapra import Kapra
    >>> isinstance(Kapra(), SeriesMethod)
    True
    """

    def group(
        self, values: Floats, encoded: Encoded, k: int, p: int, *, seed: int = 0, progress: Progress = silent
    ) -> SeriesGrouping:
        """Group the rows of ``values``; fewer than ``p`` are suppressed."""
        raise NotImplementedError

    def bands(self, values: Floats, k: int, seed: int) -> list[NDArray[np.int64]]:
        """Records that may share a group when sensitive values decide who goes with whom, low ones first: all."""
        return [np.argsort(values.sum(axis=1), kind="stable")]


def check_sizes(records: int, k: int, p: int) -> None:
    """Refuse what no method can do.

    >>> check_sizes(3, 2, 2)
    >>> check_sizes(3, 2, 4)
    Traceback (most recent call last):
    ...
    shoal.core.errors.UsageError: kP-anonymity: k must be at least p, found k=2 and p=4
    ...
    """
    if p < 1 or k < 1:
        raise UsageError(f"k and p must be at least 1, found k={k} and p={p}", where="kP-anonymity")
    if k < p:
        raise UsageError(
            f"k must be at least p, found k={k} and p={p}",
            where="kP-anonymity",
            hint="p curves share a pattern inside a group of k: choose p ≤ k",
        )
    if records < k:
        raise PromiseError(
            f"k={k} cannot be reached: there are {records} series",
            where="kP-anonymity",
            hint=f"use k ≤ {records}, or add series" if records else "the input has no series",
        )
