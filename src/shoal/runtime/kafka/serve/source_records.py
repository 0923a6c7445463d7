"""Records of the source as columns: an object per record, made and taken apart again, costs as much as its mask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter, methodcaller
from typing import Any, Self, TypeVar

import msgspec
import numpy as np

from shoal.connect.kafka import KafkaError
from shoal.core.errors import InputError
from shoal.core.lines import Lines, Numbers

Item = TypeVar("Item")
Decode = Callable[[bytes], bytes]
LARGEST = 900_000  # bytes of a record: what a view makes of it must stay below a million, the client's limit


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One record of the source: where it stood, and what it carried."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class Records(Sequence[Record]):
    """Records of the source; looked at one by one they are :class:`Record`.

    ``keys`` is none where no record has one.

    >>> some = Records.of([Record(0, 7, None, b"{}", 0), Record(3, 1, None, b"{}", 0), Record(0, 8, None, b"{}", 0)])
    >>> [(partition, part.offsets.tolist()) for partition, part in some.by_partition()], some.reached()
    ([(0, [7, 8]), (3, [1])], {0: 9, 3: 2})
    """

    __slots__ = ("keys", "offsets", "partitions", "timestamps", "values")

    def __init__(
        self,
        values: Sequence[bytes | None],
        partitions: Numbers,
        offsets: Numbers,
        timestamps: Numbers,
        keys: list[bytes | None] | None = None,
    ) -> None:
        self.values = Lines.of(values)  # none for a tombstone, which `full` leaves out
        self.partitions, self.offsets, self.timestamps = partitions, offsets, timestamps
        self.keys = keys

    @classmethod
    def of(cls, records: Sequence[Record]) -> Records:
        """Records as columns, if they are not yet."""
        if isinstance(records, Records):
            return records
        keys = [r.key for r in records]
        return cls(
            [r.value for r in records],
            whole(r.partition for r in records),
            whole(r.offset for r in records),
            whole(r.timestamp for r in records),
            keys if any(key is not None for key in keys) else None,
        )

    @classmethod
    def read(cls, messages: Sequence[Any], values: Sequence[bytes | None], *, timed: bool = True) -> Records:
        """Messages of a client, and the values of theirs that are taken.

        Where records are not ``timed``, those of a stretch of one partition have the time of the first of them: enough
        to say how old the oldest is.
        """
        keys: list[bytes | None] = list(map(_KEY, messages))
        partitions = whole(map(_PARTITION, messages))
        ends = _stretches(partitions)
        return cls(
            values,
            partitions,
            _offsets(messages, ends),
            whole(map(_SECOND, map(_TIMESTAMP, messages))) if timed else _times(messages, ends),
            keys if keys.count(None) < len(keys) else None,
        )

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self.take(at)
        key = None if self.keys is None else self.keys[at]
        return Record(int(self.partitions[at]), int(self.offsets[at]), key, self.values[at], int(self.timestamps[at]))

    def __iter__(self) -> Iterator[Record]:
        return map(Record, *self._columns())

    def _columns(self) -> tuple[Sequence[Any], ...]:
        keys = [None] * len(self) if self.keys is None else self.keys
        return self.partitions.tolist(), self.offsets.tolist(), keys, self.values, self.timestamps.tolist()

    def take(self, at: slice | Numbers) -> Self:
        """Some of them."""
        keys = None if self.keys is None else chosen(self.keys, at)
        return type(self)(self.values.take(at), self.partitions[at], self.offsets[at], self.timestamps[at], keys)

    def full(self) -> Self:
        """Those with a value."""
        full = self.values.full
        return self if full.all() else self.take(np.flatnonzero(full))

    def readable(self, decode: Decode | None) -> Self:
        """With values decoded. One that a codec cannot read, or too large to publish, is empty: no view can read it."""
        if decode is as_written or (decode is None and self.values.longest <= LARGEST):
            return self
        values = [_decoded(value, decode) for value in self.values]
        return type(self)(values, self.partitions, self.offsets, self.timestamps, self.keys)

    def within(self, most: int) -> Self:
        """One whose value and key are larger together is empty, and without a key.

        >>> some = Records.of([Record(0, 7, b"k", b"{}", 0), Record(0, 8, b"key", b"{}", 0)])
        >>> [(record.key, record.value) for record in some.within(4)]
        [(b'k', b'{}'), (None, b'')]
        """
        sizes = self.values.lengths + (0 if self.keys is None else whole(len(key or b"") for key in self.keys))
        if not (sizes > most).any():
            return self
        fits = (sizes <= most).tolist()
        values = [value if here else b"" for value, here in zip(self.values, fits, strict=True)]
        keys = [key if here else None for key, here in zip(self.keys or [None] * len(self), fits, strict=True)]
        return type(self)(values, self.partitions, self.offsets, self.timestamps, keys if self.keys else None)

    def follow(self, reached: Mapping[int, int]) -> bool:
        """Whether they stand behind what was reached before, those of a partition in their order."""
        ends = _stretches(self.partitions)
        begins, upto = [0, *ends][:-1], dict(reached)
        for begin, end in zip(begins, ends, strict=True):
            partition, mine = int(self.partitions[begin]), self.offsets[begin:end]
            if mine[0] < upto.get(partition, 0) or (np.diff(mine) <= 0).any():
                return False
            upto[partition] = int(mine[-1]) + 1
        return True

    def by_partition(self) -> Iterator[tuple[int, Self]]:
        """The records of each partition, in their order."""
        for partition in self.reached():  # in the order in which they came
            mine = np.flatnonzero(self.partitions == partition)
            if len(mine) == len(self):
                yield partition, self
                return
            first, last = int(mine[0]), int(mine[-1]) + 1
            # a client hands over stretches of single partitions
            yield partition, self.take(slice(first, last) if last - first == len(mine) else mine)

    def reached(self) -> dict[int, int]:
        """What comes next of each partition."""
        if not len(self):
            return {}
        # where a stretch of one partition ends
        last = np.append(np.flatnonzero(self.partitions[1:] != self.partitions[:-1]), len(self) - 1)
        return dict(zip(self.partitions[last].tolist(), (self.offsets[last] + 1).tolist(), strict=True))


def _stretches(partitions: Numbers) -> list[int]:
    """Where stretches of one partition end."""
    inner: list[int] = (np.flatnonzero(partitions[1:] != partitions[:-1]) + 1).tolist()
    return [*inner, len(partitions)] if len(partitions) else []


def _times(messages: Sequence[Any], ends: list[int]) -> Numbers:
    """The time of the first record of each stretch, for all of it."""
    begins = [0, *ends][:-1]
    return np.repeat(whole(messages[at].timestamp()[1] for at in begins), np.diff([0, *ends]))


def _offsets(messages: Sequence[Any], ends: list[int]) -> Numbers:
    """Where records stood. Offsets of a partition rise, so mostly the ends of a stretch of it tell all between them."""
    out = np.empty(len(messages), np.int64)
    for begin, end in zip([0, *ends], ends, strict=False):
        first, last = messages[begin].offset(), messages[end - 1].offset()
        plain = last - first == end - begin - 1
        out[begin:end] = np.arange(first, last + 1) if plain else whole(map(_OFFSET, messages[begin:end]))
    return out


def as_written(value: bytes) -> bytes:
    """The codec of what we wrote ourselves: it may be larger than a record of the source."""
    return value


def _decoded(value: bytes | None, decode: Decode | None) -> bytes | None:
    if not value or len(value) > LARGEST:
        return value and b""
    try:
        return value if decode is None else decode(value)
    except KafkaError:  # it is not the record's fault: try again later
        raise
    except InputError:
        return b""


def whole(numbers: Iterable[int]) -> Numbers:
    """Whole numbers as a column.

    >>> whole(map(len, ["a", "bc"])).tolist()
    [1, 2]
    """
    return np.fromiter(numbers, np.int64)


def chosen(column: Sequence[Item], at: slice | Numbers) -> list[Item]:
    """Some of a list, by place.

    >>> chosen(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if isinstance(at, slice):
        return list(column[at])
    places = at.tolist()
    return list(itemgetter(*places)(column)) if len(places) > 1 else [column[place] for place in places]


_PARTITION, _OFFSET, _KEY, _TIMESTAMP = map(methodcaller, ("partition", "offset", "key", "timestamp"))
_SECOND: Callable[[Any], int] = itemgetter(1)
