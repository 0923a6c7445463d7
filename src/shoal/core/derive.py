"""Columns made from other columns of the same row: a path from its steps, a position from its two numbers, a part of a
date.

Data often hold in several columns what is one thing to an outsider: a category and a product, a latitude and a
longitude. Generalized one by one they would lose more than they must, or not be generalizable at all. So a policy may
derive a column; from there on it is a column like any other, and passes the same gate.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from shoal.core.errors import UsageError
from shoal.core.spec import Family, Spec
from shoal.core.texts import text_of, texts_of
from shoal.core.time import micros, scale

if TYPE_CHECKING:
    import polars as pl

    from shoal.core.schema import Column

Part = Literal["year", "quarter", "month", "week", "weekday", "day", "hour", "minute"]
Made = Literal["str", "int"]
DATES = ("date", "datetime")
CLOCK = ("hour", "minute")
BLANK = " \t"
NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NUMBER = re.compile(NUMBER, re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1)


class Derive(Spec, frozen=True):
    """How a column is made from others of its row. A row that lacks one of them has none of it.

    ``makes`` is the type of what is made. Both forms, one row at a time and whole columns, give the same.

    >>> Join(("city", "street")).sources
    ('city', 'street')
    """

    makes: ClassVar[Made] = "str"

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns it reads."""
        raise NotImplementedError

    def check(self, columns: Mapping[str, Column], where: str) -> None:
        """Refuse what cannot be derived from columns of these kinds."""

    def one(self, columns: Mapping[str, Column]) -> Callable[..., Any]:
        """A function from the values of the sources, none of them missing, to the derived value."""
        raise NotImplementedError

    def many(self, columns: Mapping[str, Column], *values: pl.Series) -> pl.Series:
        """The derived column."""
        raise NotImplementedError


class Join(Derive, frozen=True, tag="join"):
    """The values of some columns, one after the other: category and product become one path.

    >>> Join(("category", "product")).one({})("electronics.phone", 1004237)
    'electronics.phone.1004237'
    """

    of: tuple[str, ...]
    separator: str = "."

    def __post_init__(self) -> None:
        if len(self.of) < 2 or not self.separator:
            raise UsageError("`of` must name at least two columns, and `separator` what parts them", where="join")

    @property
    def sources(self) -> tuple[str, ...]:
        """See :class:`Derive`."""
        return self.of

    def one(self, columns: Mapping[str, Column]) -> Callable[..., Any]:
        """See :class:`Derive`."""
        # bound once: this is called for every record of a stream
        mark = self.separator
        return lambda *values: mark.join([text_of(value) for value in values])

    def many(self, columns: Mapping[str, Column], *values: pl.Series) -> pl.Series:
        """See :class:`Derive`."""
        import polars as pl

        return pl.select(pl.concat_str([texts_of(v) for v in values], separator=self.separator)).to_series()


class Position(Derive, frozen=True, tag="position"):
    """A latitude and a longitude as one position, for the hierarchy `grid`. What is no place on Earth is missing.

    >>> Position(("lat", "lon")).one({})(40.7128, -74.006), Position(("lat", "lon")).one({})(140, 7)
    ('40.7128,-74.006', None)
    """

    of: tuple[str, str]

    @property
    def sources(self) -> tuple[str, ...]:
        """See :class:`Derive`."""
        return self.of

    def one(self, columns: Mapping[str, Column]) -> Callable[..., Any]:
        """See :class:`Derive`."""

        def place(latitude: Any, longitude: Any) -> str | None:
            north, east = text_of(latitude).strip(BLANK), text_of(longitude).strip(BLANK)
            # float() also reads `nan`, `inf` and `1_0`: none of them is a place, and columns would read them otherwise
            if not (_NUMBER.match(north) and _NUMBER.match(east)):
                return None
            return f"{north},{east}" if abs(float(north)) <= 90 and abs(float(east)) <= 180 else None

        return place

    def many(self, columns: Mapping[str, Column], *values: pl.Series) -> pl.Series:
        """See :class:`Derive`."""
        import polars as pl

        texts = [texts_of(v).str.strip_chars(BLANK) for v in values]
        good = pl.lit(True)
        for text, most in zip(texts, (90, 180), strict=True):
            number = pl.lit(text).str.contains(NUMBER)
            good &= number & (pl.when(number).then(pl.lit(text)).cast(pl.Float64, strict=False).abs() <= most)
        return pl.select(pl.when(good).then(pl.concat_str(texts, separator=","))).to_series()


class PartOf(Derive, frozen=True, tag="part"):
    """A part of a date or a time (UTC): `year`, `quarter`, `month`, `week`, `weekday` (1 is Monday), `day`, `hour`,
    `minute`.

    >>> from shoal.core.schema import Column
    >>> PartOf("birth", "month").one({"birth": Column("identifier", type="date")})(datetime.date(1984, 6, 2))
    6
    """

    makes: ClassVar[Made] = "int"
    of: str
    part: Part

    @property
    def sources(self) -> tuple[str, ...]:
        """See :class:`Derive`."""
        return (self.of,)

    def check(self, columns: Mapping[str, Column], where: str) -> None:
        """See :class:`Derive`."""
        source = columns[self.of]
        if source.type not in DATES and source.role != "time":
            raise UsageError(
                f"the column {self.of!r} is not declared as a date or a time", where=where, hint="type: date"
            )
        if source.type == "date" and self.part in CLOCK:
            raise UsageError(f"a date has no {self.part}", where=where, hint="declare the column as datetime")

    def one(self, columns: Mapping[str, Column]) -> Callable[..., Any]:
        """See :class:`Derive`."""
        part = _PARTS[self.part]
        source = columns[self.of]
        if source.type in DATES:
            return part
        read = scale(source.unit)

        def of_number(value: Any) -> int | None:
            at = read(value)
            return None if at < 0 else part(_EPOCH + datetime.timedelta(microseconds=at))

        return of_number

    def many(self, columns: Mapping[str, Column], *values: pl.Series) -> pl.Series:
        """See :class:`Derive`."""
        import polars as pl

        (moments,) = values
        source = columns[self.of]
        if source.type not in DATES:
            read = pl.Series(micros(moments, source.unit))
            moments = pl.select(pl.when(read >= 0).then(read.cast(pl.Datetime("us")))).to_series()
        # records are told in UTC, too: the hour of a person must not depend on how the file was stored
        elif getattr(moments.dtype, "time_zone", None) is not None:
            moments = moments.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        # a column without a single value has no kind yet, and so no parts
        elif moments.dtype == pl.Null:
            moments = moments.cast(pl.Date)
        found: pl.Series = getattr(moments.dt, self.part)()
        return found.cast(pl.Int64)


_PARTS: dict[Part, Callable[[Any], int]] = {
    "year": lambda d: d.year,
    "quarter": lambda d: (d.month + 2) // 3,
    "month": lambda d: d.month,
    "week": lambda d: d.isocalendar().week,
    "weekday": lambda d: d.isoweekday(),
    "day": lambda d: d.day,
    "hour": lambda d: d.hour,
    "minute": lambda d: d.minute,
}
assert set(_PARTS) == set(get_args(Part))


def part_of(part: Part, moment: datetime.datetime) -> int:
    """A part of a moment, as a whole number.

    >>> part_of("weekday", datetime.datetime(2024, 2, 29))
    4
    """
    return _PARTS[part](moment)


DERIVATIONS: Family[Derive] = Family(
    "derive", "shoal.core", {"join": "derive:Join", "position": "derive:Position", "part": "derive:PartOf"}
)


def check_derived(columns: Mapping[str, Column]) -> None:
    """Every derived column is made from declared ones that the data bring themselves.

    >>> from shoal.core.schema import Column
    >>> check_derived({"a": Column("plain"), "ab": Column("quasi", derive=Join(("a", "b")))})
    Traceback (most recent call last):
    shoal.core.errors.UsageError: columns.ab.derive: ...
    """
    for name, column in columns.items():
        if column.derive is None:
            continue
        where = f"columns.{name}.derive"
        if column.role in ("subject", "time") or "." in name or "[" in name:
            raise UsageError(
                "a derived column is quasi, sensitive, identifier or plain, and its name is no path", where=where
            )
        for source in column.derive.sources:
            if source not in columns:
                raise UsageError(
                    f"the column {source!r} is not declared",
                    where=where,
                    hint="say its role, too: role: identifier",
                )
            if columns[source].derive is not None or "[" in source:
                raise UsageError(
                    f"the column {source!r} cannot be read here", where=where, hint="name columns of the data"
                )
        guarded = [s for s in column.derive.sources if columns[s].role in ("subject", "identifier", "quasi")]
        if guarded and column.role not in ("identifier", "quasi"):
            # published as it is, it would show what the hidden or generalized column does not
            raise UsageError(
                f"it is made from {guarded[0]!r}, which names or describes people, and would be shown as it is",
                where=where,
                hint="role: quasi, or identifier",
            )
        column.derive.check(columns, where)
