"""A number becomes the nearest multiple of a step."""

from __future__ import annotations

from math import floor, inf, isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running, dtype_of, is_number, need_number

if TYPE_CHECKING:
    import polars as pl


LEAST, MOST = -(2**63), 2**63 - 1  # whole numbers of a column


class Round(Mask, frozen=True, tag="round"):
    """The nearest multiple of ``to``; half a step is rounded up.

    Protects against: reading the exact number.
    Does not protect against: steps that hold one person; two views with different steps, which narrow it down together.
    Cost: a division.

    >>> Round(to=100).start(Context(type="int")).one(1250)
    1300
    """

    attack: ClassVar[str] = "thin steps: the only one near a multiple; two views with different steps intersect"

    to: float

    def __post_init__(self) -> None:
        if not 0 < self.to < inf:
            raise UsageError("`to` must be positive and finite", where="round")

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        if need_number(kind, "round") == "int" and not float(self.to).is_integer():
            raise UsageError("whole numbers need a whole `to`", where="round")
        return kind or "float"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        return _Round(self.to, self.output(context.type))

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"rounded to {self.to:g}"


class _Round(Running):
    pure = alike = True

    def __init__(self, step: float, kind: Type | None) -> None:
        super().__init__(kind)
        self._step: Any = int(step) if kind == "int" else float(step)

    def one(self, value: Any, *by: Any) -> Any:
        if type(value) is float and self.type != "int":  # the usual case first
            whole = value / self._step + 0.5
            nearest = floor(whole) * self._step if isfinite(whole) else nan
            return nearest if isfinite(nearest) else None
        if not is_number(value):
            return None
        if self.type == "int":
            if not isinstance(value, int):
                return None
            up = value + self._step // 2
            made = up - up % self._step
            return made if made >= LEAST and up <= MOST else None
        try:
            return self.one(float(value))
        except OverflowError:  # no float is so large
            return None

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        return column.map_batches(self._column, return_dtype=dtype_of(self.type))

    def _column(self, values: pl.Series) -> pl.Series:
        import numpy as np
        import polars as pl

        if self.type == "int":
            whole = values.cast(pl.Int64)
            ends = [v for v in (whole.min(), whole.max()) if v is not None]
            if any(self.one(v) is None for v in ends):  # near the ends of what 64 bits hold
                return self.many(whole)
            up: pl.Series = whole + self._step // 2
            made: pl.Series = up - up % self._step
            return made
        # divided by numpy, as single values are: polars multiplies by the reciprocal, which rounds otherwise
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large becomes null below
            given = values if values.dtype == pl.Float64() else values.cast(pl.Float64)
            held = given.to_numpy() / self._step  # null becomes NaN
            held += 0.5
            np.floor(held, out=held)
            held *= self._step
        made = pl.Series(values.name, held)
        # a sum is finite only if all of it is, and costs a tenth of looking at each
        return made if isfinite(made.sum()) else made.set(~made.is_finite(), None)
