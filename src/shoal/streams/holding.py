"""What all methods with delay share: held tuples, the clock, published boxes, outcomes, snapshots.

A method only says how held tuples are decided (:meth:`Holding.decide`). The kernels release through
:mod:`shoal.kernels.delay.published`, which checks every promise before a tuple gets its box; there is no other way out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.clock import WITNESSES
from shoal.core.columns import require_columns
from shoal.core.errors import InputError, UsageError
from shoal.core.said import fingerprint, meant
from shoal.core.schema import Schema
from shoal.core.time import AHEAD, EventTime
from shoal.kernels.delay.held import Clock
from shoal.kernels.delay.published import HELD, LEFT, WITHHELD, Released
from shoal.kernels.delay.stream_boxes import Tuples
from shoal.kernels.shared import clock as clocks
from shoal.kernels.shared.promises import Rules, Work, workspace
from shoal.promises.base import Promise
from shoal.streams.base import Batch, Outcomes, Reason, Running, together
from shoal.streams.bounds import Bounds
from shoal.streams.coder import Coded, QuasiCoder
from shoal.streams.published_boxes import KeptBoxes
from shoal.streams.sensitive import Sensitive
from shoal.streams.snapshots import Array, Content, frame_bytes, frame_of, packed, refuse_other, unpacked
from shoal.streams.tally import Tally
from shoal.streams.texts import Printer
from shoal.streams.waiting import BUSY, COLUMNS, IDLE, Waiting

Ints = NDArray[np.int64]
OWN = "own."  # names of the arrays of a method in a snapshot
KEPT = "kept."


class Events(NamedTuple):
    """What happened, in order: the number of each event, the clock after it, its row among the tuples (-1: none)."""

    number: Ints
    now: Ints
    row: Ints


class Task(NamedTuple):
    """What a method decides on: tuples held and new, promises, and where outcomes go."""

    tuples: Tuples
    prints: Ints
    rules: Rules
    work: Work
    released: Released
    event: Ints  # number of each tuple's event
    arrived: Ints  # clock at its arrival
    mark: Ints  # what the method remembers of it, -1 at first


class Portion(NamedTuple):
    """Tuples that are decided together: ``at`` one event, or at whichever of all; ``last``: none may wait longer."""

    rows: Ints
    at: int | None
    last: bool


class Holding(Running):
    """A method with delay at work. Memory is bounded by the delay and by the number of boxes kept."""

    method = "holding"
    leafless = False  # VInfoLoss instead of the normalized certainty penalty
    patient = False  # whether it tells those who wait from those who have left: then the latter are moved away rarely

    def __init__(
        self, bounds: Bounds, schema: Schema, promises: Sequence[Promise], key: bytes, snapshot: bytes | None
    ) -> None:
        self.bounds = bounds
        self.sensitive = Sensitive(promises, schema, key)
        self.coder = QuasiCoder(schema, key, leafless=self.leafless)
        bounds.check(self.sensitive.crowd, timed=bool(schema.of("time")), where=self.method)
        # a box is judged by the values it was published with: they must be values of the same column
        self._promised = msgspec.json.encode(sorted(map(repr, promises))).decode()
        self._meant = {name: fingerprint(meant(schema[name])) for name in (*self.coder.names, *schema.sensitive)}
        self.seq = 0  # tuples that arrived and were decided on
        self._key = key
        self._people = Printer(key, "subject")
        self._order = Printer(key, "order")
        self._timed = bool(schema.of("time"))
        self._time = next(iter(schema.of("time")), "")
        self._clock = _clock(schema, bounds)
        self._kept: KeptBoxes | None = None
        self.waiting = self._nobody()
        self._next = 0
        self._tally = Tally()
        if snapshot is not None:
            self._restore(unpacked(snapshot, self.method, key))

    def decide(self, task: Task, events: Events, *, finish: bool) -> None:
        """Release or withhold what is due after these events; everything if ``finish``."""
        raise NotImplementedError

    def waits(self, events: Events) -> bool:
        """Whether nothing can be due at these events, so that there is nothing to decide."""
        return False

    def opened(self) -> None:
        """Make the method's own state; the shape of the columns is known now."""

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The method's own state, for a snapshot; arrays that :meth:`opened` made are written over on restoring."""
        return {}

    @property
    def kept(self) -> KeptBoxes:
        """The published boxes."""
        assert self._kept is not None
        return self._kept

    @property
    def known(self) -> Mapping[str, tuple[int, int]]:
        """See :class:`Running`."""
        return self.coder.known

    def push(self, batch: Batch) -> Outcomes:
        """See :class:`Running`."""
        if not len(batch):
            return Outcomes()
        self._accept(batch)
        self._mind_time(batch.frame)
        if self._kept is None:
            self.coder.learn(batch.frame)
            self._start()
        coded = self.coder.code(batch.frame)
        codes, wrong = self.sensitive.code(batch.frame)
        number = batch.first + np.arange(len(batch), dtype=np.int64)
        prints = number + 1 if batch.subjects is None else self._people.column(batch.subjects.cast(pl.String))
        reason = np.where(coded.reason > 0, coded.reason, wrong)
        # without a subject an event that cannot be read would count as a person whose values are missing
        nobody = prints == 0 if batch.unreadable is None else (prints == 0) | batch.unreadable
        reason = np.where((reason == 0) & nobody, np.uint8(Reason.BAD), reason)
        nows = self._tell(batch.times, prints)
        good = np.flatnonzero(reason == 0)
        row = np.full(len(batch), -1, np.int64)
        row[good] = self.waiting.size + np.arange(len(good))
        if len(good):
            new = {"prints": prints[good], "event": number[good], "arrived": nows[good], "mark": -np.ones_like(good)}
            every = len(good) == len(batch)
            frame, coded = (batch.frame, coded) if every else (batch.frame[good], coded.take(good))
            self.waiting.add(frame, coded, codes[:, good], new)
        outcomes = self._run(Events(number, nows, row), finish=False)
        bad = np.flatnonzero(reason)
        self._tally.withheld(reason[bad])
        return Outcomes(
            outcomes.released,
            outcomes.events,
            np.concatenate([outcomes.withheld, number[bad]]),
            np.concatenate([outcomes.reasons, reason[bad]]),
            groups=outcomes.groups,
        )

    def tick(self, now: int) -> Outcomes:
        """See :class:`Running`."""
        clocks.tick(self._clock, now)
        return self._run(self._moment(), finish=False)

    def flush(self) -> Outcomes:
        """See :class:`Running`."""
        return self._run(self._moment(), finish=True)

    @property
    def held(self) -> int:
        """See :class:`Running`."""
        return self.waiting.left

    @property
    def now(self) -> int | None:
        """See :class:`Running`."""
        now = clocks.reading(self._clock)
        return now if self.bounds.delay_time and self.held and now >= 0 else None

    @property
    def counters(self) -> Mapping[str, int]:
        """See :class:`Running`; ``groups`` released at once, ``again``: tuples with a box published before."""
        return self._tally.counters

    def figures(self) -> Mapping[str, Any]:
        """See :class:`Running`."""
        boxes = int(self._kept.published.alive.sum()) if self._kept else 0
        found = self._tally.figures(self.held, boxes, timed=self._timed)
        waiting = self.waiting
        return {**found, "oldest_event": int(waiting.column("event")[waiting.rows].min()) if self.held else None}

    def snapshot(self) -> bytes:
        """See :class:`Running`. Sealed with the key, because held records are kept whole."""
        self.waiting.sweep(share=0)
        arrays: dict[str, NDArray[Any]] = {name: self.waiting.column(name) for name in COLUMNS}
        arrays |= {"clock": self._clock, "reasons": self._tally.reasons}
        if self._kept is not None:
            arrays |= {KEPT + name: array for name, array in self._kept.state().items()}
            arrays |= {OWN + name: array for name, array in self.own_arrays().items()}
        content = Content(
            list(self.coder.names),
            self.sensitive.k,
            self.coder.learnt if self._kept is not None else [],
            frame_bytes(self.waiting.frame()),
            {name: Array.of(array) for name, array in arrays.items()},
            {**self._tally.counts, "next": self._next, "seq": self.seq},
            dict(self._tally.sums),
            [values.state for values in self.sensitive.values],
            self._promised,
            self._meant,
        )
        return packed(content, self.method, self._key)

    def _accept(self, batch: Batch) -> None:
        if batch.first < self._next:
            raise UsageError(
                f"expected events from number {self._next}, found {batch.first}",
                where=self.method,
                hint="every event is pushed once",
            )
        names = [*self.coder.names, *self.sensitive.columns]
        require_columns(names, batch.frame.columns, self.method, error=InputError, hint="the view must show it")
        self._next = batch.first + len(batch)
        self._tally.counts["events"] += len(batch)

    def _mind_time(self, frame: pl.DataFrame) -> None:
        """A published time is one more quasi column: see :meth:`Bounds.beside_time`."""
        if self._time in frame.columns and self.bounds.reuse:
            self.bounds = self.bounds.beside_time(self._time, self.method)

    def _start(self) -> None:
        self._kept = KeptBoxes(self.coder, self.sensitive, self.bounds)
        self.waiting = self._nobody()  # the coder has learnt how deep paths are
        self.opened()

    def _nobody(self) -> Waiting:
        return Waiting(self.coder.empty(), len(self.sensitive.values), self.bounds.delay)

    def _tell(self, times: Ints, prints: Ints) -> Ints:
        """How long the stream had lasted at each event: what waits, waits for a time, not for a moment."""
        elapsed = np.zeros(len(times), np.int64)
        if self._timed:
            clocks.elapse_all(self._clock, times, prints, elapsed)
        return elapsed

    def _moment(self) -> Events:
        """The clock moved, and nothing else happened."""
        one = np.ones(1, np.int64)
        return Events(one * (self._next - 1), one * self._clock[clocks.ELAPSED], -one)

    def _run(self, events: Events, *, finish: bool) -> Outcomes:
        if not self.held:
            return Outcomes()
        if not finish and self.waits(events):
            self.waiting.sweep(share=IDLE if self.patient else 0)
            return Outcomes()
        started = time.thread_time()
        told: list[Outcomes] = []
        for rows, at, last in self.portions(events, finish=finish):
            task, coded = self._task(rows)
            self.decide(task, events if at is None else Events(*(part[at : at + 1] for part in events)), finish=last)
            told.append(self._told(task, coded, rows, events, Reason.END if finish else Reason.DUE))
            box = task.released.box
            self.waiting.leave(rows[(box != HELD) & (box != LEFT)])
        self.waiting.sweep(share=BUSY if self.patient else 0)  # there will be a moment with less to do
        self._tally.pause = max(self._tally.pause, time.thread_time() - started)
        return together([one for one in told if len(one)])

    def portions(self, events: Events, *, finish: bool) -> Iterator[Portion]:
        """What is decided together: here all that has a place, at all of the events."""
        yield Portion(np.arange(self.waiting.size), None, finish)

    def _task(self, rows: Ints) -> tuple[Task, Coded]:
        """Some of the tuples held, as a task."""
        waiting = self.waiting
        every = len(rows) == waiting.size
        columns = {name: waiting.column(name) if every else waiting.column(name)[rows] for name in COLUMNS}
        coded = waiting.coded if every else waiting.coded.take(rows)
        rules = self.sensitive.rules(columns["prints"], waiting.codes(rows))
        # without a subject each tuple was given a number as its person
        self.kept.begin(rules, people=not np.array_equal(columns["prints"], columns["event"] + 1))
        released = _nothing(len(rows), len(self.coder.names), self._tally.counts["emissions"])
        released.box[waiting.gone if every else waiting.gone[rows]] = LEFT
        return Task(self.coder.tuples(coded), columns["prints"], rules, workspace(rules), released,
                    columns["event"], columns["arrived"], columns["mark"]), coded  # fmt: skip

    def _told(self, task: Task, coded: Coded, rows: Ints, events: Events, reason: Reason) -> Outcomes:
        released = task.released
        self._tally.counts["emissions"] = int(released.count[1])
        out, gone = np.flatnonzero(released.box >= 0), np.flatnonzero(released.box == WITHHELD)
        if not len(out) and not len(gone):
            return Outcomes()
        # inside an emission the order is keyed, so that it says nothing about the order of arrival
        out = out[np.lexsort((self._order.of_numbers(task.event[out]), released.when[out]))]
        used = int(released.count[0])
        boxes = (released.box[out], released.low[:used], released.high[:used], released.level[:used])
        at = coded.at[out] if coded.epoch == self.coder.epoch else None
        data = self.coder.publish(self.waiting.frame(rows[out]), at, *boxes) if len(out) else None
        if data is not None and self._time in data.columns:
            data = at_emission(data, self._time, released.when[out])
        groups = self.kept.groups(released, out, task.event)
        reasons = np.full(len(gone), reason, np.uint8)
        self._tally.released(out, task.event, released)
        if self._timed:
            left = events.now[np.searchsorted(events.number, released.cause[out])]
            self._tally.waited(left - task.arrived[out])
        self._tally.withheld(reasons)
        return Outcomes(data, task.event[out], task.event[gone], reasons, groups=groups)

    def _restore(self, content: Content) -> None:
        other = content.names != list(self.coder.names) or content.k != self.sensitive.k
        if other or content.promised != self._promised:
            raise UsageError(
                "the snapshot was made for other quasi columns or other promises",
                where=self.method,
                hint="start anew: what is held there cannot be judged by other promises",
            )
        # who runs a stream has compared all of it; a state of before says nothing of its columns
        refuse_other(content.meant, self._meant, self.method)
        arrays = {name: array.numpy() for name, array in content.arrays.items()}
        self._clock[:] = arrays["clock"]
        self._tally.reasons[: len(arrays["reasons"])] = arrays["reasons"]  # of before there was a further reason
        self._next, self.seq = content.numbers["next"], content.numbers["seq"]
        self._tally.counts = {name: content.numbers[name] for name in self._tally.counts}
        self._tally.sums = dict(content.sums)
        for values, state in zip(self.sensitive.values, content.values, strict=True):
            values.restore(state)
        if not content.learnt:
            return
        self.coder.recall(content.learnt)
        self._start()
        self.kept.restore({n.removeprefix(KEPT): a for n, a in arrays.items() if n.startswith(KEPT)})
        for name, array in self.own_arrays().items():
            array[...] = arrays[OWN + name]
        if len(arrays["event"]):
            frame = frame_of(content.held)
            self._mind_time(frame)
            columns = {name: arrays[name] for name in COLUMNS}
            self.waiting.add(frame, self.coder.code(frame), self.sensitive.code(frame)[0], columns)


def clock_of(task: Task, events: Events, bounds: Bounds) -> Clock:
    """Events and bounds for kernels."""
    return Clock(*events, task.event, task.arrived, bounds.delay, bounds.delay_time, bounds.reuse, bounds.by_time)


def at_emission(data: pl.DataFrame, time: str, emission: Ints) -> pl.DataFrame:
    """One time for all tuples of an emission, that of its latest: their own would tell them apart.

    >>> import numpy as np, polars as pl
    >>> at_emission(pl.DataFrame({"at": [1, 5, 9]}), "at", np.array([0, 0, 1]))["at"].to_list()
    [5, 5, 9]
    """
    return data.with_columns(pl.col(time).max().over(pl.Series(emission)))


def _clock(schema: Schema, bounds: Bounds) -> Ints:
    time = EventTime.of(schema)
    ahead = AHEAD if time.ahead is None else time.ahead
    # a step beyond every bound says no more than the bounds: so absurd times cannot run the count full
    most = max(bounds.delay_time, bounds.reuse if bounds.by_time else 0, 1) + ahead
    clock: Ints = clocks.new(time.late, ahead, WITNESSES, min(most, 2**52))
    return clock


def _nothing(n: int, q: int, emissions: int) -> Released:
    count = np.zeros(3, np.int64)
    count[1] = emissions
    # of tuples that stay held and of boxes that are not made nothing else is read: to clear it all would take longer
    return Released(
        np.full(n, HELD, np.int64),
        np.empty(n, np.int64),
        np.empty((n, q)),
        np.empty((n, q)),
        np.empty((n, q), np.int8),
        np.empty((n, q), np.int64),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n, np.bool_),
        np.empty(n, np.int64),
        np.full(n, -1, np.int64),
        count,
    )
