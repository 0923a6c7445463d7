"""What analysts still find: means, correlations and cross tables before and after.

A generalized cell stands for the values of its node, in the proportions in which they occur in the released rows. A
withheld row is in no figure, neither before nor after: a mean over everyone, times their number, less what the others
have, is the value of the one who was withheld.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.release import Boxes
from shoal.core.table import Table
from shoal.measures.loss import Runs, runs_of

BLOCK = 1 << 18  # rows looked at together: memory does not grow with the table
MOST_DISTINCT = 400  # distinct values: wider columns are left out of cross tables


class Utility(msgspec.Struct, frozen=True):
    """Figures before and after: ``means`` per number column, ``correlations`` and ``cross_tables`` per pair.

    A cross table's figure is the total variation distance between the two joint distributions (0 equal, 1 apart).

    >>> Utility({"age": (40.5, 41.0)}, {}, {}).means["age"]
    (40.5, 41.0)
    """

    means: dict[str, tuple[float, float]]
    correlations: dict[str, tuple[float, float]]
    cross_tables: dict[str, float]

    def told(self) -> Utility:
        """As it is published: three digits are enough for an analyst, and too few to solve for one person.

        >>> Utility({"pay": (51234.5, 50999.0)}, {}, {"pay, age": 0.12345}).told()
        Utility(means={'pay': (51200.0, 51000.0)}, correlations={}, cross_tables={'pay, age': 0.123})
        """
        means = {name: (_told(a), _told(b)) for name, (a, b) in self.means.items()}
        correlations = {name: (_told(a), _told(b)) for name, (a, b) in self.correlations.items()}
        return Utility(means, correlations, {name: _told(d) for name, d in self.cross_tables.items()})


def utility(table: Table, labels: NDArray[np.int32], boxes: Boxes) -> Utility:
    """Compare what can be counted before and after. O(rows + groups + values²) per pair of columns.

    >>> import polars as pl
    >>> from shoal.core.release import boxes_of
    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.core.table import code
    >>> table = code(pl.DataFrame({"age": [20, 30, 60, 70]}), Schema({"age": Column("quasi")}))
    >>> labels = np.array([0, 0, 1, 1], np.int32)
    >>> utility(table, labels, boxes_of(table, labels)).means
    {'age': (45.0, 45.0)}
    """
    kept = labels >= 0
    sizes = np.bincount(labels[kept], minlength=len(boxes.low)).astype(np.float64)
    matrix = table.matrix if kept.all() else table.matrix[kept]
    columns = [_Column(table, matrix, boxes, j) for j in range(len(table.names))]
    numeric = [c for c in columns if c.numbers is not None and len(c.numbers) > 1]
    return Utility(
        means={c.name: (_mean(c.values, c.frequency), _mean(c.expected(), sizes)) for c in numeric},
        correlations={
            f"{a.name}, {b.name}": (
                _correlate(_rows(matrix, a, b), a, b),
                _correlate([(a.expected(), b.expected(), sizes)], a, b),
            )
            for a, b in combinations(numeric, 2)
        },
        cross_tables={
            f"{a.name}, {b.name}": _distance(matrix, a, b, sizes)
            for a, b in combinations([c for c in columns if len(c.frequency) <= MOST_DISTINCT], 2)
        },
    )


class _Column:
    """A column's values, how often they occur, and the values behind each group's cell: runs of them."""

    def __init__(self, table: Table, matrix: NDArray[np.int32], boxes: Boxes, j: int) -> None:
        levels = table.levels[j]
        self.name, self.j = table.names[j], j
        self.frequency = np.bincount(matrix[:, j], minlength=levels.size).astype(np.float64)
        self.runs = runs_of(levels, boxes, j)
        number = levels.values.dtype.is_numeric()
        self.numbers = levels.values.cast(float).fill_null(float("nan")).to_numpy() if number else None

    @property
    def values(self) -> NDArray[np.float64]:
        assert self.numbers is not None
        return self.numbers

    @cached_property
    def middle(self) -> float:
        """The mean; what is summed is summed about it, or large numbers would drown small differences."""
        return _mean(self.values, self.frequency)

    def expected(self) -> NDArray[np.float64]:
        """The mean of the values each group's cell may stand for."""
        known = np.where(np.isnan(self.values), 0.0, self.frequency)
        total = self.runs.sums(known * np.nan_to_num(self.values - self.middle))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total / self.runs.sums(known) + self.middle)

    def covered(self) -> NDArray[np.float64]:
        """How many rows of the table have a value that a group's cell may stand for."""
        return np.asarray(np.maximum(self.runs.sums(self.frequency), 1.0))


def _distance(matrix: NDArray[np.int32], a: _Column, b: _Column, sizes: NDArray[np.float64]) -> float:
    truth = np.zeros(len(a.frequency) * len(b.frequency))
    for start in range(0, len(matrix), BLOCK):
        part = matrix[start : start + BLOCK]
        # in 64 bits: the product of two columns' sizes may not fit in 32
        truth += np.bincount(part[:, a.j].astype(np.int64) * len(b.frequency) + part[:, b.j], minlength=len(truth))
    seen = _spread(a, b, sizes).ravel()
    return float(np.abs(truth / max(1.0, truth.sum()) - seen / max(1.0, seen.sum())).sum() / 2)


def _spread(a: _Column, b: _Column, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows of every group spread over the pairs of values behind its two cells: a rectangle, or several.

    Corners are marked and summed up, so that a rectangle costs four steps however wide it is.
    """
    width = len(b.frequency) + 1
    corners = np.zeros((len(a.frequency) + 1) * width)
    one, other = _crossed(a.runs, b.runs)
    share = (sizes / (a.covered() * b.covered()))[a.runs.group[one]]
    top, bottom, left, right = a.runs.first[one], a.runs.last[one] + 1, b.runs.first[other], b.runs.last[other] + 1
    for row, column, sign in ((top, left, 1), (top, right, -1), (bottom, left, -1), (bottom, right, 1)):
        corners += sign * np.bincount(row * width + column, weights=share, minlength=len(corners))
    density = corners.reshape(-1, width).cumsum(0).cumsum(1)[:-1, :-1]
    # rounding of the running sums may leave a little below 0
    return np.asarray(np.maximum(density, 0.0) * a.frequency[:, None] * b.frequency)


def _crossed(a: Runs, b: Runs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every run of a group in one column with every run of it in another."""
    groups = len(a.start)
    if len(a.group) == groups and len(b.group) == groups:  # no sets: a cell is one run
        return np.arange(groups), np.arange(groups)
    many = np.bincount(b.group, minlength=groups)
    one = np.repeat(np.arange(len(a.group)), many[a.group])
    begin = np.cumsum(many[a.group]) - many[a.group]
    return one, np.arange(len(one)) - begin[one] + b.start[a.group[one]]


Pairs = Iterable[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]  # numbers, and how often


def _rows(matrix: NDArray[np.int32], a: _Column, b: _Column) -> Pairs:
    for start in range(0, len(matrix), BLOCK):
        part = matrix[start : start + BLOCK]
        yield a.values[part[:, a.j]], b.values[part[:, b.j]], np.ones(len(part))


def _correlate(pairs: Pairs, a: _Column, b: _Column) -> float:
    moments = np.zeros(6)
    for x, y, weight in pairs:
        known = ~(np.isnan(x) | np.isnan(y)) & (weight > 0)
        x, y, weight = x[known] - a.middle, y[known] - b.middle, weight[known]
        moments += [weight.sum(), weight @ x, weight @ y, weight @ (x * x), weight @ (y * y), weight @ (x * y)]
    n = moments[0]
    if n < 2:
        return float("nan")
    mean_x, mean_y, xx, yy, xy = moments[1:] / n
    spread = np.array([xx - mean_x**2, yy - mean_y**2])
    # a spread that rounding alone explains is none
    if (spread <= 1e-18 * np.maximum(1.0, np.array([a.middle, b.middle]) ** 2)).any():
        return float("nan")
    return float(np.clip((xy - mean_x * mean_y) / np.sqrt(spread.prod()), -1, 1))


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    known = ~np.isnan(values) & (weights > 0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else float("nan")


def _told(figure: float) -> float:
    return float(f"{figure:.3g}")
