"""A view topic into a folder of Parquet files, each record once: a file's name says which offsets it holds.

``p3-000000001000-000000002000.parquet`` holds partition 3 from offset 1000 to before 2000. Files are written beside
their place and renamed when whole, so the folder itself is the position: whoever continues reads the names.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from shoal.connect.files import replacing
from shoal.connect.kafka import READ_NOW, TIMEOUT, KafkaError, kind_of, library, told
from shoal.core.errors import InputError

NAME = re.compile(r"^p(\d+)-(\d{12,})-(\d{12,})\.parquet$")


class Collector:
    """Collects one topic into one folder."""

    def __init__(
        self,
        properties: Mapping[str, Any],
        topic: str,
        folder: Path,
        *,
        group: str = "shoal-connect",
        rows: int = 100_000,
    ) -> None:
        self._kafka = library()
        self._topic, self._folder, self._rows = topic, folder, rows
        self._consumer = self._kafka.Consumer(
            {
                "log_level": 0,
                **properties,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                **READ_NOW,
                "isolation.level": "read_committed",
            }
        )
        self._held: dict[int, list[bytes]] = {}
        self._first: dict[int, int] = {}
        self._next: dict[int, int] = {}
        self._ended: set[int] = set()
        self.written = 0

    def run(self, *, follow: bool = False, every: float = 30.0, stop: Callable[[], bool] = lambda: False) -> int:
        """Up to the end as it is now; with ``follow``, on until stopped, writing at least ``every`` seconds."""
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start()
            last = time.monotonic()
            while not stop() and (follow or len(self._ended) < len(self._next)):
                self._take(self._consumer.consume(5_000, 0.2))
                full = [p for p, held in self._held.items() if len(held) >= self._rows]
                if follow and time.monotonic() - last >= every:
                    full, last = list(self._held), time.monotonic()
                for partition in full:
                    self._write(partition)
            for partition in list(self._held):
                self._write(partition)
        except self._kafka.KafkaException as error:
            raise told(error.args[0], f"reading {self._topic}") from None
        finally:
            self._consumer.close()
        return self.written

    def positions(self) -> dict[int, int]:
        """The next offset of each partition, by the names of the files."""
        out: dict[int, int] = {}
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if found := NAME.match(path.name):
                partition, _, end = map(int, found.groups())
                out[partition] = max(out.get(partition, 0), end)
        return out

    def _start(self) -> None:
        listed = self._consumer.list_topics(self._topic, timeout=TIMEOUT).topics[self._topic]
        if listed.error is not None:
            raise told(listed.error, f"asking for {self._topic}")
        known, places = self.positions(), []
        for partition in listed.partitions:
            low, _ = self._consumer.get_watermark_offsets(
                self._kafka.TopicPartition(self._topic, partition), timeout=TIMEOUT
            )
            start = known.get(partition, low)
            if start < low:
                raise InputError(
                    f"partition {partition}: {low - start:,} records were deleted before they were read",
                    where=self._topic,
                    hint="collect more often, or into a new folder",
                )
            self._next[partition] = start
            places.append(self._kafka.TopicPartition(self._topic, partition, start))
        self._consumer.assign(places)

    def _take(self, messages: list[Any]) -> None:
        for message in messages:
            kind, partition = kind_of(message, f"reading {self._topic}"), message.partition()
            if kind == "end":
                self._ended.add(partition)
            if kind != "record":
                continue
            self._ended.discard(partition)
            if partition not in self._held:
                self._held[partition], self._first[partition] = [], self._next[partition]
            if message.value() is not None:
                self._held[partition].append(message.value())
            self._next[partition] = message.offset() + 1

    def _write(self, partition: int) -> None:
        held, first = self._held.pop(partition), self._first.pop(partition)
        name = f"p{partition}-{first:012d}-{self._next[partition]:012d}.parquet"
        with replacing(self._folder / name) as part:
            self._frame(held).write_parquet(part)
        self.written += len(held)

    def _frame(self, held: list[bytes]) -> pl.DataFrame:
        text = io.BytesIO(b"\n".join(held))
        if not held:
            return pl.DataFrame()
        try:
            return pl.read_ndjson(text, infer_schema_length=None)
        except pl.exceptions.PolarsError:
            raise KafkaError("the records are not JSON of the expected types", where=self._topic) from None
