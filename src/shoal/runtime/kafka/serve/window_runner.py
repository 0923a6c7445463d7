"""Views whose masks work on windows of records: held until their window ends, then published together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from shoal.core.keys import KeyRing
from shoal.runtime.kafka.serve.output import ROOM, UNTIMED, Disguise, Outgoing, Record
from shoal.views.role_view import RoleView
from shoal.views.windows import Outcome, WindowGate


class WindowRunner:
    """A view whose masks work on windows of records."""

    def __init__(self, view: RoleView, keys: KeyRing, disguise: Disguise, snapshot: bytes | None) -> None:
        self._windows = WindowGate(view, keys)
        self._by_time = not any(isinstance(getattr(m.window, "size", None), int) for m in view.windows.values())
        self._disguise = disguise
        self._number = 0
        self._held: dict[int, Record] = {}
        self._withheld = 0
        self._reasons: Counter[str] = Counter()  # since this runner began
        if snapshot is not None:
            self._number, held, self._withheld, state = msgspec.msgpack.decode(
                snapshot, type=tuple[int, dict[int, Record], int, bytes]
            )
            self._held = held
            self._windows.restore(state)

    def push(self, records: Sequence[Record]) -> tuple[list[Outgoing], list[Record]]:
        """See :class:`~.stateful.Stateful`."""
        first = self._number
        for number, record in enumerate(records, first):
            self._held[number] = Record(record.partition, record.offset, record.key, None, record.timestamp)
        self._number += len(records)
        outcomes = self._windows.push(*[record.value or b"" for record in records])
        return self._settled(outcomes), [records[o.number - first] for o in outcomes if o.reason == "unreadable"]

    def tick(self, now: int) -> list[Outgoing]:
        """See :class:`~.stateful.Stateful`."""
        return self._settled(self._windows.tick(now))

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
    def reasons(self) -> Mapping[str, int]:
        """See :class:`~.stateful.Stateful`."""
        return self._reasons

    @property
    def clock(self) -> int | None:
        """See :class:`~.stateful.Stateful`; windows of so many events wait for events, whatever the clock says."""
        return self._windows.now if self.held and self._by_time else None

    @property
    def judged(self) -> tuple[int, int]:
        """Windows promise nothing that could be judged."""
        return 0, 0

    @property
    def smallest(self) -> int | None:
        """See :class:`~.stateful.Stateful`."""
        return None

    @property
    def oldest(self) -> int | None:
        """See :class:`~.stateful.Stateful`."""
        return next(iter(self._held.values())).timestamp if self._held else None

    def _settled(self, outcomes: Sequence[Outcome]) -> list[Outgoing]:
        origins, values = [], []
        for number, value, reason in outcomes:
            origin = self._held.pop(number)
            if value is None or len(value) > ROOM:
                self._withheld += 1
                self._reasons[(reason or "too large").replace(" ", "_")] += 1
            else:
                origins.append(Record(origin.partition, origin.offset, origin.key, None, UNTIMED))
                values.append(value)
        return self._disguise.dress_many(origins, values)
