"""Extremes become a bound: clipping, top and bottom coding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running, as_text, is_number, need_number, text_of

if TYPE_CHECKING:
    import polars as pl


class Clip(Mask, frozen=True, tag="clip"):
    """What lies below ``min`` becomes ``min``, what lies above ``max`` becomes ``max``.

    ``coded: true`` is top and bottom coding: the column becomes text, extremes read ``≤18`` and ``≥90``, and nobody
    takes a bound for a measured value. Declare the bounds: those learned from the data would tell its extremes.

    Protects against: outliers that stand for one person (the oldest, the best paid).
    Does not protect against: everything between the bounds, which stays as it is.
    Cost: two comparisons.

    >>> Clip(max=90).start(Context(type="int")).one(104), Clip(max=90, coded=True).start(Context(type="int")).one(104)
    (90, '≥90')
    """

    attack: ClassVar[str] = "all values between the bounds are exact; a bound that few reach still names them"

    min: float | None = None
    max: float | None = None
    coded: bool = False

    def __post_init__(self) -> None:
        bounds = [b for b in (self.min, self.max) if b is not None]
        if not bounds or any(b - b != 0 for b in bounds) or bounds != sorted(bounds):
            raise UsageError("expected `min`, `max` or both, finite, the lower first", where="clip")

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        if need_number(kind, "clip") == "int" and any(b is not None and b != int(b) for b in (self.min, self.max)):
            raise UsageError("whole numbers need whole `min` and `max`", where="clip")
        return "str" if self.coded else kind or "float"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        return _Clip(self, context.type)

    def describe(self) -> str:
        """See :class:`Mask`."""
        low = "" if self.min is None else f"{self.min:g}"
        return f"kept within {low}…{'' if self.max is None else f'{self.max:g}'}"


class _Clip(Running):
    pure = alike = True

    def __init__(self, spec: Clip, kind: Type | None) -> None:
        super().__init__(spec.output(kind))
        number = int if kind == "int" else float
        self._kind, self._coded = kind, spec.coded
        self._low = None if spec.min is None else number(spec.min)
        self._high = None if spec.max is None else number(spec.max)

    def one(self, value: Any, *by: Any) -> Any:
        # a float in a column of whole numbers would make a column of another type
        if not is_number(value) or (self.type == "int" and not isinstance(value, int)):
            return SUPPRESSED if self._coded else None
        if self._low is not None and value <= self._low:
            return f"≤{text_of(self._low)}" if self._coded else self._low
        if self._high is not None and value >= self._high:
            return f"≥{text_of(self._high)}" if self._coded else self._high
        if self._coded:
            return text_of(value)
        return value if self.type == "int" else float(value)

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        import polars as pl

        if self._kind not in ("int", "float"):
            return super().expression(column, *by)
        if not self._coded:
            made = column.clip(self._low, self._high)
            # as single values: infinity is withheld, not clipped to a bound as if it had been measured
            return made if self.type == "int" else pl.when(column.is_finite()).then(made)
        text = as_text(column, self._kind)
        if self._high is not None:
            text = pl.when(column >= self._high).then(pl.lit(f"≥{text_of(self._high)}")).otherwise(text)
        if self._low is not None:
            text = pl.when(column <= self._low).then(pl.lit(f"≤{text_of(self._low)}")).otherwise(text)
        # a null is above no bound, and its text is null
        return text if self._kind == "int" else pl.when(~column.is_finite()).then(pl.lit(SUPPRESSED)).otherwise(text)
