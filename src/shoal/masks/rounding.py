"""A number becomes the nearest multiple of a step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running, is_number, need_number

if TYPE_CHECKING:
    import polars as pl


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
        if not 0 < self.to < math.inf:
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
    pure = True

    def __init__(self, step: float, kind: Type | None) -> None:
        super().__init__(kind)
        self._step: Any = int(step) if kind == "int" else float(step)

    def one(self, value: Any, *by: Any) -> Any:
        if not is_number(value):
            return None
        if self.type == "int":
            rest = (value + self._step // 2) % self._step if isinstance(value, int) else None
            return None if rest is None else value + self._step // 2 - rest
        made = math.floor(float(value) / self._step + 0.5) * self._step if abs(value) < 1e300 * self._step else None
        return float(made) if made is not None and math.isfinite(made) else None

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        import polars as pl

        if self.type == "int":
            up = column.cast(pl.Int64) + self._step // 2
            whole: pl.Expr = up - up % self._step
            return whole
        made = (column / self._step + 0.5).floor() * self._step
        return pl.when((column.abs() < 1e300 * self._step) & made.is_finite()).then(made)
