"""A number becomes the range it lies in (Allgöwer 2023, Figure 7)."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from shoal.core.cells import SUPPRESSED, interval
from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running, is_number, need_number

if TYPE_CHECKING:
    import polars as pl


class Bucket(Mask, frozen=True, tag="bucket"):
    """Ranges of equal ``width`` counted from ``start``, or between given ``edges``.

    Whole numbers read ``[20, 29]``, others ``[1.5, 2.0)``; below the first and from the last edge on, ``<0`` and
    ``≥65``.

    Protects against: reading the exact number.
    Does not protect against: thin ranges (the only person over 100), and whoever knows a number's neighbours.
    Cost: a division.

    >>> Bucket(width=10).start(Context(type="int")).one(27)
    '[20, 29]'
    >>> Bucket(edges=(0, 18, 65)).start(Context(type="int")).one(68)
    '≥65'
    """

    attack: ClassVar[str] = "thin ranges: the only one in a bucket is as exact as before"

    width: float | None = None
    origin: float = 0
    edges: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if (self.width is None) == (self.edges is None):
            raise UsageError("expected either `width` or `edges`", where="bucket")
        if self.width is not None and not 0 < self.width < math.inf:
            raise UsageError("`width` must be positive and finite", where="bucket")
        if not math.isfinite(self.origin):
            raise UsageError("`origin` must be finite", where="bucket")
        if self.edges is not None and (len(self.edges) < 1 or list(self.edges) != sorted(set(self.edges))):
            raise UsageError("`edges` must ascend, each once", where="bucket")

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        need_number(kind, "bucket")
        steps = (self.width, self.origin) if self.edges is None else self.edges
        # [20, 29.5] would say that a whole number could be 29.5, and neighbours would overlap
        if kind == "int" and any(float(s) != int(s) for s in steps if s is not None):
            raise UsageError("whole numbers need whole `width`, `origin` and `edges`", where="bucket")
        return "str"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        self.output(context.type)
        return _Edges(self, context.type) if self.edges else _Width(self, context.type)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"range of {self.width:g}" if self.width else "range"


class _Width(Running):
    pure = alike = True

    def __init__(self, spec: Bucket, kind: Type | None) -> None:
        super().__init__("str")
        assert spec.width is not None
        # whole numbers are bucketed in integers: as floats, those beyond 2**53 would land in a neighbour's bucket
        whole = float(spec.width).is_integer() and float(spec.origin).is_integer()
        self._kind = kind
        self._width: float = int(spec.width) if whole else spec.width
        self._start: float = int(spec.origin) if whole else spec.origin
        self._whole = whole

    def one(self, value: Any, *by: Any) -> str:
        if type(value) is int and self._whole:
            low = (value - self._start) // self._width * self._width + self._start
            return f"[{low}, {low + self._width - 1}]" if self._width > 1 else str(low)
        return self._float(value) if is_number(value) else SUPPRESSED

    def _float(self, value: float) -> str:
        try:
            return self._label(math.floor((value - self._start) / self._width))
        # the bucket of an infinite number has no end to print
        except OverflowError:
            return SUPPRESSED

    def _label(self, index: int) -> str:
        low = index * self._width + self._start
        return interval(low, low + self._width, whole=False, closed=False)

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        import polars as pl

        # floats go the road of `one`: floor division of columns rounds otherwise near the edges, and the two must agree
        if self._kind != "int" or not self._whole:
            return super().expression(column, *by)
        low = (column.cast(pl.Int64) - self._start) // self._width * self._width + self._start
        text = pl.format("[{}, {}]", low, low + self._width - 1) if self._width > 1 else low.cast(pl.String)
        return pl.when(column.is_not_null()).then(text)


class _Edges(Running):
    def __init__(self, spec: Bucket, kind: Type | None) -> None:
        super().__init__("str")
        edges = spec.edges or ()
        self._edges = edges
        self._labels = {True: _labels(edges, whole=True), False: _labels(edges, whole=False)}
        self._whole = all(float(e).is_integer() for e in edges)

    def one(self, value: Any, *by: Any) -> str:
        if not is_number(value):
            return SUPPRESSED
        # a float among whole numbers gets half-open ranges: 29.5 lies in no [20, 29]
        return self._labels[self._whole and type(value) is int][bisect_right(self._edges, value)]


def _labels(edges: tuple[float, ...], *, whole: bool) -> list[str]:
    first, last = (str(int(e)) if whole else repr(float(e)) for e in (edges[0], edges[-1]))
    between = [interval(a, b - 1 if whole else b, whole=whole, closed=whole) for a, b in pairwise(edges)]
    return [f"<{first}", *between, f"≥{last}"]
