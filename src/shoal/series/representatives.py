"""Representatives: the mean curve of each P-subgroup, with its size and spread; published only if one asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.series.pattern import Floats

FEWEST = 3  # curves: the mean of two is known to both, that of one is that one
SPREAD_FROM = 5  # curves: mean, spread and both ends of an envelope are four equations, four unknowns would be solved
INERTIA = 0.98  # the most that neighbours in time are taken to agree: the rest is the noise of each instant
SIZE, TOGETHER = "size", "together"


@dataclass(frozen=True)
class Representatives:
    """Per subgroup its mean curve, the standard deviation at each instant, and how many curves it is of.

    ``together`` says how much neighbours in time agree on who is above the mean: 0 not at all, 1 wholly.

    Protects as the subgroup does: P curves share one mean, and with l their sensitive values differ. Does not protect
    as the whole group does: someone who knows values of a curve finds its subgroup of P, not its group of k
    (:func:`shoal.series.narrowing.narrow` measures how often). Nor against someone who knows all other curves of a
    subgroup: the mean tells them the last one. So subgroups of fewer than three have none, and of fewer than five no
    spread.
    """

    mean: Floats  # [subgroup, instant]
    spread: Floats  # NaN: not told
    together: Floats
    size: NDArray[np.int64]
    which: NDArray[np.int64]  # the subgroup of each published record

    def first(self) -> NDArray[np.int64]:
        """The first published record of each subgroup."""
        first = np.full(len(self.size), -1, np.int64)
        first[self.which[::-1]] = np.arange(len(self.which))[::-1]
        return first

    @cached_property
    def faithful(self) -> Floats:
        """What is left of a correlation with the mean when it is taken with a curve of the subgroup instead, 0 to 1.

        Curves of one shape and several heights deviate from their mean together, so only the deviations that
        neighbours in time do not share count as noise, and noise divides a correlation. Where no spread is told it is
        as elsewhere, on the average.

        >>> represent(np.array([[0.0, 1, 2]] * 5), np.zeros(5, np.int64)).faithful.tolist()
        [1.0]
        """
        shape = self.mean.var(axis=1)
        noise = (1 - self.together) * (self.spread**2).mean(axis=1)
        told = ~np.isnan(noise)
        left = np.full(len(shape), np.nan)
        left[told] = np.sqrt(np.divide(shape, shape + noise, out=np.ones_like(shape), where=shape + noise > 0)[told])
        left[~told] = left[told].mean() if told.any() else 1.0
        return left

    def frame(self, instants: Sequence[Any], about: pl.DataFrame) -> pl.DataFrame:
        """A row per subgroup: what its records have in common (``about``, a row per record), size, means, spreads."""
        names = [str(i) for i in instants]
        spread = pl.DataFrame([pl.Series(f"{name}_spread", self.spread[:, at]) for at, name in enumerate(names)])
        return pl.DataFrame(
            [
                *about[self.first()].get_columns(),
                pl.Series(SIZE, self.size),
                pl.Series(TOGETHER, np.round(self.together, 3)),
                *[pl.Series(f"{name}_mean", self.mean[:, at]) for at, name in enumerate(names)],
                *spread.fill_nan(None).get_columns(),
            ]
        )


def represent(values: Floats, cells: NDArray[np.int64]) -> Representatives:
    """The representatives of published curves, a row of ``values`` each, whose subgroups are ``cells``.

    >>> represent(np.array([[1.0, 2], [3, 4], [5, 6]]), np.zeros(3, np.int64)).mean.tolist()
    [[3.0, 4.0]]
    """
    which = np.unique(cells, return_inverse=True)[1].astype(np.int64)
    size = np.bincount(which)
    if size.min(initial=FEWEST) < FEWEST:
        raise UsageError(
            f"a mean needs at least {FEWEST} curves, found a subgroup of {int(size.min())}",
            where="representatives",
            hint=f"release with p={FEWEST} or more",
        )
    mean, spread = np.empty((2, len(size), values.shape[1]))
    agree, pairs = np.zeros((2, len(size)))
    before = np.zeros(len(values))
    for at in range(values.shape[1]):
        column = values[:, at]
        mean[:, at] = np.bincount(which, weights=column) / size
        off = column - mean[which, at]
        spread[:, at] = np.sqrt(np.bincount(which, weights=off**2) / size)
        # at an instant where all are equal nobody is above the mean
        moves = spread[which, at] > 0
        now = np.divide(off, spread[which, at], out=np.zeros(len(off)), where=moves)
        if at:
            agree += np.bincount(which, weights=now * before) / size
            pairs += (spread[:, at] > 0) & (spread[:, at - 1] > 0)
        before = now
    together = np.clip(agree / np.maximum(pairs, 1), 0.0, 1.0)
    few = size < SPREAD_FROM
    spread[few], together[few] = np.nan, 0.0
    return Representatives(mean, spread, together, size, which)
