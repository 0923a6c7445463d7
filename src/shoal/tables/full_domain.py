"""What the full-domain methods share: a table as nodes per level, and the groups of a level vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.levels import Levels
from shoal.core.table import Table
from shoal.tables.base import Grouping

if TYPE_CHECKING:
    from shoal.kernels.tables.full_domain import Nodes, Room

Floats = NDArray[np.float64]
Measure = Literal["gcp", "generalization", "entropy", "discernibility", "average"]


def nodes_of(table: Table, measure: Measure = "gcp") -> Nodes:
    """Distinct rows and the cost of every cell at every level. Equal rows stand together in a table, so no sort."""
    from shoal.kernels.tables.full_domain import Nodes

    for name, levels in zip(table.names, table.levels, strict=True):
        if not levels.nested:
            raise UsageError(
                "the levels do not nest", where=f"column {name!r}", hint="use sizes that divide each other"
            )
    n = table.size
    change: NDArray[np.bool_] = np.ones(n, np.bool_)
    # rows are sorted: equal ones stand together, and every node of the lattice is judged by distinct tuples only
    change[1:] = (table.matrix[1:] != table.matrix[:-1]).any(1)
    depth = np.array([x.depth for x in table.levels], np.int64)
    size = np.array([x.size for x in table.levels], np.int64)
    tuples = np.ascontiguousarray(table.matrix[change])
    costs = [_costs(table, j, measure) for j in range(len(table.levels))]
    dropped = np.zeros(len(tuples))
    for j in range(len(table.levels)):
        # a suppressed row costs what it would at the top: less, and suppressing would always win; more, and never
        worst = costs[j][:, -1] if measure == "entropy" else np.full(size[j], table.weights[j])
        dropped += worst[tuples[:, j]]
    return Nodes(
        tuples,
        np.append(np.flatnonzero(change), n),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(size * depth)[:-1]]) if len(size) else size,
        depth,
        np.concatenate([np.zeros(0, np.int32), *[x.codes.ravel() for x in table.levels]]),
        np.concatenate([np.zeros(0), *[c.ravel() for c in costs]]),
        dropped,
    )


def _costs(table: Table, j: int, measure: Measure) -> Floats:
    """What each code of a column loses at each level."""
    levels = table.levels[j]
    if measure == "entropy":
        return _bits(levels, table.matrix[:, j])
    if measure == "generalization":
        share = np.arange(levels.depth) / max(1, levels.depth - 1)
        return np.ascontiguousarray(np.broadcast_to(share * table.weights[j], levels.codes.shape))
    out = np.zeros(levels.codes.shape)
    for level in range(1, levels.depth):
        out[:, level] = levels.costs(level)[levels.codes[:, level]] * table.weights[j]
    return out


def _bits(levels: Levels, codes: NDArray[np.int32]) -> Floats:
    frequency = np.bincount(codes, minlength=levels.size).astype(np.float64)
    out = np.zeros(levels.codes.shape)
    for level in range(1, levels.depth):
        under = np.bincount(levels.codes[:, level], weights=frequency)[levels.codes[:, level]]
        out[:, level] = np.where(frequency > 0, np.log2(np.maximum(under, 1) / np.maximum(frequency, 1)), 0.0)
    return out


def bounds(table: Table, nodes: Nodes) -> Floats:
    """What each column loses at each level, summed over all rows: no row loses less by being suppressed."""
    out = np.zeros((len(table.levels), int(nodes.depth.max(initial=1))))
    for j, levels in enumerate(table.levels):
        frequency = np.bincount(table.matrix[:, j], minlength=levels.size)
        start = int(nodes.offset[j])
        out[j, : levels.depth] = frequency @ nodes.cost[start : start + levels.codes.size].reshape(levels.codes.shape)
    return out


def grouping(nodes: Nodes, room: Room, groups: int, level: NDArray[np.int64]) -> Grouping:
    """Labels and levels of the groups that ``room`` holds; those that fail are suppressed."""
    fails = room.fails[:groups]
    number = np.where(fails, -1, np.cumsum(~fails) - 1).astype(np.int32)
    labels = np.repeat(number[room.group], np.diff(nodes.first))
    floor = np.broadcast_to(level.astype(np.int8), (int((~fails).sum()), len(level))).copy()
    return Grouping(labels, floor)
