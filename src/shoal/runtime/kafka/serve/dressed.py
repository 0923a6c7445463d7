"""Records of one view on their way out, by columns: an object per record would cost as much as its mask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from operator import itemgetter, length_hint
from typing import Any, TypeVar

import msgspec

Item = TypeVar("Item")


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """One record for a view topic."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class Dressed:
    """Records for a view topic; looked at one by one they are :class:`Outgoing`."""

    __slots__ = ("keys", "partitions", "timestamps", "values")

    def __init__(
        self,
        values: list[bytes | None] | None = None,
        partitions: list[int] | None = None,
        timestamps: list[int] | None = None,
        keys: list[bytes | None] | None = None,
    ) -> None:
        self.values = values if values is not None else []
        self.partitions = partitions if partitions is not None else [0] * len(self.values)
        self.timestamps = timestamps if timestamps is not None else [0] * len(self.values)
        self.keys = keys  # none: no record has one

    @classmethod
    def of(cls, records: Iterable[Outgoing]) -> Dressed:
        """Records that were dressed one by one."""
        many = list(records)
        keys = [r.key for r in many]
        columns = [r.value for r in many], [r.partition for r in many], [r.timestamp for r in many]
        return cls(*columns, keys if any(key is not None for key in keys) else None)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Outgoing]:
        keys: Iterable[bytes | None] = self.keys if self.keys is not None else repeat(None)
        return map(Outgoing, self.partitions, keys, self.values, self.timestamps)

    def __getitem__(self, at: int) -> Outgoing:
        key = None if self.keys is None else self.keys[at]
        return Outgoing(self.partitions[at], key, self.values[at], self.timestamps[at])

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (Dressed, list)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __iadd__(self, more: Dressed | Iterable[Outgoing]) -> Dressed:
        other = more if isinstance(more, Dressed) else Dressed.of(more)
        if self.keys is not None or other.keys is not None:
            self.keys = self.keys if self.keys is not None else [None] * len(self)
            self.keys += other.keys if other.keys is not None else [None] * len(other)
        self.values += other.values
        self.partitions += other.partitions
        self.timestamps += other.timestamps
        return self

    def __add__(self, more: Dressed | Iterable[Outgoing]) -> Dressed:
        whole = Dressed()
        whole += self
        whole += more
        return whole

    def ordered(self, order: list[int]) -> Dressed:
        """The same records in another order."""
        keys = None if self.keys is None else _picked(self.keys, order)
        return Dressed(
            _picked(self.values, order), _picked(self.partitions, order), _picked(self.timestamps, order), keys
        )

    def not_later(self, now: int) -> Dressed:
        """With ``now`` for every time that is missing, or wrong because it is still to come: a broker refuses those."""
        moments = {at: at if 0 < at <= now else now for at in set(self.timestamps)}
        if all(at == said for at, said in moments.items()):
            return self
        return Dressed(self.values, self.partitions, list(map(moments.__getitem__, self.timestamps)), self.keys)

    def hand_over(self, topic: str, produce: Callable[..., None], wait: Callable[..., None]) -> None:
        """All records to a producer; where its queue is full, ``wait`` takes the record that found no room."""
        rest, nothing = iter(self.values), repeat(None)
        keys: Iterable[bytes | None] = self.keys if self.keys is not None else nothing
        others: list[Iterator[Any]] = [iter(column) for column in (keys, self.partitions, self.timestamps)]
        while length_hint(rest):
            try:
                # a loop of Python's own would cost a quarter of what the client does with a record
                deque(map(produce, repeat(topic), rest, others[0], others[1], nothing, nothing, others[2]), maxlen=0)
            except BufferError:
                at = len(self) - length_hint(rest) - 1
                key = self.keys[at] if self.keys is not None else None
                wait(topic, self.values[at], key, self.partitions[at], self.timestamps[at])


def _picked(column: list[Item], order: list[int]) -> list[Item]:
    if column and column.count(column[0]) == len(column):  # times and partitions mostly are all the same
        return column
    return list(itemgetter(*order)(column)) if len(order) > 1 else [column[at] for at in order]
