"""Files into a topic, each record once: the position in a file commits in the transaction of its records.

The position is kept by the cluster itself, as the offset of a group that belongs to the file, so a killed feeder
continues where its last commit stands and neither loses nor repeats a record. The broker forgets such offsets after
``offsets.retention.minutes`` (seven days unless set): do not feed a folder again later than that.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from shoal.connect.kafka import TIMEOUT, committed, library, produce, told
from shoal.connect.rows import files_of, head_of, records
from shoal.core.errors import InputError


class Feeder:
    """Feeds files to one topic."""

    def __init__(self, properties: Mapping[str, Any], topic: str, *, types: Mapping[str, str] | None = None) -> None:
        self._kafka = library()
        self._properties = {"log_level": 0, **properties}
        self._topic = topic
        self._types = types
        self.sent = 0

    def run(self, path: Path, stop: Callable[[], bool] = lambda: False) -> int:
        """All that is not sent yet of a file or a folder; how many records that was."""
        files = files_of(path)
        name = f"shoal-connect-{self._topic}-{uuid.uuid4().hex}"
        producer = self._kafka.Producer(
            {**self._properties, "transactional.id": name, "transaction.timeout.ms": 20_000, "linger.ms": 5}
        )
        try:
            producer.init_transactions(TIMEOUT)
            for file in files:
                if not stop():
                    self._feed(producer, file, stop)
        except self._kafka.KafkaException as error:
            raise told(error.args[0], f"sending to {self._topic}") from None
        return self.sent

    def position(self, file: Path) -> int:
        """How many records of a file have been sent."""
        consumer = self._group(file)
        try:
            return self._stored(consumer, file)
        finally:
            consumer.close()

    def _feed(self, producer: Any, file: Path, stop: Callable[[], bool]) -> None:
        consumer = self._group(file)
        try:
            number = self._stored(consumer, file)
            head = head_of(file)
            for batch in records(file, number, self._types):
                if stop():
                    return
                producer.begin_transaction()
                self._send(producer, batch)
                number += len(batch)
                at = self._kafka.TopicPartition(self._topic, 0, number, metadata=head)
                producer.send_offsets_to_transaction([at], consumer.consumer_group_metadata(), TIMEOUT)
                producer.commit_transaction(TIMEOUT)
                self.sent += len(batch)
        finally:
            consumer.close()

    def _send(self, producer: Any, batch: list[bytes]) -> None:
        for turn, record in enumerate(batch):
            produce(producer, self._topic, record)
            if turn % 1000 == 0:
                producer.poll(0)

    def _stored(self, consumer: Any, file: Path) -> int:
        known = self._kafka.TopicPartition(self._topic, 0)
        (found,) = committed(consumer, [known], f"asking for the position in {file.name}")
        if found.offset < 0:
            return 0
        if found.metadata and found.metadata != head_of(file):
            raise InputError(
                "another file of this name was sent before", where=str(file), hint="rename it if it is a new one"
            )
        return int(found.offset)

    def _group(self, file: Path) -> Any:
        tag = hashlib.blake2b(file.name.encode(), digest_size=8).hexdigest()
        return self._kafka.Consumer(
            {**self._properties, "group.id": f"shoal-connect-{self._topic}-{tag}", "enable.auto.commit": False}
        )
