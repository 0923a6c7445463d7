"""Whether released cells lie within the limits of their columns: read off their texts, whatever method made them."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.core.cells import read
from shoal.core.groups import Finding
from shoal.core.levels import Levels
from shoal.core.table import Table


def limits_kept(released: pl.DataFrame, table: Table) -> list[Finding]:
    """A finding per limited column: the highest level that one of its cells is published at.

    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> frame = pl.DataFrame({"sex": ["f", "m"]})
    >>> table = code(frame, Schema.build(quasi={"sex": None}, at_most={"sex": 0}))
    >>> [finding.kept for finding in limits_kept(pl.DataFrame({"sex": ["f", "*"]}), table)]
    [False]
    """
    out = []
    for j, limit in table.limits.items():
        name, levels = table.names[j], table.levels[j]
        column = released[name]
        # each text once: a column has few
        texts = (column.struct.field("text") if column.dtype == pl.Struct else column).unique().to_list()
        reached = [_level(text, levels) for text in texts]
        over = sum(level > limit for level in reached)
        told = f"column {name!r} at most at level {limit}"
        out.append(Finding(told, not over, limit, max(reached, default=0), len(texts), over, "cells"))
    return out


def _level(text: str | None, levels: Levels) -> int:
    """The lowest level that a cell may have come from; above the root if from none."""
    if text is None:
        return 0
    for level in range(levels.depth):
        if text in levels.labels(level):
            return level
    cell = read(text)
    # a set has two levels, as `suppress` has, and is the upper one
    if cell.kind == "set":
        return levels.depth - 1
    # a text that no level has breaks every limit
    if cell.kind != "interval" or levels.numbers is None:
        return levels.depth
    numbers = levels.numbers[: levels.known]
    low = int(np.clip(np.searchsorted(numbers, cell.low), 0, levels.known - 1))
    high = int(np.clip(np.searchsorted(numbers, cell.high, side="right") - 1, 0, levels.known - 1))
    return int(levels.meet(np.array([low]), np.array([high]))[0])
