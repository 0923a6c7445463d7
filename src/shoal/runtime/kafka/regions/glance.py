"""What the repartition step reads of a record: the columns that tell its region, and its time. Nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.schema import Schema
from shoal.core.time import EventTime, micros
from shoal.masks.base import dtype_of, text_of
from shoal.policy.paths import tree
from shoal.runtime.kafka.formats.flat_records import FlatRecords
from shoal.runtime.kafka.regions.blocks import UNTIMED
from shoal.views.types import decoder, getters, in_utc

EXACT = 2.0**53  # whole numbers up to here are exact as floats


class Glance:
    """Reads a few columns of JSON records. What cannot be read is null: whoever publishes the record will refuse it."""

    def __init__(self, schema: Schema, names: Sequence[str]) -> None:
        time = EventTime.of(schema)
        self._time, self._unit = time.name, time.unit
        wanted = dict.fromkeys([*names, *([time.name] if time.name is not None else [])])
        self._columns = {name: schema[name] for name in wanted if schema[name].derive is None}
        if self._time not in self._columns:
            self._time = None
        root = tree(self._columns)
        self._decode = decoder(root, Schema(self._columns)) if self._columns else None
        self._getters = dict(getters(root)) if self._columns else {}
        self._nothing = self._decode(b"{}") if self._decode is not None else None
        self._names = [n for n in names if n in self._columns]
        # times are numbers or texts, mostly always the same
        loose = self._time is not None and self._columns[self._time].type is None
        as_number = [FlatRecords(self._columns, {str(self._time): pl.Float64()})] if loose else []
        self._flat = [*as_number, FlatRecords(self._columns)]

    @property
    def timed(self) -> bool:
        """Whether records have an event time."""
        return self._time is not None

    def read(self, values: Sequence[bytes]) -> tuple[pl.DataFrame, NDArray[np.int64]]:
        """The columns of these records, and their event times (below 0 where there is none)."""
        nothing = np.full(len(values), UNTIMED, np.int64)
        if self._decode is None:
            return pl.DataFrame({"": nothing}), nothing
        plain = self._plain(values)
        if plain is not None:
            times = nothing if self._time is None else micros(plain[self._time], self._unit)
            return plain.select(self._names) if self._names else pl.DataFrame({"": nothing}), times
        rows = self._rows(values)
        series = [self._series(name, rows) for name in self._names]
        frame = pl.DataFrame(series) if series else pl.DataFrame({"": nothing})
        if self._time is None:
            return frame, nothing
        return frame, micros(list(map(self._getters[self._time], rows)), self._unit)

    def _plain(self, values: Sequence[bytes]) -> pl.DataFrame | None:
        """Records of the plain kind, by a compiled loop."""
        for at, flat in enumerate(self._flat):
            frame = flat.read(values)
            if frame is None:
                continue
            if len(self._flat) > 1 and frame.schema[str(self._time)] == pl.Float64:
                largest = frame[str(self._time)].max()
                if largest is not None and largest > EXACT:  # type: ignore[operator]
                    continue
            self._flat.insert(0, self._flat.pop(at))  # the next batch will be alike
            return frame
        return None

    def _rows(self, values: Sequence[bytes]) -> list[Any]:
        assert self._decode is not None
        try:
            return list(map(self._decode, values))
        except _UNREADABLE:  # seldom: then one by one
            return [self._row(value) for value in values]

    def _row(self, value: bytes) -> Any:
        assert self._decode is not None
        try:
            return self._decode(value)
        except _UNREADABLE:
            return self._nothing

    def _series(self, name: str, rows: list[Any]) -> pl.Series:
        column, values = self._columns[name], map(self._getters[name], rows)
        if column.type is None:
            return pl.Series(name, [None if v is None else text_of(v) for v in values], dtype=pl.String)
        if column.type == "datetime":
            values = map(_moment, values)
        return pl.Series(name, list(values), dtype=dtype_of(column.type), strict=False)


def _moment(value: Any) -> Any:
    try:
        return in_utc(value)
    except OverflowError:
        return None


class Pace:
    """The event time of one partition as it is read: never moved by a single record that is far from all others.

    >>> Pace(ahead=10).of(np.array([5, 7, 6, 5000, 8, -1])).tolist()
    [5, 7, 7, 7, 8, 8]
    >>> Pace(ahead=10).of(np.array([5, 5000, 5001])).tolist()
    [5, 5000, 5001]
    """

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead
        self.now = UNTIMED
        self._far = UNTIMED  # a record far from the others, which the next one may confirm

    def of(self, times: NDArray[np.int64], confirmed: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """The partition's time after each record; ``confirmed`` are those that others stand :func:`near`."""
        if not len(times):
            return times
        sure = near(times, self._ahead) if confirmed is None else confirmed
        known = np.flatnonzero(times >= 0) if self.now < 0 else times[:0]
        if len(known):  # the first that has a time says where it begins
            first = int(known[0])
            self.now, self._far = int(times[first]), UNTIMED
            return np.concatenate([np.full(first, UNTIMED), self.of(times[first:], sure[first:])])
        if self.now >= 0 and self._far < 0:
            steady = np.maximum.accumulate(np.maximum(times, self.now))
            before = np.concatenate([[self.now], steady[:-1]])
            # the usual case at once: no time is missing, or alone and further away than allowed
            if (((times <= before + self._ahead) | sure) & (times >= before - self._ahead)).all():
                self.now = int(steady[-1])
                return steady
        pairs = zip(times.tolist(), sure.tolist(), strict=True)
        return np.array([self._one(time, agreed) for time, agreed in pairs], np.int64)

    def _one(self, time: int, agreed: bool) -> int:
        if time < 0:
            return self.now
        if self.now < 0 or abs(time - self.now) <= self._ahead or (agreed and time > self.now):
            self.now, self._far = max(self.now, time), UNTIMED
        elif self._far >= 0 and abs(time - self._far) <= self._ahead:  # two in a row are right, also about the past
            self.now, self._far = time, UNTIMED
        else:
            self._far = time
        return self.now


def near(times: NDArray[np.int64], ahead: int) -> NDArray[np.bool_]:
    """Whether another of these records stands near each: after a night, whoever comes first is not alone for long.

    >>> near(np.array([5, 5000, 5001, 9000]), 10).tolist()
    [False, True, True, False]
    """
    order = np.argsort(times, kind="stable")
    close = np.diff(times[order]) <= ahead
    out = np.zeros(len(times), np.bool_)
    out[order] = np.concatenate([close, [False]]) | np.concatenate([[False], close])
    return out


_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError)
