"""Rows of a table as JSON records on a topic."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from shoal.connect.kafka import KafkaError, library, missing, produce, told, topics_of

WAIT = 60.0


def lines(frame: pl.DataFrame) -> list[bytes]:
    """One JSON object per row."""
    out = io.BytesIO()
    frame.write_ndjson(out)
    return out.getvalue().splitlines()


class TopicWriter:
    """Sends records and knows whether they arrived; a slow broker slows the sender."""

    def __init__(self, properties: Mapping[str, Any], topic: str) -> None:
        self._kafka = library()
        self._topic = topic
        self._failed: list[Any] = []
        settings = {"linger.ms": 5, "enable.idempotence": True, "log_level": 0, **properties}
        self._producer = self._kafka.Producer({**settings, "error_cb": self._failed.append})
        found = topics_of(self._producer, self._failed, "asking for topics")
        if topic not in found or found[topic].error is not None:
            raise missing(topic, hint="create it first: it is yours")
        self.sent = 0

    def send(self, records: Iterable[bytes], keys: Iterable[bytes] | None = None) -> None:
        """Records with their keys; raises for records that the broker refused."""
        named = iter(keys) if keys is not None else None
        for record in records:
            key = None if named is None else next(named)
            produce(self._producer, self._topic, record, key, on_delivery=self._delivered)
            self.sent += 1
        self._producer.poll(0)
        self._raise()

    def close(self) -> None:
        """Wait until everything has arrived."""
        if self._producer.flush(WAIT):
            raise KafkaError("the broker did not take all records in time", where=self._topic)
        self._raise()

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failed.append(error)

    def _raise(self) -> None:
        # a lost connection is retried by the client; what it gives up is reported with the record
        bad = [e for e in self._failed if e.name() not in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE")]
        if bad:
            raise told(bad[0], "sending records")
