"""Event time: the one parser of durations, the one reader of times, and what changes with the hour.

Inside, time is whole microseconds since 1970. A bad time (missing, no number and no ISO text, before 1970, beyond the
year 9999) is -1: its event is withheld and counted. Every road reads a value by itself, so neither the batch it comes
in nor the type of its column changes its time: the number 1600000000.5, the text "1600000000.5" and the text
"2020-09-13T12:26:40.5Z" are one moment. How far an event may move the clock is said in ``kernels/shared/clock.py``.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from shoal.core.schema import Schema

Micros = NDArray[np.int64]
Unit = Literal["s", "ms", "us", "ns"]
Duration = str | int | float

SECOND = 1_000_000
PER_SECOND: dict[str, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
LENGTH = {
    "us": 1,
    "ms": 1_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86400 * SECOND,
    "w": 604800 * SECOND,
}
LAST = 253_402_300_799 * SECOND  # the end of the year 9999
SOME = 100  # texts that are worth a compiled loop
FEW = 1_000  # texts that are read one by one before polars has begun
AHEAD = 3600 * SECOND  # where nobody says otherwise, one person more than an hour ahead moves no clock
WEEK = 7 * 24 * 60  # minutes
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d|w)")
_WHOLE = r"^\d{1,19}$"
NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?$"
_ISO = r"^\d{4}-\d{2}-\d{2}[T ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?$"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICRO = datetime.timedelta(microseconds=1)
_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)")


def duration(text: Duration, *, where: str = "duration") -> int:
    """Microseconds of ``"1h"``, ``"1h30m"``, ``"250ms"``; a bare number is seconds.

    >>> duration("1h30m"), duration(2)
    (5400000000, 2000000)
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool) and math.isfinite(text) and text >= 0:
        return round(text * SECOND)
    parts = _PART.findall(str(text))
    if not parts or _PART.sub("", str(text)).strip():
        raise UsageError(
            "expected a duration, found something else", where=where, hint="for example 30s, 1h, 1h30m, 1d"
        )
    return sum(round(float(count) * LENGTH[unit]) for count, unit in parts)


def period(text: Duration, *, where: str = "duration") -> int:
    """A duration that cuts time into pieces, in microseconds: longer than nothing.

    >>> period("1h30m")
    5400000000
    """
    micros = duration(text, where=where)
    if micros <= 0:
        raise UsageError("expected a duration longer than zero", where=where, hint="for example 30s, 15m, 1h30m, 7d")
    return micros


def words(micros: int) -> str:
    """A duration for people, in its largest whole units.

    >>> words(5_400_000_000), words(0)
    ('1h30m', '0s')
    """
    out = ""
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, micros = divmod(micros, LENGTH[unit])
        out += f"{count}{unit}" if count else ""
    return out or "0s"


def micros(values: pl.Series | Sequence[Any] | NDArray[Any], unit: Unit = "s") -> Micros:
    """Event times of a column as whole microseconds; -1 where unusable. Numbers are in ``unit``; dates know theirs.

    >>> micros([1.5, float("nan"), -3, None, "2", "1970-01-01T00:00:03Z"]).tolist()
    [1500000, -1, -1, -1, 2000000, 3000000]
    """
    import polars as pl

    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return _scaled(values, unit)
    if not isinstance(values, pl.Series):
        kinds = set(map(type, values))
        if kinds == {float}:
            return _scaled(np.array(values, np.float64), unit)
        one = scale(unit)
        return np.fromiter(map(one, values), np.int64, len(values))
    dtype = values.dtype
    if dtype in (pl.Datetime, pl.Date):
        whole = values.cast(pl.Datetime("us")).cast(pl.Int64).fill_null(-1).to_numpy()
        return np.where((whole >= 0) & (whole <= LAST), whole, -1)
    if dtype.is_integer():
        return _scaled(values.cast(pl.Int64, strict=False).fill_null(-1).to_numpy(), unit)
    if dtype.is_numeric():
        return _scaled(values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy(), unit)
    if dtype == pl.String and len(values) >= SOME:
        numbers = _plain_numbers(values)
        if numbers is not None:
            return _scaled(numbers, unit)
    if dtype == pl.String and len(values) <= FEW:
        return np.fromiter(map(scale(unit), values.to_list()), np.int64, len(values))
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return _texts(values.cast(pl.String).str.strip_chars(" \t\r\n"), unit)
    return np.full(len(values), -1, np.int64)


def _plain_numbers(texts: pl.Series) -> NDArray[np.float64] | None:
    """Texts that are all numbers such as 1600000000.5, missing ones NaN; none if one is anything else."""
    from shoal.core.arrow import raw_texts
    from shoal.kernels.shared.decimal_texts import plain_numbers

    data, starts, lengths = raw_texts(texts)
    out = np.empty(len(starts), np.float64)
    return out if plain_numbers(data, starts, lengths, out) else None


def _scaled(values: NDArray[Any], unit: Unit) -> Micros:
    per = PER_SECOND[unit]
    if values.dtype.kind == "f":
        exact = values.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            good = (exact >= 0) & (exact <= LAST / SECOND * per) & (exact < 2.0**63)
        exact = np.where(good, exact, 0)
        # a whole number is read as one: 1999.0 nanoseconds are as long as 1999
        near = np.floor(exact * (SECOND / per) + 0.5).astype(np.int64)
        return np.where(good, np.where(exact == np.floor(exact), _whole(exact.astype(np.int64), per), near), -1)
    good = (values >= 0) & (values <= min(LAST // SECOND * per, 2**63 - 1))
    return np.where(good, _whole(np.where(good, values, 0).astype(np.int64), per), -1)


def _whole(values: Micros, per: int) -> Micros:
    return values * (SECOND // per) if per <= SECOND else values // (per // SECOND)


def _texts(texts: pl.Series, unit: Unit) -> Micros:
    """Texts, each read as :func:`scale` reads it; the common forms by the column."""
    import polars as pl

    out = np.full(len(texts), -1, np.int64)
    left = texts.is_not_null().to_numpy()
    forms: list[tuple[str, Callable[[pl.Series], Micros]]] = [
        (_WHOLE, lambda few: _scaled(few.cast(pl.Int64, strict=False).fill_null(-1).to_numpy(), unit)),
        (_ISO + "|" + _ISO[:-1] + "Z$", lambda few: micros(_dates(few))),
        (NUMBER, lambda few: _scaled(few.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy(), unit)),
    ]
    for form, read in forms:
        if not left.any():
            return out
        fits = left & texts.str.contains(form).fill_null(False).to_numpy()
        if fits.any():
            out[fits] = read(texts.filter(pl.Series(fits)))
            left &= ~fits
    if left.any():
        one = scale(unit)
        out[left] = [one(text) for text in texts.filter(pl.Series(left)).to_list()]
    return out


def _dates(texts: pl.Series) -> pl.Series:
    plain = texts.str.strip_suffix("Z").str.replace(" ", "T", literal=True)
    return plain.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us", strict=False)


def scale(unit: Unit) -> Callable[[Any], int]:
    """The same for one time: a function from a number, a date or a text to microseconds, -1 where unusable.

    >>> scale("ns")(1_600_000_000_000_001_999), scale("s")(float("nan")), scale("s")("1970-01-01 01:00+01:00")
    (1600000000000001, -1, 0)
    """
    per = PER_SECOND[unit]
    factor, most, last = SECOND / per, LAST / SECOND * per, min(LAST // SECOND * per, 2**63 - 1)

    def one(value: Any) -> int:
        if isinstance(value, (float, np.floating)) and value != value // 1:
            return int(float(value) * factor + 0.5) if 0 <= value <= most else -1
        if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
            if not 0 <= value <= last:
                return -1
            whole = int(value)
            return whole * (SECOND // per) if per <= SECOND else whole // (per // SECOND)
        if isinstance(value, str):
            return one(_number(value)) if re.match(NUMBER, value.strip(" \t\r\n"), re.ASCII) else _moment(value)
        if isinstance(value, (datetime.date, np.datetime64)):
            return _since(value)
        return -1

    return one


def _number(text: str) -> float:
    text = text.strip(" \t\r\n")
    return int(text) if re.match(_WHOLE, text, re.ASCII) else float(text)


def _moment(text: str) -> int:
    try:
        return _since(datetime.datetime.fromisoformat(text.strip(" \t\r\n")))
    except ValueError:
        return -1


def _since(value: Any) -> int:
    """Microseconds from 1970 to a date or a moment; times without a zone are UTC."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):  # "not a time", or beyond the years Python knows
        return -1
    since = ((value if value.tzinfo else value.replace(tzinfo=datetime.UTC)) - _EPOCH) // _MICRO
    return since if 0 <= since <= LAST else -1


class EventTime(NamedTuple):
    """The time column of a schema: its name, its unit, and its bounds in microseconds.

    ``ahead`` is how far one person alone may move the clock; ``None`` leaves the choice to the method.

    >>> from shoal.core.schema import Column, Schema
    >>> EventTime.of(Schema({"at": Column("time", unit="ms", late="1h30m")}))
    EventTime(name='at', unit='ms', late=5400000000, ahead=None)
    """

    name: str | None = None
    unit: Unit = "s"
    late: int = 0
    ahead: int | None = None

    @classmethod
    def of(cls, schema: Schema) -> EventTime:
        """What a schema says about time; without a time column events are numbered."""
        name = next(iter(schema.of("time")), None)
        if name is None:
            return cls()
        column, where = schema[name], f"columns.{name}"
        ahead = None if column.ahead is None else duration(column.ahead, where=f"{where}.ahead")
        return cls(name, column.unit, duration(column.late, where=f"{where}.late"), ahead)


class Hours(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"start": "from", "end": "to"}):
    """A part of the week: from one time of day to another (over midnight if need be), on some days or all.

    >>> len(Hours("22:00", "06:00", ("mon",)).minutes()) // 60
    8
    """

    start: str
    end: str
    days: tuple[Day, ...] = ()

    def __post_init__(self) -> None:
        for text in (self.start, self.end):
            if not _CLOCK.fullmatch(text) or _minute(text) > 24 * 60:
                raise UsageError("expected a time of day like 22:00", where="hours")

    def minutes(self) -> NDArray[np.int64]:
        """The minutes of the week (Monday 00:00 is 0) that lie within."""
        length = (_minute(self.end) - _minute(self.start)) % (24 * 60) or 24 * 60
        span = np.arange(_minute(self.start), _minute(self.start) + length)
        firsts = [DAYS.index(d) * 24 * 60 for d in self.days or DAYS]
        return np.concatenate([(span + first) % WEEK for first in firsts])


def _minute(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def weekly(default: int, spells: Sequence[tuple[Hours, int]]) -> NDArray[np.int64]:
    """A value per minute of the week: ``default`` except where a spell says otherwise; the last spell wins.

    >>> night = Hours("22:00", "06:00")
    >>> weekly(1, [(night, 4)])[[0, 12 * 60]].tolist()
    [4, 1]
    """
    table = np.full(WEEK, default, np.int64)
    for hours, value in spells:
        table[hours.minutes()] = value
    return table


def minute_of_week(times: Micros, offset: int = 0) -> NDArray[np.int64]:
    """The minute of the week of event times; ``offset`` microseconds east of UTC. 1970 began on a Thursday.

    >>> minute_of_week(np.array([0])).tolist()  # 1970 began on a Thursday
    [4320]
    """
    return ((times + offset) // (60 * SECOND) + 3 * 24 * 60) % WEEK
