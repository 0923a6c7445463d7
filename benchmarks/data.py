"""The shared Adult table, as every bench reads it: 30,162 rows, nine columns, the hierarchies that came with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from benchmarks import SHARED
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.core.table import Table, code

ADULT = SHARED / "data" / "adult"
HIERARCHIES = ADULT / "hierarchies_arx"


def adult(rows: int | None = None) -> pl.DataFrame:
    """The rows, or the first of them."""
    frame = pl.read_csv(ADULT / "adult_arx_30162.csv.gz")
    return frame if rows is None else frame.head(rows)


def trees(columns: Iterable[str]) -> dict[str, Hierarchy | None]:
    """The hierarchies of columns."""
    return {name: Tree(file=str(HIERARCHIES / f"{name}.csv")) for name in columns}


def adult_schema(frame: pl.DataFrame, sensitive: Sequence[str] = ()) -> Schema:
    """All columns quasi but the sensitive ones."""
    quasi = trees(c for c in frame.columns if c not in sensitive)
    return Schema.build(quasi=quasi, sensitive=list(sensitive))


def coded(frame: pl.DataFrame, sensitive: Sequence[str] = ()) -> Table:
    """The rows as a method takes them."""
    return code(frame, adult_schema(frame, sensitive))
