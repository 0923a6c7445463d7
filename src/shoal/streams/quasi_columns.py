"""Quasi columns of a stream, one by one: numbers in a declared domain, and paths of labels."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED, interval
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column
from shoal.kernels.delay.stream_boxes import HULL, ROOT
from shoal.streams.base import Reason
from shoal.streams.path_columns import Floats, Paths, Reasons, SnapPaths, TreePaths


class Numbers:
    """A column of numbers with a declared domain, published as the hull of a group.

    >>> from shoal.core.schema import Column
    >>> numbers, reasons = Numbers("age", Column("quasi"), Range(min=0, max=100)).code(pl.Series([30, 41]))
    >>> numbers.tolist(), reasons.tolist()
    ([30.0, 41.0], [0, 0])
    """

    def __init__(self, name: str, column: Column, hierarchy: Range) -> None:
        if hierarchy.min is None or hierarchy.max is None:
            raise UsageError(
                "a range in a stream needs its ends: they cannot be read off data that is still to come",
                where=f"column {name!r}",
                hint="declare `min` and `max`",
            )
        self.range = hierarchy
        self.least = float(hierarchy.min)
        self.width = float(hierarchy.max) - self.least or 1.0
        self.missing = column.missing
        self.whole = column.type == "int" if column.type else None  # unknown until the first batch says

    def code(self, values: pl.Series) -> tuple[Floats, Reasons]:
        """Numbers (not-a-number where missing) and what is wrong with them."""
        if self.whole is None:
            self.whole = values.dtype.is_integer()
        if values.dtype.is_numeric() and not values.null_count():
            array = values.to_numpy().astype(np.float64)
            null = np.zeros(len(array), np.bool_)
        else:
            array = values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
            null = values.is_null().to_numpy()
        reason = np.zeros(len(array), np.uint8)
        reason[np.isnan(array) & ~null] = Reason.BAD
        array = np.clip(
            array,
            -np.inf if self.range.bottom is None else self.range.bottom,
            np.inf if self.range.top is None else self.range.top,
        )
        assert self.range.min is not None
        assert self.range.max is not None
        with np.errstate(invalid="ignore"):
            reason[(array < self.range.min) | (array > self.range.max)] = Reason.UNKNOWN
            if self.whole:
                reason[~null & (reason == 0) & (array != np.floor(array))] = Reason.BAD
        if self.missing == "suppress":
            reason[null] = Reason.BAD
        return array, reason

    def text(self, low: Floats, high: Floats, level: NDArray[np.int8]) -> list[str | None]:
        """The published text of boxes."""
        bottom, top = self.range.bottom, self.range.top
        whole = bool(self.whole)
        if bottom is None and top is None and not level.any():
            # the usual case, written out: one call per box costs more than everything else about a box
            if whole:
                ends = zip(low.astype(np.int64).tolist(), high.astype(np.int64).tolist(), strict=True)
                return [f"[{a}, {b}]" if a != b else str(a) for a, b in ends]
            return [f"[{a!r}, {b!r}]" if a != b else repr(a) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        return [
            (SUPPRESSED if at == ROOT else None)
            if at != HULL
            else interval(
                a,
                b,
                whole=whole,
                bottom=bottom is not None and a <= bottom,
                top=top is not None and b >= top,
            )
            for a, b, at in zip(low.tolist(), high.tolist(), level.tolist(), strict=True)
        ]


def column_of(name: str, column: Column, key: bytes, *, leafless: bool) -> Numbers | Paths:
    """How a quasi column is coded.

    >>> column_of("age", Column("quasi", hierarchy=Range(min=0, max=100)), bytes(32), leafless=False).width
    100.0
    """
    if column.loss in ("rank", "log"):
        raise UsageError(
            f"a stream measures its loss before it has seen all rows: `loss: {column.loss}` has no effect",
            where=f"column {name!r}",
            hint="leave it out",
        )
    if column.at_most is not None:
        raise UsageError(
            "`at_most` cannot be kept: a stream must release or withhold before it has seen all rows",
            where=f"column {name!r}",
            hint="leave it out",
        )
    hierarchy = column.hierarchy
    if hierarchy is None and column.type in ("int", "float"):
        hierarchy = Range()  # says what it needs
    if isinstance(hierarchy, Range):
        plain = Numbers(name, column, hierarchy)
        return SnapPaths(name, column, hierarchy, key) if hierarchy.snap else plain
    _refuse(name, hierarchy)
    if isinstance(hierarchy, Tree):
        return TreePaths(name, column, hierarchy, key, leafless=leafless)
    return Paths(name, column, hierarchy or Suppress(), key)


def _refuse(name: str, hierarchy: Hierarchy | None) -> None:
    where = f"column {name!r}"
    if hierarchy is None:
        return
    if hierarchy.grows is not None:
        why, hint = hierarchy.grows
        raise UsageError(f"a stream needs fixed levels: {why}", where=where, hint=hint)
    if not hierarchy.nests:
        raise UsageError("these sizes do not nest", where=where, hint="let each size divide the next")
