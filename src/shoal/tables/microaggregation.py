"""Microaggregation: small groups of rows that lie near each other (MDAV; for one column the optimum)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.levels import Levels
from shoal.core.table import Table
from shoal.kernels.shared.promises import Rules
from shoal.tables.base import Progress
from shoal.tables.settle import Labels, Settled

Floats = NDArray[np.float64]


class Microaggregation(Settled, frozen=True, tag="microaggregation"):
    """Groups that keep every promise and have little spread: MDAV, and for a single column the least spread there is.

    Protects against what its promises protect against; keeps k, every l and t. Does not protect against an attacker
    who compares two releases of the same people.

    Every column becomes a coordinate from 0 to 1: numbers as they are, categories in the order of their hierarchy,
    spaced by what it costs to join neighbours. As long as there are 3k rows, the row farthest from the mean takes its
    nearest rows, then the row farthest from it does. A group takes k rows and more until it keeps l and t; what
    still breaks is suppressed up to the share ``suppress`` of the rows, else merged. One column alone is grouped with
    the least sum of squared errors (Hansen and Mukherjee). Cells are published as intervals and nodes; to publish
    means instead, use the mask `microaggregate`. Tables of more than twice ``block`` rows are first cut into blocks.

    Cost: O(rows x min(rows, block) / k x columns); memory three floats per cell.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> table = code(pl.DataFrame({"age": [20, 21, 50, 52]}), Schema.build(quasi={"age": None}))
    >>> Microaggregation().group(table, [KAnonymity(2)]).labels.tolist()
    [0, 0, 1, 1]

    Reference: J. Domingo-Ferrer and V. Torra, Ordinal, continuous and heterogeneous k-anonymity through
    microaggregation, Data Mining and Knowledge Discovery 11, 2005.
    """

    block: int = 20_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block < 1:
            raise UsageError("`block` must be at least 1", where="microaggregation")

    def part(self, table: Table, rules: Rules, seed: int, progress: Progress) -> Labels:
        """See :class:`Settled`. Needs no seed: nothing is random."""
        points = coordinates(table)
        if points.shape[1] == 1:
            return _one_column(points[:, 0], rules.k)
        return self._many(table, points, rules, progress)

    def _many(self, table: Table, points: Floats, rules: Rules, progress: Progress) -> Labels:
        from shoal.kernels.tables.mdav import mdav

        blocks = _blocks(table, rules, max(self.block, rules.k)) if table.size > 2 * self.block else None
        if blocks is None:
            labels, _ = mdav(points, np.arange(table.size, dtype=np.int32), rules)
            return np.asarray(labels)
        out = np.empty(table.size, np.int32)
        used = 0
        for block in range(int(blocks.max()) + 1):
            members = np.flatnonzero(blocks == block)
            labels, groups = mdav(points[members], members.astype(np.int32), rules)
            out[members] = labels + used
            used += groups
            progress(0.1 + 0.7 * (block + 1) / (int(blocks.max()) + 1), "microaggregation")
        return out


def _one_column(points: Floats, k: int) -> Labels:
    from shoal.kernels.shared.microaggregation import microaggregate

    order = np.argsort(points, kind="stable")
    labels = np.empty(len(points), np.int32)
    labels[order] = microaggregate(points[order], k)
    return labels


def _blocks(table: Table, rules: Rules, size: int) -> Labels:
    """Blocks of ``size`` to twice as many rows that lie near each other: the cuts of relaxed Mondrian."""
    from shoal.kernels.tables.mondrian import mondrian

    labels, _ = mondrian(table.matrix, table.shape(), rules._replace(k=size), False, 1)
    return np.asarray(labels)


def coordinates(table: Table) -> Floats:
    """Each row as a point: every column from 0 to 1, times its weight."""
    out = np.empty(table.matrix.shape)
    for j, levels in enumerate(table.levels):
        out[:, j] = _line(levels)[table.matrix[:, j]] * table.weights[j]
    return out


def _line(levels: Levels) -> Floats:
    """The codes of a column on a line from 0 to 1: by their numbers, or by what joining neighbours costs."""
    if levels.numbers is not None:
        places, width = levels.line
        line = np.nan_to_num((places - places[0]) / width, nan=1.0)
        return np.asarray(line)
    each = np.arange(levels.size, dtype=np.int32)
    line = np.concatenate([np.zeros(1), np.cumsum(levels.ncp(each[:-1], each[1:]))])
    return np.asarray(line / (line[-1] or 1.0))
