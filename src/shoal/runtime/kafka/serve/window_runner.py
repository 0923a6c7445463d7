"""Views whose masks work on windows of records: held until their window ends, then published together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress

import msgspec

from shoal.core.keys import KeyRing
from shoal.runtime.kafka.serve.dressed import Dressed
from shoal.runtime.kafka.serve.output import ROOM, Disguise, Record
from shoal.views.role_view import RoleView
from shoal.views.windows import Published, WindowGate


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

    def push(self, records: Sequence[Record]) -> tuple[Dressed, list[Record]]:
        """See :class:`~.stateful.Stateful`."""
        first = self._number
        self._held.update(enumerate(records, first))
        self._number += len(records)
        decided = self._windows.push_many([record.value or b"" for record in records])
        bad = [records[o.number - first] for o in decided.withheld if o.reason == "unreadable"]
        return self._settled(decided), bad

    def tick(self, now: int) -> Dressed:
        """See :class:`~.stateful.Stateful`."""
        return self._settled(self._windows.tick_many(now))

    def snapshot(self) -> bytes:
        """See :class:`~.stateful.Stateful`."""
        # the windows keep the values, sealed
        held = {n: Record(r.partition, r.offset, r.key, None, r.timestamp) for n, r in self._held.items()}
        return msgspec.msgpack.encode((self._number, held, self._withheld, self._windows.snapshot()))

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

    def _settled(self, decided: Published) -> Dressed:
        values, take = decided.records, self._held.pop
        origins = [take(number) for number in decided.numbers]
        for number, _, reason in decided.withheld:
            del self._held[number]
            self._withhold(reason)
        if max(map(len, values), default=0) > ROOM:
            fits = [len(value) <= ROOM for value in values]
            for _ in range(fits.count(False)):
                self._withhold("too large")
            values, origins = list(compress(values, fits)), list(compress(origins, fits))
        return self._disguise.dress_many(origins, values, None)

    def _withhold(self, reason: str) -> None:
        self._withheld += 1
        self._reasons[reason.replace(" ", "_")] += 1
