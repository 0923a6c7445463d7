"""Event time: durations, units, and what changes with the hour. Inside, time is whole microseconds since 1970.

A bad time (missing, not a number, negative, beyond the year 9999) becomes -1: its event is withheld and counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

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
WEEK = 7 * 24 * 60  # minutes
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d|w)")
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
    """Event times as whole microseconds; -1 where unusable. Numbers are in ``unit``; datetimes know theirs.

    >>> micros([1.5, float("nan"), -3, None]).tolist()
    [1500000, -1, -1, -1]
    """
    import polars as pl

    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return _scaled(values, unit)
    try:
        series = values if isinstance(values, pl.Series) else pl.Series(values, strict=False)
    except UnicodeEncodeError:  # half of a surrogate pair is no text, and no time
        series = pl.Series([None if isinstance(v, str) and not v.isascii() else v for v in values], strict=False)
    if series.dtype.is_nested() or series.dtype == pl.Object:
        return np.full(len(series), -1, np.int64)
    if series.dtype in (pl.Datetime, pl.Date):
        whole = series.cast(pl.Datetime("us")).cast(pl.Int64).fill_null(-1).to_numpy()
        return np.where((whole >= 0) & (whole <= LAST), whole, -1)
    if series.dtype.is_integer():
        return _scaled(series.cast(pl.Int64, strict=False).fill_null(-1).to_numpy(), unit)
    if series.dtype == pl.String:
        numbers = series.cast(pl.Float64, strict=False)
        if numbers.null_count() > series.null_count():
            dates = series.str.to_datetime(time_unit="us", strict=False, time_zone="UTC").cast(pl.Int64)
            read = pl.Series(_scaled(numbers.fill_null(np.nan).to_numpy(), unit))
            return np.where(numbers.is_null().to_numpy(), micros(dates, "us"), read.to_numpy())
        series = numbers
    return _scaled(series.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy(), unit)


def _scaled(values: NDArray[Any], unit: Unit) -> Micros:
    per = PER_SECOND[unit]
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            good = (values >= 0) & (values <= LAST / SECOND * per)
        return np.where(good, np.floor(np.where(good, values, 0) * (SECOND / per) + 0.5), -1).astype(np.int64)
    good = (values >= 0) & (values <= min(LAST // SECOND * per, 2**63 - 1))
    whole = np.where(good, values, 0).astype(np.int64)
    return np.where(good, whole * (SECOND // per) if per <= SECOND else whole // (per // SECOND), -1)


def scale(unit: Unit) -> Callable[[Any], int]:
    """The same for one time, fast: a function from a number to microseconds, -1 where unusable.

    >>> scale("ns")(1_600_000_000_000_001_999), scale("s")(float("nan"))
    (1600000000000001, -1)
    """
    per = PER_SECOND[unit]
    factor, most, last = SECOND / per, LAST / SECOND * per, min(LAST // SECOND * per, 2**63 - 1)

    def one(value: Any) -> int:
        if isinstance(value, float):
            return int(value * factor + 0.5) if 0 <= value <= most else -1
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            whole = int(value)
            if not 0 <= whole <= last:
                return -1
            return whole * (SECOND // per) if per <= SECOND else whole // (per // SECOND)
        return int(micros([value], unit)[0])

    return one


class Hours(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"start": "from", "end": "to"}):
    """A part of the week: from one time of day to another (over midnight if need be), on some days or all."""

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
    """A value per minute of the week: ``default`` except where a spell says otherwise; the last spell wins."""
    table = np.full(WEEK, default, np.int64)
    for hours, value in spells:
        table[hours.minutes()] = value
    return table


def minute_of_week(times: Micros, offset: int = 0) -> NDArray[np.int64]:
    """The minute of the week of event times; ``offset`` microseconds east of UTC. 1970 began on a Thursday."""
    return ((times + offset) // (60 * SECOND) + 3 * 24 * 60) % WEEK
