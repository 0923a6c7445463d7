"""Records handed to a producer by columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.connect.kafka import library, produce
from shoal.core.lines import Lines
from shoal.kernels.shared.address import address_of
from shoal.kernels.shared.client_records import HOW, TAKE_KEY, TOPIC, WORDS, given
from shoal.runtime.kafka.client.library import Native, native
from shoal.runtime.kafka.serve.dressed import Dressed

KINDS = np.array([2, 7, 3, 8, 4, 5])  # the library's numbers for a topic, flags, a partition, a time, a value, a key
COPY = 2  # the library keeps records of its own: ours are gone before they are sent
FULL = -184  # its queue has no room
ROOM = 0.1  # seconds to wait for some


class Outbox:
    """What a producer is given; one record at a time where the library cannot be called past Python."""

    def __init__(self, producer: Any) -> None:
        self._producer, self._native = producer, native()
        self._topics: dict[str, int] = {}

    def give(self, topic: str, records: Dressed) -> None:
        """All of them; a slow broker slows us."""
        if not len(records):
            return
        if self._native is None:
            records.hand_over(topic, self._producer.produce, self._wait)
        else:
            self._give(self._native, topic, records)

    def close(self) -> None:
        """Before the producer is gone."""
        if self._native is not None:
            for topic in self._topics.values():
                self._native.topic_destroy(topic)
        self._topics, self._producer = {}, None

    def _give(self, found: Native, topic: str, records: Dressed) -> None:
        client = found.handle_of(self._producer)
        if topic not in self._topics:
            self._topics[topic] = found.topic_new(client, topic.encode(), None)
        values, partitions, timestamps, told = records.columns
        keys = Lines.of(told if told is not None else [])
        arguments = np.zeros((len(KINDS) if told is not None else TAKE_KEY, WORDS), np.int64)
        arguments[:, 0] = KINDS[: len(arguments)]
        arguments[TOPIC, 1], arguments[HOW, 1] = self._topics[topic], COPY
        lines = [np.ascontiguousarray(c) for c in (values.starts, values.lengths, partitions, timestamps)]
        behind = keys.starts, keys.lengths
        at, bases = 0, (address_of(values.data), address_of(keys.data))
        while at < len(values):
            at, error = given(found.address["produceva"], client, arguments, bases[0], *lines, bases[1], *behind, at)
            if error:
                self._refused(found, error)

    def _refused(self, found: Native, error: int) -> None:
        """Wait for room; raise what is not mended by waiting."""
        code = found.error_code(error)
        found.error_destroy(error)
        if code != FULL:
            kafka = library()
            raise kafka.KafkaException(kafka.KafkaError(code))
        self._producer.poll(ROOM)

    def _wait(self, topic: str, value: bytes | None, key: bytes | None, partition: int, timestamp: int) -> None:
        produce(self._producer, topic, value, key, partition, timestamp=timestamp)
