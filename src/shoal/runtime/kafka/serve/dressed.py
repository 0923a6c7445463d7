"""Records of one view on their way out, by columns: an object per record would cost as much as its mask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter, length_hint
from typing import Any, NamedTuple

import msgspec
import numpy as np

from shoal.core.lines import NOTHING, Lines, Numbers

Keys = list[bytes | None] | None  # none: no record has one


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """One record for a view topic."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class Columns(NamedTuple):
    """Some records by columns; a value may be none."""

    values: Lines
    partitions: Numbers
    timestamps: Numbers
    keys: Keys


class Dressed:
    """Records for a view topic; looked at one by one they are :class:`Outgoing`."""

    __slots__ = ("_count", "_parts")

    def __init__(
        self,
        values: Sequence[bytes | None] = (),
        partitions: Numbers | None = None,
        timestamps: Numbers | None = None,
        keys: Keys = None,
    ) -> None:
        self._parts: list[Columns] = []  # joined when they are asked for: a commit has many
        self._count = len(values)
        if self._count:
            nothing = np.zeros(self._count, np.int64)
            stood = partitions if partitions is not None else nothing
            self._parts.append(
                Columns(Lines.of(values), stood, timestamps if timestamps is not None else nothing, keys)
            )

    @classmethod
    def of(cls, records: Iterable[Outgoing]) -> Dressed:
        """Records that were dressed one by one."""
        many = list(records)
        keys = [r.key for r in many]
        places, times = (np.array([getattr(r, n) for r in many], np.int64) for n in ("partition", "timestamp"))
        return cls([r.value for r in many], places, times, keys if any(key is not None for key in keys) else None)

    @property
    def columns(self) -> Columns:
        """All of them."""
        if len(self._parts) != 1:
            keys: Keys = None
            if any(part.keys is not None for part in self._parts):
                keys = [key for part in self._parts for key in part.keys or [None] * len(part.values)]
            values = Lines.joined([part.values for part in self._parts])
            places, times = (
                np.concatenate([NOTHING, *(getattr(part, name) for part in self._parts)])
                for name in ("partitions", "timestamps")
            )
            self._parts = [Columns(values, places, times, keys)]
        return self._parts[0]

    @property
    def values(self) -> Lines:
        """The value of each, which may be none."""
        return self.columns.values

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Outgoing]:
        values, partitions, timestamps, keys = self.columns
        return map(Outgoing, partitions.tolist(), keys or repeat(None), values, timestamps.tolist())

    def __getitem__(self, at: int) -> Outgoing:
        values, partitions, timestamps, keys = self.columns
        return Outgoing(int(partitions[at]), None if keys is None else keys[at], values[at], int(timestamps[at]))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (Dressed, list)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __iadd__(self, more: Dressed | Iterable[Outgoing]) -> Dressed:
        other = more if isinstance(more, Dressed) else Dressed.of(more)
        self._parts = [*self._parts, *other._parts]
        self._count += len(other)
        return self

    def __add__(self, more: Dressed | Iterable[Outgoing]) -> Dressed:
        whole = Dressed()
        whole += self
        whole += more
        return whole

    def ordered(self, order: Numbers) -> Dressed:
        """The same records in another order."""
        values, partitions, timestamps, keys = self.columns
        if keys is not None:
            keys = list(itemgetter(*order.tolist())(keys)) if len(order) > 1 else [keys[at] for at in order.tolist()]
        return Dressed(values.take(order), partitions[order], timestamps[order], keys)

    def not_later(self, now: int) -> Dressed:
        """With ``now`` for every time that is missing, or wrong because it is still to come: a broker refuses those."""
        values, partitions, timestamps, keys = self.columns
        known = (timestamps > 0) & (timestamps <= now)
        return self if known.all() else Dressed(values, partitions, np.where(known, timestamps, now), keys)

    def untimed(self) -> Dressed:
        """Without their times."""
        values, partitions, _, keys = self.columns
        return Dressed(values, partitions, None, keys)

    def encoded(self, encode: Callable[[bytes], bytes]) -> Dressed:
        """With every value in another form."""
        values, partitions, timestamps, keys = self.columns
        return Dressed([None if v is None else encode(v) for v in values], partitions, timestamps, keys)

    def hand_over(self, topic: str, produce: Callable[..., None], wait: Callable[..., None]) -> None:
        """All records to a producer; where its queue is full, ``wait`` takes the record that found no room."""
        values, partitions, timestamps, keys = self.columns
        rest, nothing = iter([*values]), repeat(None)
        others: list[Iterator[Any]] = [iter(keys or nothing), iter(partitions.tolist()), iter(timestamps.tolist())]
        while length_hint(rest):
            try:
                # a loop of Python's own would cost a quarter of what the client does with a record
                deque(map(produce, repeat(topic), rest, others[0], others[1], nothing, nothing, others[2]), maxlen=0)
            except BufferError:
                lacking = self[len(self) - length_hint(rest) - 1]
                wait(topic, lacking.value, lacking.key, lacking.partition, lacking.timestamp)
