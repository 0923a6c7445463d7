"""Representatives: the mean curve of each P-subgroup, with its size and spread; published only if one asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.series.pattern import Floats

FEWEST = 3  # curves: the mean of two is known to both, that of one is that one


@dataclass(frozen=True)
class Representatives:
    """Per subgroup its mean curve, the standard deviation at each instant, and how many curves it is of.

    Protects as the subgroup does: P curves share one mean, and with l their sensitive values differ. Does not protect
    against someone who knows all other curves of a subgroup: the mean tells them the last one. So subgroups of fewer
    than three have none.
    """

    mean: Floats  # [subgroup, instant]
    spread: Floats
    size: NDArray[np.int64]
    which: NDArray[np.int64]  # the subgroup of each published record

    def frame(self, instants: Sequence[Any], about: pl.DataFrame) -> pl.DataFrame:
        """A row per subgroup: what its records have in common (``about``, a row per record), size, means, spreads."""
        first = np.full(len(self.size), -1, np.int64)
        first[self.which[::-1]] = np.arange(len(self.which))[::-1]
        names = [str(i) for i in instants]
        return pl.DataFrame(
            [
                *about[first].get_columns(),
                pl.Series("size", self.size),
                *[pl.Series(f"{name}_mean", self.mean[:, at]) for at, name in enumerate(names)],
                *[pl.Series(f"{name}_spread", self.spread[:, at]) for at, name in enumerate(names)],
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
    for at in range(values.shape[1]):
        column = values[:, at]
        mean[:, at] = np.bincount(which, weights=column) / size
        spread[:, at] = np.sqrt(np.bincount(which, weights=(column - mean[which, at]) ** 2) / size)
    return Representatives(mean, spread, size, which)
