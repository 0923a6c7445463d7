"""Views with window masks on a stream of JSON records: held until their window ends, then published together.

Every record gets exactly one outcome: published, or withheld with a reason. A late record within the bound lands in
the window a sorted stream would have put it in.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import polars as pl

from shoal.core.errors import UsageError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.schema import Schema
from shoal.core.sealed_state import seal, unseal
from shoal.core.time import duration
from shoal.masks.base import dtype_of, text_of
from shoal.masks.pseudonym import seconds
from shoal.masks.windows import Assigner, Event, Window
from shoal.policy.paths import Node, steps, tree
from shoal.views.frames import FOREVER, FrameView, moment
from shoal.views.role_view import RoleView
from shoal.views.types import in_utc, record_type

KIND = "windows"
VERSION = 2
WAIT = 256  # events ahead of the clock that are remembered; the oldest gives way


class Outcome(NamedTuple):
    """What became of record ``number``: the published record, or why there is none."""

    number: int
    record: bytes | None
    reason: str = ""


class WindowView:
    """One role's view of a stream, window by window. All its window masks must share one window."""

    def __init__(self, view: RoleView, keys: KeyRing | None = None) -> None:
        windows = {mask.window for mask in view.windows.values()}
        if len(windows) != 1 or None in windows:
            raise UsageError(
                "on a stream all window masks of a view need one and the same `window`", where=f"views.{view.role}"
            )
        self._view, self._keys = view, keys or KeyRing()
        time = next(iter(view.schema.of("time")), None)
        late = seconds(view.schema[time].late, "late") if time and view.schema[time].late not in ("0s", "0") else 0
        self._time, self._unit = time, view.schema[time].unit if time else "s"
        ahead = view.schema[time].ahead if time else None
        self._bound = None if ahead is None else duration(ahead, where=f"columns.{time}.ahead")
        self._ahead: list[tuple[int, str]] = []  # who said that it is so late, and nobody else yet
        self._dated = any(c.type == "datetime" for c in view.schema.columns.values())
        self._assigner: Assigner[bytes] = Assigner(windows.pop(), late=late * 1_000_000)  # type: ignore[arg-type]
        frame_of([], view.schema)
        self._decode = msgspec.json.Decoder(record_type(tree(view.schema.columns), view.schema)).decode
        self._number = 0

    def push(self, record: bytes) -> list[Outcome]:
        """Take a record; answer what is decided now, of this or of earlier ones."""
        number, self._number = self._number, self._number + 1
        try:
            row = self._read(record)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError):
            return [Outcome(number, None, "unreadable")]
        time = moment(_at(row, self._time), self._unit) if self._time else number
        if time == -FOREVER:
            return [Outcome(number, None, "no time")]
        subject = self._view.schema.subject
        who = number if subject is None else _at(row, subject)
        if self._bound is not None and not self._believed(time, text_of(who), self._bound):
            return [Outcome(number, None, "ahead of the clock")]
        windows = self._assigner.push(time, msgspec.msgpack.encode((number, record)))
        late = [Outcome(self._held(e)[0], None, "too late") for e in self._assigner.too_late]
        self._assigner.too_late.clear()
        return [*late, *self._publish(windows)]

    def _believed(self, time: int, person: str, bound: int) -> bool:
        """Whether an event may move the clock so far: two people must agree on a step beyond the bound."""
        now = self._assigner.now
        if now is None or time <= now + bound:
            return True
        if any(other != person and abs(at - time) <= bound for at, other in self._ahead):
            self._ahead.clear()
            return True
        self._ahead = [*self._ahead[1 - WAIT :], (time, person)]
        return False

    def tick(self, now: int) -> list[Outcome]:
        """The clock says ``now`` (microseconds of event time) though no record came."""
        return self._publish(self._assigner.tick(now)) if self._time else []

    def flush(self) -> list[Outcome]:
        """The stream has ended: decide everything that is held."""
        return self._publish(self._assigner.flush())

    @property
    def held(self) -> int:
        """How many records wait."""
        return self._assigner.held

    @property
    def now(self) -> int | None:
        """The stream's clock (microseconds), if its moving on would publish something; else none."""
        return self._assigner.now if self._time else None

    def snapshot(self) -> bytes:
        """The whole state, sealed with the key `default`: it holds records whole."""
        held = {"number": self._number, "state": self._assigner.state(), "ahead": self._ahead}
        return seal(msgspec.msgpack.encode(held), KIND, self._state_key(), version=VERSION)

    def restore(self, snapshot: bytes) -> None:
        """Continue as if nothing had happened."""
        state = msgspec.msgpack.decode(unseal(snapshot, KIND, self._state_key(), version=VERSION))
        self._number = state["number"]
        self._ahead = [(at, who) for at, who in state["ahead"]]
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
        viewed = FrameView(self._view, frame.schema, self._keys).apply(frame, window=window.number)
        released = dict(zip(viewed.rows.to_list(), viewed.data.to_dicts(), strict=True))
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
    """A record with its moments in UTC. ``OverflowError`` for one that UTC has no year for."""
    if isinstance(value, datetime.datetime):
        return in_utc(value)
    if isinstance(value, dict):
        return {name: told_in_utc(part) for name, part in value.items()}
    return [told_in_utc(part) for part in value] if isinstance(value, list) else value


def frame_of(rows: Sequence[dict[str, Any]], schema: Schema) -> pl.DataFrame:
    """Records as columns of their declared types; an undeclared column of mixed values becomes text."""
    columns: list[pl.Series] = []
    for name, node in tree(schema.columns).fields.items():
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
