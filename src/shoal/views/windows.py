"""Views with window masks on a stream of JSON records: held until their window ends, then published together.

Every record gets exactly one outcome: published, or withheld with a reason. A late record within the bound lands in
the window a sorted stream would have put it in. A record further ahead of the clock than one person alone may move it
waits aside until the clock comes near; it closes no window, and where the clock goes on without it it is withheld.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import polars as pl

from shoal.core.clock import FUTURE, TOO_LATE, EventClock
from shoal.core.errors import UsageError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.schema import Schema
from shoal.core.sealed_state import seal, unseal
from shoal.core.time import EventTime, scale
from shoal.masks.base import dtype_of, text_of
from shoal.masks.windows import Assigner, Event, Window
from shoal.policy.paths import Node, steps, tree
from shoal.views.frames import FOREVER, FrameGate
from shoal.views.role_view import RoleView
from shoal.views.types import in_utc, record_type

KIND = "windows"
VERSION = 3
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


class _Early(NamedTuple):
    """A record ahead of the clock, and where the clock stood when it came."""

    time: int
    born: int | None
    number: int
    item: bytes


class WindowGate:
    """One role's view of a stream, window by window. All its window masks must share one window.

    >>> from shoal.core.schema import Column
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
        self._dated = any(c.type == "datetime" for c in view.schema.columns.values())
        self._assigner: Assigner[bytes] = Assigner(windows.pop(), late=time.late)  # type: ignore[arg-type]
        # a schema that no frame can hold is told now, not when the first window ends
        frame_of([], view.schema)
        self._decode = msgspec.json.Decoder(record_type(tree(view.schema.given), view.schema)).decode
        self._number = 0

    def push(self, record: bytes) -> list[Outcome]:
        """Take a record; answer what is decided now, of this or of earlier ones."""
        number, self._number = self._number, self._number + 1
        try:
            row = self._read(record)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError):
            return [Outcome(number, None, "unreadable")]
        # the record as it came: it is decoded again when its window ends, and held state is small
        item = msgspec.msgpack.encode((number, record))
        if self._clock is None:
            return self._publish(self._assigner.push(number, item))
        time = self._scale(_at(row, self._time))
        if time < 0:
            return [Outcome(number, None, "no time")]
        subject = self._view.schema.subject
        verdict = self._clock.tell(time, text_of(number if subject is None else _at(row, subject)))
        if verdict == TOO_LATE:
            return [Outcome(number, None, "too late")]
        if verdict != FUTURE:
            self._assigner.hold(time, item)
        elif len(self._early) < MOST_EARLY:
            self._early.append(_Early(time, self._clock.now, number, item))
            self._soonest, self._oldest = min(self._soonest, time), min(self._oldest, self._clock.now or 0)
        else:
            return [Outcome(number, None, AHEAD), *self._move(self._clock)]
        return self._move(self._clock)

    def _move(self, clock: EventClock) -> list[Outcome]:
        """Go on to where the clock stands: take up what is no longer ahead of it, give up what it left aside."""
        if clock.now is None:
            return []
        near, out, stay = clock.now + clock.ahead, [], []
        if not self._early or (near < self._soonest and near <= self._oldest + 2 * clock.ahead):
            return self._publish(self._assigner.tick(clock.now))
        self._soonest = self._oldest = FOREVER
        for early in self._early:
            born = clock.now if early.born is None else early.born  # nobody knew the time when it came
            if early.time <= near:
                self._assigner.hold(early.time, early.item)
            elif clock.now > born + clock.ahead:
                out.append(Outcome(early.number, None, AHEAD))
            else:
                stay.append(early._replace(born=born))
                self._soonest, self._oldest = min(self._soonest, early.time), min(self._oldest, born)
        self._early = stay
        return [*out, *self._publish(self._assigner.tick(clock.now))]

    def tick(self, now: int) -> list[Outcome]:
        """The clock says ``now`` (microseconds of event time) though no record came."""
        if self._clock is None:
            return []
        self._clock.tick(now)
        return self._move(self._clock)

    def flush(self) -> list[Outcome]:
        """The stream has ended: decide everything that is held."""
        for early in self._early:
            self._assigner.hold(early.time, early.item)
        self._early = []
        return self._publish(self._assigner.flush())

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
        early = [tuple(e) for e in self._early]
        held = {"number": self._number, "state": self._assigner.state(), "early": early, "clock": clock}
        return seal(msgspec.msgpack.encode(held), KIND, self._state_key(), version=VERSION)

    def restore(self, snapshot: bytes) -> None:
        """Continue as if nothing had happened."""
        state = msgspec.msgpack.decode(unseal(snapshot, KIND, self._state_key(), version=VERSION))
        self._number = state["number"]
        self._early = [_Early(*early) for early in state["early"]]
        self._soonest = self._oldest = 0  # looked through at once
        if self._clock is not None:
            self._clock.restore(state["clock"])
        self._assigner.restore(state["state"])

    def _state_key(self) -> bytes:
        return self._keys.derive(DEFAULT, "window state", role=self._view.role)

    def _read(self, record: bytes) -> dict[str, Any]:
        row = plain(self._decode(record))
        return told_in_utc(row) if self._dated else row

    def _held(self, event: Event) -> tuple[int, bytes]:
        number, record = msgspec.msgpack.decode(event.item)
        return number, record

    def _publish(self, windows: Sequence[Window]) -> list[Outcome]:
        return [outcome for window in windows for outcome in self._one(window)]

    def _one(self, window: Window) -> list[Outcome]:
        held = [self._held(e) for e in window.context]
        frame = frame_of([self._read(record) for _, record in held], self._view.schema)
        viewed = FrameGate(self._view, frame.schema, self._keys).apply(frame, window=window.number)
        released = dict(zip(viewed.rows.to_list(), viewed.data.to_dicts(), strict=True))
        # a sliding window also looks at records that an earlier one has published
        due = {e.number for e in window.events}
        out: list[Outcome] = []
        for row, event in enumerate(window.context):
            if event.number in due:
                done = msgspec.json.encode(released[row]) if row in released else None
                out.append(Outcome(held[row][0], done, "" if done is not None else "too few people in its window"))
        return out


def plain(record: Any) -> dict[str, Any]:
    """A decoded record as plain values, dates still dates."""
    out: dict[str, Any] = msgspec.to_builtins(record, builtin_types=(datetime.date, datetime.datetime))
    return out


def told_in_utc(value: Any) -> Any:
    """A record with its moments in UTC. ``OverflowError`` for one that UTC has no year for.

    >>> zone = datetime.timezone(datetime.timedelta(hours=2))
    >>> told_in_utc({"at": datetime.datetime(2024, 5, 1, 2, tzinfo=zone)})
    {'at': datetime.datetime(2024, 5, 1, 0, 0)}
    """
    if isinstance(value, datetime.datetime):
        return in_utc(value)
    if isinstance(value, dict):
        return {name: told_in_utc(part) for name, part in value.items()}
    return [told_in_utc(part) for part in value] if isinstance(value, list) else value


def frame_of(rows: Sequence[dict[str, Any]], schema: Schema) -> pl.DataFrame:
    """Records as columns of their declared types; an undeclared column of mixed values becomes text.

    >>> from shoal.core.schema import Column
    >>> frame_of([{"age": 3}, {"age": None}], Schema({"age": Column("quasi", type="int")})).rows()
    [(3,), (None,)]
    """
    columns: list[pl.Series] = []
    for name, node in tree(schema.given).fields.items():
        values = [row.get(name) for row in rows]
        try:
            columns.append(pl.Series(name, values, dtype=_dtype(node, schema)))
        except (TypeError, pl.exceptions.PolarsError):
            columns.append(pl.Series(name, [None if v is None else text_of(v) for v in values], dtype=pl.String))
    return pl.DataFrame(columns)


def _dtype(node: Node, schema: Schema) -> pl.DataType | None:
    """The type of a column by what is declared; the first record alone must not decide which parts there are."""
    if node.leaf is not None:
        kind = schema[node.leaf].type
        return None if kind is None else dtype_of(kind)
    below = {name: _dtype(part, schema) for name, part in node.fields.items()}
    inner = _dtype(node.element, schema) if node.element is not None else None
    if (node.element is not None and inner is None) or any(kind is None for kind in below.values()):
        undeclared = next(leaf for leaf in node.leaves() if schema[leaf].type is None)
        raise UsageError("nested columns of a stream need a type", where=f"columns.{undeclared}", hint="type: str")
    return pl.List(inner) if inner is not None else pl.Struct({n: k for n, k in below.items() if k is not None})


def _at(row: dict[str, Any], path: str | None) -> Any:
    value: Any = row
    for step in steps(path or ""):
        value = value.get(step) if isinstance(value, dict) else None
    return value
