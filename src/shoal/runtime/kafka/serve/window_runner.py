"""Views whose masks work on windows of records: held until their window ends, then published together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.core.keys import KeyRing
from shoal.runtime.kafka.serve.output import ROOM, UNTIMED, Disguise, Outgoing, Record
from shoal.views.role_view import RoleView
from shoal.views.windows import WindowGate


class WindowRunner:
    """A view whose masks work on windows of records."""

    def __init__(self, view: RoleView, keys: KeyRing, disguise: Disguise, snapshot: bytes | None) -> None:
        self._windows = WindowGate(view, keys)
        self._by_time = not any(isinstance(getattr(m.window, "size", None), int) for m in view.windows.values())
        self._disguise = disguise
        self._number = 0
        self._held: dict[int, Record] = {}
        self._withheld = 0
        if snapshot is not None:
            self._number, held, self._withheld, state = msgspec.msgpack.decode(
                snapshot, type=tuple[int, dict[int, Record], int, bytes]
            )
            self._held = held
            self._windows.restore(state)

    def push(self, records: Sequence[Record]) -> tuple[list[Outgoing], list[Record]]:
        """See :class:`~.stateful.Stateful`."""
        out: list[Outgoing] = []
        bad: list[Record] = []
        for record in records:
            self._held[self._number] = msgspec.structs.replace(record, value=None)
            self._number += 1
            for outcome in self._windows.push(record.value or b""):
                (bad if outcome.reason == "unreadable" else []).append(record)
                out += self._settled(outcome)
        return out, bad

    def tick(self, now: int) -> list[Outgoing]:
        """See :class:`~.stateful.Stateful`."""
        return [o for outcome in self._windows.tick(now) for o in self._settled(outcome)]

    def snapshot(self) -> bytes:
        """See :class:`~.stateful.Stateful`."""
        return msgspec.msgpack.encode((self._number, self._held, self._withheld, self._windows.snapshot()))

    @property
    def held(self) -> int:
        """See :class:`~.stateful.Stateful`."""
        return self._windows.held

    @property
    def withheld(self) -> int:
        """See :class:`~.stateful.Stateful`."""
        return self._withheld

    @property
    def clock(self) -> int | None:
        """See :class:`~.stateful.Stateful`; windows of so many events wait for events, whatever the clock says."""
        return self._windows.now if self.held and self._by_time else None

    @property
    def smallest(self) -> int | None:
        """See :class:`~.stateful.Stateful`."""
        return None

    @property
    def oldest(self) -> int | None:
        """See :class:`~.stateful.Stateful`."""
        return next(iter(self._held.values())).timestamp if self._held else None

    def _settled(self, outcome: Any) -> list[Outgoing]:
        origin = self._held.pop(outcome.number)
        if outcome.record is None or len(outcome.record) > ROOM:
            self._withheld += 1
            return []
        dressed = self._disguise.dress(msgspec.structs.replace(origin, timestamp=UNTIMED), outcome.record)
        return [dressed] if dressed is not None else []
