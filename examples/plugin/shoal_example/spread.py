"""A promise: the numbers of every group lie far enough apart."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.groups import Groups
from shoal.promises import Promise


class Spread(Promise, frozen=True, tag="spread"):
    """In every group, the largest and the smallest number of ``column`` differ by at least ``least``.

    Protects against learning someone's number to a narrow interval. Closed under union, so methods may merge groups.
    It has no compiled rule: table methods of all packages keep it by merging; stream methods refuse it.
    """

    least: float
    column: str

    @property
    def asked(self) -> float:
        """The level that is promised."""
        return self.least

    @property
    def sensitive(self) -> str:
        """The column it speaks about."""
        return self.column

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The definition: what each group reaches, and whether that is enough."""
        frame = pl.DataFrame({"group": groups.labels, "value": groups.sensitive[self.column]})
        width = pl.col("value").max() - pl.col("value").min()
        reached = frame.group_by("group").agg(width.fill_null(0)).sort("group")["value"].to_numpy().astype(np.float64)
        return reached, reached >= self.least
