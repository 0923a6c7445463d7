"""l-diversity by changing sensitive values, as in Minutoli et al. 2021: it falsifies data, so it must be asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import PromiseError, UsageError
from shoal.core.spec import Spec

TRIES = 64  # draws in one range before it is widened


class Perturb(Spec, frozen=True, tag="perturb"):
    """Numbers that occur too often in a P-subgroup are replaced by near ones that do not occur in it yet.

    Protects against learning a value that a P-subgroup shares. Does not protect the truth: the altered records are
    counted, but nobody can tell which they are. How it works: of a value in more than size / l records, the excess
    (chosen by the seed) takes values from within ``step`` of it; if none is free there, the range widens by
    ``step`` up to ``most``, never beyond the column's least and greatest value. Without them: a step of 1 for whole
    numbers, else a hundredth of the standard deviation, and at most a quarter of the column's range.

    Cost: O(records).

    >>> import numpy as np, polars as pl
    >>> column, altered = Perturb().apply(pl.Series("pay", [5, 5, 5, 9]), np.zeros(4, np.int64), l=2, seed=0)
    >>> altered, int((column == 5).sum())
    (1, 2)

    Reference: Minutoli et al. 2021, section l-diversity; Shou et al. (TKDE 25(4), 2013), section 6.
    """

    step: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        if self.step is not None and not 0 < self.step < np.inf:
            raise UsageError("`step` must be positive and finite", where="perturb")
        if self.most is not None and not 0 < self.most < np.inf:
            raise UsageError("`most` must be positive and finite", where="perturb")

    def apply(self, column: pl.Series, cells: NDArray[np.int64], l: float, seed: int) -> tuple[pl.Series, int]:
        """The column with values changed until every cell (-1: not published) is diverse, and how many changed."""
        if not column.dtype.is_numeric() or column.null_count():
            raise UsageError(
                f"expected numbers without gaps, found {column.dtype} with {column.null_count():,} missing",
                where=f"column {column.name!r}",
                hint="use the default: merge or suppress",
            )
        whole = column.dtype.is_integer()
        values = column.to_numpy().astype(np.float64)
        step = self.step or (1.0 if whole else float(values.std()) / 100 or 1.0)
        most = self.most or max(step, float(np.ptp(values)) / 4)
        # a stream of random numbers of its own: the method draws from the same seed
        draw = _Draw(step, most, whole, values.min(), values.max(), np.random.default_rng([seed, 0x1D]), column.name)
        # records that are not published need no change
        order = np.argsort(cells, kind="stable")[int((cells < 0).sum()) :]
        altered = 0
        for rows in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1) if len(order) else []:
            altered += _spread(values, rows, l, draw)
        return pl.Series(column.name, values).cast(column.dtype), altered


def _spread(values: NDArray[np.float64], rows: NDArray[np.int64], l: float, draw: _Draw) -> int:
    """Change the values of one cell; how many changed."""
    cap = int(len(rows) // l)
    if cap == 0:
        raise PromiseError(
            f"a P-subgroup of {len(rows)} series cannot hold {l:g} different values",
            where=f"column {draw.name!r}",
            hint="p must be at least l to perturb",
        )
    present = set(values[rows].tolist())
    altered = 0
    for value, count in zip(*np.unique(values[rows], return_counts=True), strict=True):
        if count <= cap:
            continue
        same = rows[values[rows] == value]
        for row in np.sort(draw.rng.choice(same, int(count) - cap, replace=False)):
            values[row] = draw.free(float(value), present)
            present.add(float(values[row]))
            altered += 1
    return altered


@dataclass(frozen=True)
class _Draw:
    """How new values are drawn for one column."""

    step: float
    most: float
    whole: bool
    least: float
    greatest: float
    rng: np.random.Generator
    name: str

    def free(self, value: float, present: set[float]) -> float:
        """A value near ``value`` that is not present yet."""
        reach = min(self.step, self.most)
        while True:
            low, high = max(value - reach, self.least), min(value + reach, self.greatest)
            for _ in range(TRIES):
                drawn = self.rng.uniform(low, high)
                if self.whole:
                    # rounding may lead across an end
                    drawn = np.clip(np.rint(drawn), np.ceil(low), np.floor(high))
                if float(drawn) not in present:
                    return float(drawn)
            if reach >= self.most:
                raise PromiseError(
                    f"no free value within {self.most:g} of one that occurs too often",
                    where=f"column {self.name!r}",
                    hint="widen the bound: perturb with a larger `most`",
                )
            reach = min(reach + self.step, self.most)
