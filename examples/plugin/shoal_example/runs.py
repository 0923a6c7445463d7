"""A table method: sorted rows, cut as soon as the promises hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.core.table import Table
from shoal.kernels.shared.promises import holds, workspace
from shoal.promises import Promise
from shoal.tables import Grouping, TableMethod
from shoal.tables.base import Progress, reachable, silent


class Runs(TableMethod, frozen=True, tag="runs"):
    """Rows come sorted by their codes; each run of rows that keeps the promises is a group. Simple and wasteful."""

    def form(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """Keeps the compiled rules; what they do not say (``spread``), ``TableMethod.group`` adds by merging."""
        rules = reachable(table, promises)  # an error if not even the whole table keeps them
        rows, work = np.arange(table.size, dtype=np.int32), workspace(rules)
        starts = [0]
        for row in range(1, table.size):
            if holds(rules, rows, starts[-1], row, work):
                starts.append(row)
        while len(starts) > 1 and not holds(rules, rows, starts[-1], table.size, work):
            starts.pop()  # the rest is too little: it joins the run before
        labels = np.zeros(table.size, np.int32)
        labels[starts[1:]] = 1
        return Grouping(np.cumsum(labels, dtype=np.int32))
