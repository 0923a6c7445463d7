"""What analysts still find: means, correlations and cross tables before and after.

A generalized cell stands for the values of its node, in the proportions in which they occur in the column; a
withheld row is not there.
"""

from __future__ import annotations

from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.release import Boxes
from shoal.core.table import Table
from shoal.measures.loss import node_range

MOST = 400  # distinct values: wider columns are left out of cross tables


class Utility(msgspec.Struct, frozen=True):
    """Figures before and after: ``means`` per number column, ``correlations`` and ``cross_tables`` per pair.

    A cross table's figure is the total variation distance between the two joint distributions (0 equal, 1 apart).
    """

    means: dict[str, tuple[float, float]]
    correlations: dict[str, tuple[float, float]]
    cross_tables: dict[str, float]


def utility(table: Table, labels: NDArray[np.int32], boxes: Boxes) -> Utility:
    """Compare what can be counted before and after. O(groups x values) per column, pairs of columns on top."""
    kept = labels >= 0
    sizes = np.bincount(labels[kept], minlength=len(boxes.low)).astype(np.float64)
    means: dict[str, tuple[float, float]] = {}
    before: dict[str, NDArray[np.float64]] = {}
    after: dict[str, NDArray[np.float64]] = {}
    for j, name in enumerate(table.names):
        levels = table.levels[j]
        if not levels.values.dtype.is_numeric() or levels.size < 2:
            continue
        numbers = levels.values.cast(float).fill_null(float("nan")).to_numpy()
        before[name] = numbers[table.matrix[:, j]]
        after[name] = _expected(table, boxes, j, numbers)
        means[name] = (_mean(before[name]), _mean(after[name][labels[kept]]))
    correlations = {
        f"{a}, {b}": (_correlate(before[a], before[b]), _correlate(after[a][labels[kept]], after[b][labels[kept]]))
        for a, b in combinations(before, 2)
    }
    small = [j for j, x in enumerate(table.levels) if x.size <= MOST]
    shares = {j: _shares(table, boxes, j) for j in small} if len(sizes) * MOST <= 50_000_000 else {}
    cross = {
        f"{table.names[a]}, {table.names[b]}": _distance(table, shares[a], shares[b], a, b, sizes)
        for a, b in combinations(shares, 2)
    }
    return Utility(means, correlations, cross)


def _expected(table: Table, boxes: Boxes, j: int, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the values a group's cell may stand for."""
    first, last = node_range(table.levels[j], boxes, j)
    frequency = np.bincount(table.matrix[:, j], minlength=table.levels[j].size).astype(np.float64)
    frequency[np.isnan(numbers)] = 0.0
    weight = np.concatenate([np.zeros(1), np.cumsum(frequency)])
    total = np.concatenate([np.zeros(1), np.cumsum(frequency * np.nan_to_num(numbers))])
    inside = weight[last + 1] - weight[first]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((total[last + 1] - total[first]) / inside)


def _shares(table: Table, boxes: Boxes, j: int) -> NDArray[np.float64]:
    """Per group, how the values of a column are spread behind its cell."""
    size = table.levels[j].size
    first, last = node_range(table.levels[j], boxes, j)
    frequency = np.bincount(table.matrix[:, j], minlength=size).astype(np.float64)
    at = np.arange(size)
    out = np.where((at >= first[:, None]) & (at <= last[:, None]), frequency, 0.0)
    return np.asarray(out / np.maximum(out.sum(1, keepdims=True), 1e-300))


def _distance(
    table: Table, a: NDArray[np.float64], b: NDArray[np.float64], ja: int, jb: int, sizes: NDArray[np.float64]
) -> float:
    truth = np.zeros((a.shape[1], b.shape[1]))
    np.add.at(truth, (table.matrix[:, ja], table.matrix[:, jb]), 1.0)
    seen = (a * sizes[:, None]).T @ b
    return float(np.abs(truth / max(1.0, truth.sum()) - seen / max(1.0, seen.sum())).sum() / 2)


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _correlate(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    known = ~(np.isnan(a) | np.isnan(b))
    a, b = a[known], b[known]
    if len(a) < 2 or a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])
