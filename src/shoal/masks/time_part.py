"""Only a part of a date or a time: the year, the month, the hour."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from shoal.core.derive import Part, part_of
from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running

if TYPE_CHECKING:
    import polars as pl


class TimePart(Mask, frozen=True, tag="time-part"):
    """A date or a time becomes one of its parts, as a whole number (1 is Monday).

    Protects against: reading the exact date.
    Does not protect against: the part itself, and parts that other columns or views add to it: a year here, a month
    and a day there are the date again.
    Cost: a look-up per distinct value.

    >>> TimePart(part="year").start(Context(type="date")).one(datetime.date(1984, 6, 2))
    1984
    """

    attack: ClassVar[str] = "completion: another column or view adds the parts that are missing"

    part: Part

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        if kind not in (None, "date", "datetime"):
            raise UsageError(f"time-part works on dates, and the column holds {kind}", hint="declare `type: date`")
        return "int"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        self.output(context.type)
        return _TimePart(self.part, context.type)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"{self.part} only"


class _TimePart(Running):
    pure = alike = True

    def __init__(self, part: Part, kind: Type | None) -> None:
        super().__init__("int")
        self._part, self._kind = part, kind

    def one(self, value: Any, *by: Any) -> Any:
        if not isinstance(value, datetime.date):
            return None
        whole = value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
        return part_of(self._part, whole)

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        import polars as pl

        if self._kind is None:
            return super().expression(column, *by)
        found: pl.Expr = getattr(column.cast(pl.Datetime("us")).dt, self._part)()
        return found.cast(pl.Int64)
