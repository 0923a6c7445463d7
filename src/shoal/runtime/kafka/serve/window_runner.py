"""Views whose masks work on windows of records: held until their window ends, then published together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from shoal.core.keys import KeyRing
from shoal.core.lines import Lines
from shoal.runtime.kafka.serve.dressed import Dressed
from shoal.runtime.kafka.serve.output import ROOM, Disguise
from shoal.runtime.kafka.serve.source_records import Record, Records, whole
from shoal.views.role_view import RoleView
from shoal.views.windows import Published, WindowGate


class WindowRunner:
    """A view whose masks work on windows of records."""

    def __init__(self, view: RoleView, keys: KeyRing, disguise: Disguise, snapshot: bytes | None) -> None:
        self._windows = WindowGate(view, keys)
        self._by_time = not any(isinstance(getattr(m.window, "size", None), int) for m in view.windows.values())
        self._disguise = disguise
        self._number = 0
        self._held = Origins({})
        self._withheld = 0
        self._reasons: Counter[str] = Counter()  # since this runner began
        if snapshot is not None:
            self._number, held, self._withheld, state = msgspec.msgpack.decode(
                snapshot, type=tuple[int, dict[int, Record], int, bytes]
            )
            self._held = Origins(held)
            self._windows.restore(state)

    def push(self, records: Sequence[Record]) -> tuple[Dressed, list[Record]]:
        """See :class:`~.stateful.Stateful`."""
        first, columns = self._number, Records.of(records)
        self._held.add(first, columns)
        self._number += len(records)
        decided = self._windows.push_many(columns.values)
        bad = [records[o.number - first] for o in decided.withheld if o.reason == "unreadable"]
        return self._settled(decided), bad

    def tick(self, now: int) -> Dressed:
        """See :class:`~.stateful.Stateful`."""
        return self._settled(self._windows.tick_many(now))

    def snapshot(self) -> bytes:
        """See :class:`~.stateful.Stateful`."""
        # the windows keep the values, sealed
        state = (self._number, self._held.by_number(), self._withheld, self._windows.snapshot())
        return msgspec.msgpack.encode(state)

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
        return self._held.oldest

    def _settled(self, decided: Published) -> Dressed:
        values = decided.records
        origins = self._held.take(decided.numbers)
        self._held.take([number for number, _, _ in decided.withheld])
        for _, _, reason in decided.withheld:
            self._withhold(reason)
        if values.longest > ROOM:
            fits = np.flatnonzero(values.lengths <= ROOM)
            for _ in range(len(values) - len(fits)):
                self._withhold("too large")
            values, origins = values.take(fits), origins.take(fits)
        return self._disguise.dress_many(origins, values, None)

    def _withhold(self, reason: str) -> None:
        self._withheld += 1
        self._reasons[reason.replace(" ", "_")] += 1


class Origins:
    """Where the records stood that wait, by their numbers, which rise.

    >>> held = Origins({3: Record(0, 7, None, None, 60), 4: Record(0, 8, None, None, 61)})
    >>> held.take([3]).offsets.tolist(), held.oldest, held.by_number()
    ([7], 61, {4: Record(partition=0, offset=8, key=None, value=None, timestamp=61)})
    """

    def __init__(self, held: Mapping[int, Record]) -> None:
        self._numbers, self._records = whole(held), Records.of(list(held.values()))

    def add(self, first: int, records: Records) -> None:
        """Further records, from a number on."""
        before, size = self._records, len(records)
        keys: list[bytes | None] | None = None
        if before.keys is not None or records.keys is not None:
            keys = [*(before.keys or [None] * len(before)), *(records.keys or [None] * size)]
        self._numbers = np.concatenate([self._numbers, np.arange(first, first + size)])
        self._records = Records(
            Lines.nothing(len(self._numbers)),  # the windows have the values
            np.concatenate([before.partitions, records.partitions]),
            np.concatenate([before.offsets, records.offsets]),
            np.concatenate([before.timestamps, records.timestamps]),
            keys,
        )

    def take(self, numbers: list[int]) -> Records:
        """These records, which wait no longer."""
        at = np.searchsorted(self._numbers, np.array(numbers, np.int64))
        out = self._records.take(at)
        if numbers:
            rest = np.ones(len(self._numbers), np.bool_)
            rest[at] = False
            self._numbers, self._records = self._numbers[rest], self._records.take(np.flatnonzero(rest))
        return out

    def by_number(self) -> dict[int, Record]:
        """All that wait, without their values."""
        each = zip(self._numbers.tolist(), self._records, strict=True)
        return {n: Record(r.partition, r.offset, r.key, None, r.timestamp) for n, r in each}

    @property
    def oldest(self) -> int | None:
        """When the first that waits was sent."""
        return int(self._records.timestamps[0]) if len(self._numbers) else None
