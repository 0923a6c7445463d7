"""Records of the partitions that a consumer was given, read as columns.

The records of those partitions are led past the consumer's own queue into one that is emptied by a compiled loop. What
remains to the consumer is everything else: its group, its errors, and whatever it has of records all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ctypes import c_int32, c_int64
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from shoal.connect.kafka import kind_of, library
from shoal.core.lines import Lines, Numbers
from shoal.kernels.shared.client_records import measured, polled, taken
from shoal.runtime.kafka.client.library import Native, native
from shoal.runtime.kafka.serve.source_records import Decode, Records

DOING = "reading the source"


class Received(NamedTuple):
    """Records, and where partitions end that have nothing more."""

    records: Records
    ends: Mapping[int, int]

    def __bool__(self) -> bool:
        """Whether anything came."""
        return bool(len(self.records) or self.ends)


class Inbox:
    """What a consumer receives; ``keyed`` is whether anybody wants the keys, ``timed`` the times of all records."""

    def __init__(self, consumer: Any, decode: Decode | None, *, keyed: bool = True, timed: bool = True) -> None:
        self._consumer, self._decode, self._keyed, self._timed = consumer, decode, keyed, timed
        found = native()
        self._queue = None if found is None else Queue(found, consumer)

    def attach(self, topic: str, partitions: Iterable[int]) -> None:
        """Read these partitions from now on. Before they are assigned: what came before would be left behind."""
        if self._queue is not None:
            self._queue.attach(topic, partitions)

    def read(self, limit: int, wait: float) -> Received:
        """At most so many records, waiting so many seconds for them. Partitions come and go while we :meth:`hear`."""
        if self._queue is None:
            return self._heard(limit, wait)
        found, failed = self._queue.read(limit, wait, self._keyed)
        return Received(found.readable(self._decode), _ends(failed))

    def hear(self, limit: int, wait: float) -> Received:
        """Whatever else the consumer has to say: its callbacks are called, its errors raised."""
        # without a queue, records were read already; but whoever waits while it has no partitions waits here
        return self._heard(limit, wait) if self._queue is not None or wait else NOTHING

    def close(self) -> None:
        """Before the consumer is closed."""
        if self._queue is not None:
            self._queue.close()
        self._consumer = None

    def _heard(self, limit: int, wait: float) -> Received:
        messages = self._consumer.consume(limit, timeout=wait)
        other = [m for m in messages if m.error() is not None] if any(map(_ERROR, messages)) else []
        if other:
            messages = [m for m in messages if m.error() is None]
        return Received(records_of(messages, self._decode, timed=self._timed), _ends(other))


class Queue:
    """The client's queue that a compiled loop empties, as events.

    Read as messages it would call the error callback of the client's Python, which aborts the process if its own
    functions do not stand on the stack: a source that is deleted is told so.
    """

    def __init__(self, found: Native, consumer: Any) -> None:
        self._native, self._client = found, found.handle_of(consumer)
        self._queue: int | None = found.queue_new(self._client)
        self._messages, self._events = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def attach(self, topic: str, partitions: Iterable[int]) -> None:
        """Lead the records of these partitions here, wherever they went before."""
        for partition in partitions:
            theirs = self._native.queue_get_partition(self._client, topic.encode(), partition)
            self._native.queue_forward(theirs, self._queue)
            self._native.queue_destroy(theirs)

    def read(self, limit: int, wait: float, keyed: bool) -> tuple[Records, list[Failed]]:
        """Records, and what is none."""
        if len(self._messages) < limit:
            self._messages, self._events = np.zeros(limit, np.int64), np.zeros(limit, np.int64)
        first = self._native.queue_poll(self._queue, int(wait * 1000)) or 0
        ask = (self._native.address[name] for name in ("queue_poll", "event_type", "event_message_next"))
        count = polled(self._queue, *ask, first, self._events[:limit], self._messages)
        messages, events = self._messages[:count], self._events[:count]
        failed = [found for event in events[messages == 0].tolist() if (found := self._failed(event)).code]
        partitions, offsets, lengths, key_lengths, times = (np.empty(count, np.int64) for _ in range(5))
        errors = np.empty(count, np.int32)
        room, key_room = measured(messages, errors, partitions, offsets, lengths, key_lengths)
        keyed = keyed and bool((key_lengths >= 0).any())
        values, keys = np.empty(room, np.uint8), np.empty(key_room if keyed else 0, np.uint8)
        tell, free = (self._native.address[name] for name in ("message_timestamp", "event_destroy"))
        taken(messages, events, lengths, key_lengths, tell, free, values, keys, times)
        told = [bytes_of(keys, key_lengths)] if keyed else []
        records = Records(Lines.behind(values, lengths), partitions, offsets, times, *told)
        for at in np.flatnonzero((errors != 0) & (messages != 0)).tolist():
            failed.append(Failed(int(errors[at]), int(partitions[at]), int(offsets[at])))
        return (records.take(np.flatnonzero(errors == 0)) if errors.any() else records), failed

    def _failed(self, event: int) -> Failed:
        place = self._native.event_topic_partition(event)
        where = (-1, -1)
        if place:  # the name of a topic, a partition, an offset
            where = c_int32.from_address(place + 8).value, c_int64.from_address(place + 16).value
            self._native.topic_partition_destroy(place)
        return Failed(self._native.event_error(event), *where)

    def close(self) -> None:
        """Give the queue back, once."""
        if self._queue is not None:
            self._native.queue_destroy(self._queue)
            self._queue = None


class Failed(NamedTuple):
    """What stands in a partition's queue and is no record, as far as :func:`kind_of` reads a message."""

    code: int
    at_partition: int
    at_offset: int

    def error(self) -> Any:
        """The client's error."""
        return library().KafkaError(self.code)

    def partition(self) -> int:
        """The partition."""
        return self.at_partition

    def offset(self) -> int:
        """Where it stands."""
        return self.at_offset


def records_of(messages: Iterable[Any], decode: Decode | None = None, *, timed: bool = True) -> Records:
    """Messages of the source as records; what a codec cannot read, or is too large to publish, no view can read."""
    found = list(messages)
    return Records.read(found, list(map(_VALUE, found)), timed=timed).readable(decode)


def bytes_of(data: Any, lengths: Numbers) -> list[bytes | None]:
    """Texts of these lengths, one right behind the other; below 0 there is none.

    >>> bytes_of(np.frombuffer(b"abc", np.uint8), np.array([1, -1, 0, 2]))
    [b'a', None, b'', b'bc']
    """
    raw = data.tobytes()
    ends = np.cumsum(np.maximum(lengths, 0))
    places = zip((ends - lengths).tolist(), ends.tolist(), (lengths >= 0).tolist(), strict=True)
    return [raw[begin:end] if there else None for begin, end, there in places]


def _ends(messages: Sequence[Any]) -> dict[int, int]:
    return {m.partition(): m.offset() for m in messages if kind_of(m, DOING) == "end"}


NOTHING = Received(Records.of([]), {})
_VALUE, _ERROR = map(methodcaller, ("value", "error"))
