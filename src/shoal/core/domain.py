"""What must be known of a whole table so that its parts are coded alike, wherever they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.levels import Codes, Levels


@dataclass
class Domain:
    """The distinct values of a table's quasi and sensitive columns, and how they are spread.

    ``values`` are sorted, a missing one last, ``rows`` says how often each stands in the table. ``shares`` are, for
    each value of a sensitive column, the share of all people who hold it: what t-closeness compares a group with. The
    levels of a hierarchy are compiled from the values when first asked for and are not passed on: values are small and
    travel well, and the same values give the same levels everywhere.

    >>> domain = Domain({"age": pl.Series([20, 30, None])}, {"age": np.array([5, 4, 1])})
    >>> domain.total
    10
    """

    values: Mapping[str, pl.Series]
    rows: Mapping[str, NDArray[np.int64]]
    shares: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    compiled: dict[str, tuple[Levels, Codes]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def total(self) -> int:
        """Rows of the table."""
        return int(next(iter(self.rows.values())).sum()) if self.rows else 0

    def known(self, name: str) -> tuple[int, int]:
        """Rows whose value the hierarchy of a column knows, and all of them."""
        count = self.rows[name]
        return int(count[self.compiled[name][1] >= 0].sum()), int(count.sum())

    def __getstate__(self) -> dict[str, object]:
        return {"values": self.values, "rows": self.rows, "shares": self.shares, "compiled": {}}


def counted(values: pl.Series, rows: pl.Series) -> tuple[pl.Series, NDArray[np.int64]]:
    """Values as they are compared, sorted, a missing one last, and how often each occurs; some may come twice.

    >>> found, rows = counted(pl.Series([2.0, -0.0, 0.0]), pl.Series([1, 2, 3]))
    >>> found.to_list(), rows.tolist()
    ([0.0, 2.0], [5, 1])
    """
    frame = pl.DataFrame({"value": comparable(values), "rows": rows.cast(pl.Int64)})
    found = frame.group_by("value").agg(pl.col("rows").sum()).sort("value", nulls_last=True)
    return found["value"].alias(values.name), found["rows"].to_numpy()
