"""Datafly: generalize the column with the most values until few enough rows are left over (Sweeney 1998)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from shoal.core.table import Table
from shoal.promises.base import Promise
from shoal.tables.base import Grouping, Progress, TableMethod, reachable, silent
from shoal.tables.full_domain import grouping, nodes_of
from shoal.tables.settle import check_limit


class Datafly(TableMethod, frozen=True, tag="datafly"):
    """One level per column for the whole table, found greedily; rows that still break a promise are suppressed.

    Protects against what its promises protect against; keeps k, every l and t. Does not protect against an attacker
    who compares two releases of the same people.

    While more than the share ``suppress`` of the rows lies in groups that break a promise, the column with the most
    different values goes up one level. Simple, fast and wasteful: `lattice` finds the best choice of levels. For
    promises that do not survive suppression of other rows (t), the released rows are judged anew each time.

    Cost: O(rows x columns) per step, and at most as many steps as there are levels in all columns.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> zips = pl.DataFrame({"zip": ["101", "102", "210", "211"]})
    >>> table = code(zips, Schema.build(quasi={"zip": Prefix(3)}))
    >>> Datafly().group(table, [KAnonymity(2)]).floor.tolist()
    [[1], [1]]
    """

    local_recoding: ClassVar[bool] = False

    suppress: float = 0.0

    def __post_init__(self) -> None:
        check_limit(self.suppress, "datafly")

    def form(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """See :class:`TableMethod`. Needs no seed: nothing is random."""
        from shoal.kernels.shared.promises import workspace
        from shoal.kernels.tables.full_domain import judge_level, room_for

        rules = reachable(table, promises)
        nodes = nodes_of(table)
        if not table.size:
            return Grouping(np.zeros(0, np.int32), np.zeros((0, len(table.names)), np.int8))
        room, work = room_for(nodes), workspace(rules)
        level = np.zeros(len(table.levels), np.int64)
        limit = int(self.suppress * table.size)
        steps = int(nodes.depth.sum()) - len(level)
        while True:
            found = judge_level(nodes, rules, level, room, work, limit)
            if found.suppressed <= limit:
                return grouping(nodes, room, found.groups, level)
            progress(0.1 + 0.8 * int(level.sum()) / max(1, steps), "raising levels")
            values = [
                len(np.unique(x.codes[nodes.tuples[:, j], level[j]])) if level[j] + 1 < x.depth else 0
                for j, x in enumerate(table.levels)
            ]
            level[int(np.argmax(values))] += 1
