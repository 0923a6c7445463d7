"""Lattice: optimal full-domain generalization (after Flash: Kohlmayer et al. 2012; Incognito: LeFevre et al. 2005)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from shoal.core.errors import PromiseError, UsageError
from shoal.core.table import Table
from shoal.promises.base import Promise
from shoal.tables.base import Grouping, Progress, TableMethod, reachable, silent
from shoal.tables.full_domain import Measure, bounds, grouping, nodes_of
from shoal.tables.settle import check_limit

MOST_VECTORS = 20_000_000  # level vectors held in memory, 25 bytes each


class Lattice(TableMethod, frozen=True, tag="lattice"):
    """One level per column for the whole table: of all choices that keep every promise, the one with the least loss.

    Protects against what its promises protect against; keeps k, every l and t. Does not protect against an attacker
    who compares two releases of the same people. Its cells are comparable all over the table (every age reads as an
    interval of the same width), which costs far more than local recoding.

    At most the share ``suppress`` of the rows is suppressed: all rows of groups that break a promise. ``measure`` is
    the loss that is least: ``gcp``, ``generalization`` (level over highest level), ``entropy`` (non-uniform),
    ``discernibility``, ``average`` (group size). The search judges level vectors along chains by halving, spreads what
    it finds up and down the lattice, and judges the rest in the order of a lower bound. k and distinct l spread
    always, the others without suppression; beside suppression they do not (a released group may break when more
    rows join it), and all vectors within the bound are judged.

    Cost: judged vectors x rows x columns; judged are few hundreds of thousands as a rule, all of them at worst.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> zips = pl.DataFrame({"zip": ["101", "102", "210", "211"]})
    >>> table = code(zips, Schema.build(quasi={"zip": Prefix(3)}))
    >>> Lattice().group(table, [KAnonymity(2)]).floor.tolist()
    [[1], [1]]
    """

    local_recoding: ClassVar[bool] = False

    suppress: float = 0.0
    measure: Measure = "gcp"

    def __post_init__(self) -> None:
        check_limit(self.suppress, "lattice")

    def form(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """See :class:`TableMethod`. Needs no seed: nothing is random."""
        from shoal.kernels.shared.promises import workspace
        from shoal.kernels.tables import lattice
        from shoal.kernels.tables.full_domain import judge_level, room_for

        rules = reachable(table, promises)
        vectors = math.prod(x.depth for x in table.levels)
        if vectors > MOST_VECTORS:
            raise UsageError(
                f"there are {vectors:,} choices of levels, the most is {MOST_VECTORS:,}",
                where="lattice",
                hint="use `local` or `mondrian`, or hierarchies with fewer levels",
            )
        if not table.size:
            return Grouping(np.zeros(0, np.int32), np.zeros((0, len(table.names)), np.int8))
        nodes = nodes_of(table, self.measure)
        stride = np.concatenate([np.ones(1, np.int64), np.cumprod(nodes.depth)[:-1]])[: len(nodes.depth)]
        measure = {"discernibility": lattice.DISCERNIBILITY, "average": lattice.AVERAGE}.get(
            self.measure, lattice.CELLS
        )
        limit = int(self.suppress * table.size)
        progress(0.1, f"{vectors:,} level vectors")
        height, floor = np.zeros(vectors, np.int64), np.zeros(vectors)
        for j, bound in enumerate(bounds(table, nodes)):
            level = np.arange(vectors) // stride[j] % nodes.depth[j]
            height += level
            if measure == lattice.CELLS:
                floor += bound[level]
        by_height = np.argsort(height, kind="stable")
        by_floor = np.argsort(floor, kind="stable") if measure == lattice.CELLS else by_height
        winner, _, judged = lattice.search(nodes, rules, limit, measure, floor, height, by_height, by_floor, stride)
        progress(0.9, f"{judged:,} of {vectors:,} level vectors judged")
        if winner < 0:
            raise PromiseError("no level vector keeps the promises", where="lattice", hint="suppress more, or ask less")
        level = winner // stride % nodes.depth
        room = room_for(nodes)
        found = judge_level(nodes, rules, level, room, workspace(rules), limit)
        return grouping(nodes, room, found.groups, level)
