"""Views with window masks on a stream of JSON records: held until their window ends, then published together.

Every record gets exactly one outcome: published, or withheld with a reason. A late record within the bound lands in
the window a sorted stream would have put it in. A record further ahead of the clock than one person alone may move it
waits aside until the clock comes near; it closes no window, and where the clock goes on without it it is withheld.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from shoal.connect.json_out import Cells, rows_of
from shoal.core.arrow import FEW as WORTH_COMPILING
from shoal.core.clock import FUTURE, TOO_LATE, EventClock
from shoal.core.errors import PolicyError, UsageError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.lines import Lines
from shoal.core.sealed_state import opened, seal, unseal
from shoal.core.time import EventTime, scale
from shoal.masks.base import text_of
from shoal.masks.windows import Assigner, Window
from shoal.policy.paths import steps, tree
from shoal.views.frames import FOREVER, FrameGate
from shoal.views.records import UNREADABLE
from shoal.views.role_view import RoleView
from shoal.views.sampling import refuse_sample
from shoal.views.stream_frames import column_of, frame_of, schema_of, told
from shoal.views.types import decoder, getters, in_utc, struct_of

KIND = "windows"
VERSION = 4
WAITING = ("waiting", "events", "past")  # the parts of an assigner's state that hold records
FEW = "too few people in its window"
AHEAD = "ahead of the clock"
MOST_EARLY = 65_536  # records ahead of the clock that may wait


class Outcome(NamedTuple):
    """What became of record ``number``: the published record, or why there is none.

    >>> Outcome(3, None, "unreadable").reason
    'unreadable'
    """

    number: int
    record: bytes | None
    reason: str = ""


class _Held(NamedTuple):
    """A record that waits: as it came, for a snapshot, and as it was read."""

    number: int
    record: bytes
    row: Any


class _Early(NamedTuple):
    """A record ahead of the clock, and where the clock stood when it came."""

    time: int
    born: int | None
    item: _Held


class Published(NamedTuple):
    """What is decided: the records that leave, by their numbers, and what became of the others.

    >>> Published([3], Lines.of([b"{}"]), []).numbers
    [3]
    """

    numbers: list[int]
    records: Lines
    withheld: list[Outcome]


_held = partial(tuple.__new__, _Held)


class WindowGate:
    """One role's view of a stream, window by window. All its window masks must share one window.

    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.masks.aggregate import Aggregate
    >>> from shoal.masks.windows import Tumbling
    >>> schema = Schema({"pid": Column("subject"), "gluc": Column("sensitive", type="float")})
    >>> mean = Aggregate(function="mean", window=Tumbling(size=2), k=2)
    >>> view = RoleView.resolve("lab", schema, ["gluc"], {"gluc": mean})
    >>> gate = WindowGate(view, KeyRing({"default": {1: bytes(32)}}))
    >>> done = [o for n in (1, 2) for o in gate.push(b'{"pid": "p%d", "gluc": %d}' % (n, 4 * n))]
    >>> [o.record for o in [*done, *gate.flush()]]
    [b'{"pid":"*","gluc":6.0}', b'{"pid":"*","gluc":6.0}']
    """

    def __init__(self, view: RoleView, keys: KeyRing | None = None) -> None:
        refuse_sample(view)
        # two windows would publish one record at two moments
        windows = {mask.window for mask in view.windows.values()}
        if len(windows) != 1 or None in windows:
            raise UsageError(
                "on a stream all window masks of a view need one and the same `window`", where=f"views.{view.role}"
            )
        self._view, self._keys = view, keys or KeyRing()
        time = EventTime.of(view.schema)
        self._time, self._scale = time.name, scale(time.unit)
        self._clock = EventClock(time) if time.name else None
        self._early: list[_Early] = []  # in the order of arrival
        self._soonest = self._oldest = FOREVER  # of those: the earliest time, and the clock when the first came
        self._assigner: Assigner[_Held] = Assigner(windows.pop(), late=time.late)  # type: ignore[arg-type]
        # a schema that no frame can hold is told now, not when the first window ends
        frame_of([], view.schema)
        # what nobody sees or needs is skipped, as everywhere
        needed = _needed(view, self._keys)
        root = tree(c for c in view.schema.given if c in needed)
        self._columns = {n: (attrgetter(f"f{at}"), node) for at, (n, node) in enumerate(root.fields.items())}
        # what is not declared takes the type its values have, which must not depend on the windows beside
        self._apart = any(schema_of(node, view.schema) is None for _, node in self._columns.values())
        self._decode = decoder(root, view.schema)
        places = dict(getters(root))
        dated = {n for n, c in view.schema.given.items() if c.type == "datetime"}
        # a moment that UTC has no year for makes its record unreadable when it comes, wherever it stands in it
        self._moments = [places[n] for n in dated if n in places]
        self._lists = [get for get, node in self._columns.values() if dated & set(node.leaves()) - set(places)]
        self._when, self._who = places.get(self._time or ""), places.get(view.schema.subject or "")
        self._gates: dict[tuple[pl.DataType, ...], FrameGate] = {}
        self._number = 0

    def push(self, *records: bytes) -> list[Outcome]:
        """Take records; answer what is decided now, of these or of earlier ones.

        Many at once cost less than one after the other, and are decided alike.
        """
        return _outcomes(self.push_many(records))

    def push_many(self, records: Sequence[bytes]) -> Published:
        """:meth:`push`, by columns."""
        out: list[Outcome] = []
        windows: list[Window] = []
        first, self._number = self._number, self._number + len(records)
        records = [*records]  # looked at more than once
        rows = self._all_read(records)
        if rows is not None and self._clock is None:
            items = list(map(_held, zip(range(first, self._number), records, rows, strict=True)))
            windows = self._assigner.push_all(first, items)
        else:
            for number, record in enumerate(records, first):
                self._take(number, record, out, windows)
        return self._publish(windows, out)

    def _all_read(self, records: Sequence[bytes]) -> list[Any] | None:
        """The records read; none if one of them cannot be: then each is looked at by itself."""
        # a moment beyond UTC's years makes only its own record unreadable
        if self._moments or self._lists or self._clock is not None:
            return None
        try:
            return list(map(self._decode, records))
        except UNREADABLE:
            return None

    def _take(self, number: int, record: bytes, out: list[Outcome], windows: list[Window]) -> None:
        try:
            item = self._read(number, record)
        except UNREADABLE:
            out.append(Outcome(number, None, "unreadable"))
            return
        if self._clock is None:  # windows of so many records know no time
            windows += self._assigner.push(number, item)
            return
        time = self._scale(self._when(item.row) if self._when is not None else None)
        if time < 0:
            out.append(Outcome(number, None, "no time"))
            return
        # without a subject every record counts as somebody else's
        verdict = self._clock.tell(time, text_of(number if self._who is None else self._who(item.row)))
        if verdict == TOO_LATE:
            out.append(Outcome(number, None, "too late"))
            return
        if verdict != FUTURE:
            self._assigner.hold(time, item, number)
        # set aside until the clock comes near: one wrong time must not close the windows of everybody else
        elif len(self._early) < MOST_EARLY:
            self._early.append(_Early(time, self._clock.now, item))
            self._soonest, self._oldest = min(self._soonest, time), min(self._oldest, self._clock.now or 0)
        else:
            out.append(Outcome(number, None, AHEAD))
        self._move(self._clock, out, windows)

    def _move(self, clock: EventClock, out: list[Outcome], windows: list[Window]) -> None:
        """Go on to where the clock stands: take up what is no longer ahead of it, give up what it left aside."""
        if clock.now is None:
            return
        near, stay = clock.now + clock.ahead, []
        # nothing that waits is near yet, and nothing has to be given up
        if not self._early or (near < self._soonest and near <= self._oldest + 2 * clock.ahead):
            windows += self._assigner.tick(clock.now)
            return
        self._soonest = self._oldest = FOREVER
        for early in self._early:
            born = clock.now if early.born is None else early.born  # nobody knew the time when it came
            if early.time <= near:
                self._assigner.hold(early.time, early.item, early.item.number)
            elif clock.now > born + clock.ahead:
                out.append(Outcome(early.item.number, None, AHEAD))
            else:
                stay.append(early._replace(born=born))
                self._soonest, self._oldest = min(self._soonest, early.time), min(self._oldest, born)
        self._early = stay
        windows += self._assigner.tick(clock.now)

    def tick(self, now: int) -> list[Outcome]:
        """The clock says ``now`` (microseconds of event time) though no record came."""
        return _outcomes(self.tick_many(now))

    def tick_many(self, now: int) -> Published:
        """:meth:`tick`, by columns."""
        out: list[Outcome] = []
        windows: list[Window] = []
        if self._clock is not None:
            self._clock.tick(now)
            self._move(self._clock, out, windows)
        return self._publish(windows, out)

    def flush(self) -> list[Outcome]:
        """The stream has ended: decide everything that is held."""
        for early in self._early:
            self._assigner.hold(early.time, early.item, early.item.number)
        self._early = []
        return _outcomes(self._publish(self._assigner.flush(), []))

    @property
    def held(self) -> int:
        """How many records wait."""
        return self._assigner.held + len(self._early)

    @property
    def now(self) -> int | None:
        """The stream's clock (microseconds), if its moving on would publish something; else none."""
        return self._clock.now if self._clock is not None else None

    def snapshot(self) -> bytes:
        """The whole state, sealed with the key `default`: it holds records whole."""
        clock = self._clock.state() if self._clock is not None else b""
        # as they came: `restore` reads them again, by the types of the policy
        early = [(e.time, e.born, *e.item[:2]) for e in self._early]
        state = self._assigner.state()
        for part in WAITING:
            state[part] = [(time, number, item[:2]) for time, number, item in state[part]]
        held = {"number": self._number, "state": state, "early": early, "clock": clock}
        key = self._keys.derive(DEFAULT, "window state", role=self._view.role)
        return seal(msgspec.msgpack.encode(held), KIND, key, version=VERSION)

    def restore(self, snapshot: bytes) -> None:
        """Continue as if nothing had happened."""
        # of former epochs, too: rotating the key must not lose what waits
        keys = self._keys.every(DEFAULT, "window state", role=self._view.role)
        state = msgspec.msgpack.decode(opened(lambda key: unseal(snapshot, KIND, key, version=VERSION), keys))
        self._number = state["number"]
        self._early = [_Early(time, born, self._read(*item)) for time, born, *item in state["early"]]
        self._soonest = self._oldest = 0  # looked through at once
        if self._clock is not None:
            self._clock.restore(state["clock"])
        for part in WAITING:
            state["state"][part] = [(time, at, self._read(*item)) for time, at, item in state["state"][part]]
        self._assigner.restore(state["state"])

    def _read(self, number: int, record: bytes) -> _Held:
        row = self._decode(record)
        for get in self._moments:
            in_utc(get(row))
        for get in self._lists:
            told(get(row))
        return _Held(number, record, row)

    def _publish(self, windows: Sequence[Window], withheld: list[Outcome]) -> Published:
        """What becomes of finished windows: all are masked together, unless their columns need not be of one type."""
        done = [self._masked(some) for some in ([windows] if not self._apart else [[w] for w in windows]) if some]
        return Published(
            [number for part in done for number in part.numbers],
            Lines.joined([part.records for part in done]),
            [*withheld, *(one for part in done for one in part.withheld)],
        )

    def _masked(self, windows: Sequence[Window]) -> Published:
        events = list(itertools.chain.from_iterable(window.context for window in windows))
        frame = self._frame([event.item.row for event in events])
        kinds = tuple(frame.dtypes)
        gate = self._gates.get(kinds)
        if gate is None:
            gate = self._gates[kinds] = FrameGate(self._view, frame.schema, self._keys)
        viewed = gate.apply(frame, [(window.number, len(window.context)) for window in windows])
        numbers = [event.item.number for event in events]
        rows, records = viewed.rows.to_list(), self._written(viewed.data)
        # a sliding window also looks at records that an earlier one has published
        due = None
        if any(window.events is not window.context and len(window.events) < len(window.context) for window in windows):
            marks = ((window, {e.number for e in window.events}) for window in windows)
            due = [event.number in mine for window, mine in marks for event in window.context]
            chosen = [at for at, row in enumerate(rows) if due[row]]
            rows, records = [rows[at] for at in chosen], records.take(np.array(chosen, np.int64))
        shown = numbers if len(rows) == len(numbers) else [numbers[row] for row in rows]
        lacking = sorted(set(range(len(numbers))).difference(viewed.rows)) if len(viewed.rows) < len(numbers) else []
        few = [Outcome(numbers[row], None, FEW) for row in lacking if due is None or due[row]]
        return Published(shown, records, few)

    def _frame(self, rows: Sequence[Any]) -> pl.DataFrame:
        schema = self._view.schema
        return pl.DataFrame(
            [
                column_of(
                    n,
                    [told(get(row)) for row in rows]
                    if node.leaf is None or schema[node.leaf].type == "datetime"
                    else list(map(get, rows)),
                    node,
                    schema,
                )
                for n, (get, node) in self._columns.items()
            ]
        )

    @staticmethod
    def _written(data: pl.DataFrame) -> Lines:
        """One JSON record per row."""
        if any("." in name or "[" in name for name in data.columns):
            return Lines.of([msgspec.json.encode(row) for row in data.to_dicts()])
        # few rows are not worth compiling anything
        written = rows_of([Cells.of(c.name, c) for c in data.get_columns()]) if data.height >= WORTH_COMPILING else None
        if written is not None:
            return written
        made = struct_of(tree(data.columns))
        rows = list(map(made, *(column.to_list() for column in data.get_columns())))
        # no line end stands in a line: all at once, and parted again, costs less than one by one
        return Lines.split(msgspec.json.Encoder().encode_lines(rows))


def _outcomes(published: Published) -> list[Outcome]:
    return [*published.withheld, *map(Outcome, published.numbers, published.records)]


def _needed(view: RoleView, keys: KeyRing) -> set[str]:
    """The columns that a role sees, or that masks, windows and clocks read; and all parts of an object that has one."""
    try:
        reads = {name for mask in view.start(keys).values() for name in mask.by}
    except PolicyError:  # only looked at, without its keys
        return set(view.schema.given)
    named = {*view.shown, *view.masks, *reads, *view.schema.of("subject", "time")}
    named |= {source for c, derive in view.schema.derived.items() if c in named for source in derive.sources}
    tops = {steps(c)[0] for c in named}
    return {c for c in view.schema.given if steps(c)[0] in tops}
