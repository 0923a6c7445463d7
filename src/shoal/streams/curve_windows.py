"""The state of curves of a stream: events held by window, and what becomes of them when a window ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.clock import WITNESSES
from shoal.core.columns import require_columns
from shoal.core.errors import InputError, UsageError
from shoal.core.schema import Schema
from shoal.core.sealed_state import seal, unseal
from shoal.core.time import AHEAD, EventTime
from shoal.kernels.shared import clock as clocks
from shoal.promises.base import Promise, those_about
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.series.diverse import refuse_promises
from shoal.series.input import LARGEST
from shoal.series.long import in_zone
from shoal.streams.base import Batch, Numbers, Outcomes, Reason, Running
from shoal.streams.curve_rows import AT, EVENT, TIME, WHO, Form, joined_outcomes, released_window
from shoal.streams.snapshots import frame_bytes, frame_of
from shoal.streams.texts import Printer

if TYPE_CHECKING:
    from shoal.streams.curves import Curves

KIND, VERSION = "curves", 1
BORN = "\0born"  # of an event ahead of the clock: the clock when it came; -2 of others
START = "\0window"


class State(msgspec.Struct):
    """The inside of a snapshot."""

    about: str
    clock: bytes
    windows: list[tuple[int, Form, bytes]]
    counts: dict[str, int]


@dataclasses.dataclass
class Window:
    """The events of a window that is not over."""

    end: int
    form: Form
    parts: list[pl.DataFrame]

    def frame(self) -> pl.DataFrame:
        """All of them, in the order of arrival."""
        if len(self.parts) > 1:
            self.parts = [pl.concat(self.parts, how="vertical_relaxed")]
        return self.parts[0]


class RunningCurves(Running):
    """Curves at work."""

    def __init__(
        self,
        spec: Curves,
        schema: Schema,
        promises: Sequence[Promise],
        reading: Mapping[str, Any],
        key: bytes,
        snapshot: bytes | None,
    ) -> None:
        self._spec, self._schema, self._reading, self._key = spec, schema, reading, key
        self._promise, self._others = _promises(promises)
        time = EventTime.of(schema)
        if time.name is None or schema.subject is None:
            raise UsageError(
                "curves need a time and a subject", where="curves", hint="declare a column with each of these roles"
            )
        self._time, self._late = time, time.late
        self._ahead = AHEAD if time.ahead is None else time.ahead
        self._clock = clocks.new(time.late, self._ahead, WITNESSES)
        self._people = Printer(key, "subject")
        self._windows: dict[int, Window] = {}
        self._counts = dict.fromkeys(("next", "events", "released", "withheld", "rows", "windows", "groups"), 0)
        self._counts |= {"smallest": 0, **{reason.name.lower(): 0 for reason in Reason}}
        self._about = repr((spec, sorted(map(repr, promises)), schema.quasi, schema.sensitive))
        if snapshot is not None:
            self._restore(msgspec.msgpack.decode(unseal(snapshot, KIND, key, version=VERSION), type=State))

    def push(self, batch: Batch) -> Outcomes:
        """See :class:`Running`."""
        if not len(batch):
            return Outcomes()
        if batch.first < self._counts["next"]:
            raise UsageError(
                f"expected events from number {self._counts['next']}, found {batch.first}",
                where=KIND,
                hint="every event is pushed once",
            )
        assert batch.subjects is not None
        self._counts["next"] = batch.first + len(batch)
        self._counts["events"] += len(batch)
        held, usable = self._held_form(batch)
        verdicts, nows = np.zeros(len(batch), np.int8), np.zeros(len(batch), np.int64)
        clocks.tell_all(self._clock, batch.times, self._people.column(batch.subjects.cast(pl.String)), verdicts, nows)
        held = held.with_columns(pl.Series(BORN, np.where(verdicts == clocks.FUTURE, nows, np.int64(-2))))
        reason = np.where(verdicts == clocks.TOO_LATE, np.uint8(Reason.TOO_LATE), np.uint8(0))
        reason = np.where(usable & (verdicts != clocks.BAD), reason, np.uint8(Reason.BAD))
        out: list[Outcomes] = []
        # between two of these no window ends: so it is the same whether events come one by one or many at once
        _, opened = self._places(np.maximum(nows - self._late, 0))
        steps = np.flatnonzero(np.diff(opened)) + 1
        times = batch.frame[self._time.name or ""]
        for rows in np.split(np.arange(len(batch)), steps):
            out.append(self._advance(int(nows[rows[0]])))
            out.append(self._hold(held[rows], rows, reason[rows], int(nows[rows[-1]]), times.gather(rows)))
        return joined_outcomes(out)

    def tick(self, now: int) -> Outcomes:
        """See :class:`Running`."""
        clocks.tick(self._clock, now)
        return self._advance(int(self._clock[clocks.NOW]))

    def flush(self) -> Outcomes:
        """See :class:`Running`. The last window is released as far as it came."""
        return joined_outcomes([self._release(start) for start in sorted(self._windows)])

    def snapshot(self) -> bytes:
        """See :class:`Running`. Sealed with the key, because held events are kept whole."""
        windows = [(start, w.form, frame_bytes(w.frame())) for start, w in sorted(self._windows.items())]
        state = State(self._about, self._clock.tobytes(), windows, self._counts)
        return seal(msgspec.msgpack.encode(state), KIND, self._key, version=VERSION)

    @property
    def held(self) -> int:
        """See :class:`Running`."""
        return sum(part.height for window in self._windows.values() for part in window.parts)

    @property
    def now(self) -> int | None:
        """See :class:`Running`."""
        now = int(self._clock[clocks.NOW])
        return now if self._windows and now != clocks.UNSET else None

    @property
    def counters(self) -> Mapping[str, int]:
        """See :class:`Running`; ``rows`` released (a curve has one per instant), ``windows`` and ``groups`` of them."""
        return {name: count for name, count in self._counts.items() if name not in ("next", "smallest")}

    def figures(self) -> Mapping[str, Any]:
        """See :class:`Running`."""
        numbers = [w.frame()[EVENT][0] for w in self._windows.values()]
        decided = self._counts["released"] + self._counts["withheld"]
        return {
            "smallest_group": self._counts["smallest"],
            "withheld_share": self._counts["withheld"] / max(1, decided),
            "held": self.held,
            "oldest_event": min(numbers, default=None),
        }

    def _held_form(self, batch: Batch) -> tuple[pl.DataFrame, NDArray[np.bool_]]:
        """What is kept of events, and which of them have a usable value."""
        values = [name for name in self._schema.quasi if name in batch.frame.columns]
        beside = [name for name in self._schema.sensitive if name in batch.frame.columns]
        named = [p.sensitive for p in self._others if p.sensitive is not None]
        require_columns([self._time.name or "", *named], batch.frame.columns, KIND, error=InputError,
                        hint="the view must show it")  # fmt: skip
        if not values:
            raise InputError("there is no column of values", where=KIND, hint="the view must show a quasi column")
        numbers = {name: _number(batch.frame[name]) for name in values}
        there = np.zeros(len(batch), np.bool_)
        for name, column in numbers.items():
            known = column.is_not_null().to_numpy()
            there |= known
            lost = ~known & batch.frame[name].is_not_null().to_numpy()
            there &= ~lost
        bucket, start = self._places(np.maximum(batch.times, 0))
        assert batch.subjects is not None
        columns = [
            pl.Series(EVENT, batch.first + np.arange(len(batch), dtype=np.int64)),
            pl.Series(TIME, batch.times),
            pl.Series(AT, bucket),
            pl.Series(START, start),
            batch.subjects.cast(pl.String).alias(WHO),
            *[column.alias(name) for name, column in numbers.items()],
            *[batch.frame[name] for name in beside],
        ]
        return pl.DataFrame(columns), there

    def _hold(
        self, held: pl.DataFrame, rows: NDArray[np.int64], reason: NDArray[np.uint8], now: int, times: pl.Series
    ) -> Outcomes:
        """Keep events, each in its window."""
        starts = held[START].to_numpy()
        ends = self._ends(starts)
        gone = (reason == 0) & (ends <= now - self._late) if now >= 0 else np.zeros(len(rows), np.bool_)
        reason = np.where(gone, np.uint8(Reason.TOO_LATE), reason)
        fine = np.flatnonzero(reason == 0)
        over = fine[max(0, self._spec.most - self.held) :]
        reason[over] = Reason.FULL
        fine = fine[: len(fine) - len(over)]
        for start in np.unique(starts[fine]).tolist():
            mine = fine[starts[fine] == start]
            if start not in self._windows:
                form = Form.of(times.gather(mine[:1]), self._time.unit)
                self._windows[start] = Window(int(ends[mine[0]]), form, [])
            self._windows[start].parts.append(held[mine].drop(START))
        bad = np.flatnonzero(reason)
        return self._withheld(held[EVENT].to_numpy()[bad], reason[bad])

    def _advance(self, now: int) -> Outcomes:
        """The clock says ``now``: release windows that are over, give up events that it goes on without."""
        if now == clocks.UNSET:
            return Outcomes()
        over = [start for start in sorted(self._windows) if self._windows[start].end <= now - self._late]
        if not over:
            return Outcomes()
        out = [self._release(start) for start in over]
        for start, window in sorted(self._windows.items()):
            frame = window.frame()
            born = frame[BORN].to_numpy()
            ahead = (born > -2) & (frame[TIME].to_numpy() > now + self._ahead)
            lost = ahead & (np.where(born < 0, 0, born) + self._ahead < now)
            if lost.any():
                numbers = frame[EVENT].to_numpy()[lost]
                out.append(self._withheld(numbers, np.full(len(numbers), Reason.FUTURE, np.uint8)))
                window.parts = [frame.filter(pl.Series(~lost))]
                if lost.all():
                    del self._windows[start]
        return joined_outcomes(out)

    def _release(self, start: int) -> Outcomes:
        """The curves of a window, and what became of each of its events."""
        window = self._windows.pop(start)
        found = released_window(window.frame().drop(BORN), start, window.form, self._schema, self._promise,
                                self._others, self._reading, self._time.name or "")  # fmt: skip
        self._counts["windows"] += 1
        self._counts["released"] += int((found.events >= 0).sum()) + len(found.joined)
        if found.released is not None:
            self._counts["rows"] += found.released.height
            self._counts["groups"] += int(found.released["group"].n_unique())
            sizes = found.released.group_by("group").agg(pl.col("series").n_unique())["series"].to_list()
            self._counts["smallest"] = min([*sizes, *([self._counts["smallest"]] if self._counts["smallest"] else [])])
        told = self._withheld(found.withheld, found.reasons)
        return dataclasses.replace(found, withheld=told.withheld, reasons=told.reasons)

    def _withheld(self, numbers: Numbers, reasons: NDArray[np.uint8]) -> Outcomes:
        self._counts["withheld"] += len(numbers)
        for reason, count in zip(*np.unique(reasons, return_counts=True), strict=True):
            self._counts[Reason(int(reason)).name.lower()] += int(count)
        return Outcomes(withheld=numbers, reasons=reasons)

    def _places(self, times: Numbers) -> tuple[Numbers, Numbers]:
        """The instant of each time, and the window of that instant, in microseconds."""
        bucket = self._local(times).dt.truncate(self._spec.every)
        return _micros(bucket), _micros(bucket.dt.truncate(self._spec.window))

    def _ends(self, starts: Numbers) -> Numbers:
        return _micros(self._local(starts).dt.offset_by(self._spec.window))

    def _local(self, times: Numbers) -> pl.Series:
        return in_zone(pl.Series(times).cast(pl.Datetime("us")).dt.replace_time_zone("UTC"), self._spec.zone)

    def _restore(self, state: State) -> None:
        if state.about != self._about:
            raise UsageError(
                "the snapshot was made for other columns, promises or parameters",
                where=KIND,
                hint="start anew: what is held there cannot be released by others",
            )
        self._clock = np.frombuffer(state.clock, np.int64).copy()
        self._counts |= state.counts
        for start, form, held in state.windows:
            self._windows[start] = Window(int(self._ends(np.array([start]))[0]), form, [frame_of(held)])


def _micros(times: pl.Series) -> Numbers:
    return times.dt.convert_time_zone("UTC").to_physical().to_numpy().astype(np.int64)


def _number(column: pl.Series) -> pl.Series:
    """Numbers that curves can have; null where there is none."""
    if column.dtype.is_integer():
        return column.cast(pl.Int64, strict=False)
    numbers = column.cast(pl.Float64, strict=False) if not column.dtype.is_nested() else pl.Series([None] * len(column))
    fine = numbers.cast(pl.Float64).is_finite() & (numbers.abs() <= LARGEST)
    return pl.select(pl.when(fine).then(numbers)).to_series().cast(pl.Float64)


def _promises(promises: Sequence[Promise]) -> tuple[KPAnonymity, list[Promise]]:
    found = [p for p in those_about(promises, "curves") if isinstance(p, KPAnonymity)]
    if len(found) != 1:
        raise UsageError(
            "curves keep kP-anonymity, and it is not promised",
            where=KIND,
            hint="promises: [{use: kP-anonymity, k: 16, p: 6}]",
        )
    others = [p for p in promises if p is not found[0]]
    refuse_promises(others)
    return found[0], others
