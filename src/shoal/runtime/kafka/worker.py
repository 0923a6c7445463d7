"""The worker: source records in, every role's view out, exactly once.

Views, dead letters, state and offsets commit in one transaction. A worker that is killed leaves an aborted transaction
behind and nothing else; one that is fenced or loses its partitions stops and is started again with clean state. More
workers in the group share the partitions: input partition i is shard i.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from shoal.connect.kafka import KafkaError, client_properties, library, source_of, told
from shoal.core.errors import PolicyError
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.policy.records import RecordViews
from shoal.policy.views import RoleView
from shoal.runtime.kafka.layout import layout
from shoal.runtime.kafka.output import Disguise, Outgoing, Record

Protocol = Literal["classic", "consumer"]
TIMEOUT = 30.0
MOST = 20_000  # records of a view held for one commit


class LostError(KafkaError):
    """The partitions went to someone else: stop, and start again with clean state."""


@dataclass
class Counters:
    """What a worker did, by view; no values, ever."""

    read: int = 0
    dead: int = 0
    commits: int = 0
    written: dict[str, int] = field(default_factory=dict)


class Worker:
    """Runs the views of one policy over its source topic."""

    def __init__(
        self,
        policy: Policy,
        keys: KeyRing,
        *,
        commit_every: float = 0.5,
        batch: int = 1000,
        protocol: Protocol = "classic",
    ) -> None:
        self._kafka = library()
        self._source = source_of(policy.source, policy.path)
        folder = Path(policy.path).parent if policy.path else Path()
        self._properties = client_properties(self._source, folder, log_level=0)
        self._topic = str(self._source["topic"])
        self._commit_every, self._batch, self._protocol = commit_every, batch, protocol
        promising = [role for role, view in policy.views.items() if view.promises]
        if promising:
            raise PolicyError("views with promises are not served on Kafka yet", where=f"views.{promising[0]}")
        self._views = RecordViews([RoleView.of(policy, role) for role in policy.views], keys)
        wanted = layout(policy, 1)
        self._targets = [wanted.views[role] for role in self._views.roles]
        self._dead = f"{self._topic}.shoal.dead"
        self._policy, self._keys = policy, keys
        self._disguises: list[Disguise] = []
        self._pending: list[list[Outgoing]] = [[] for _ in self._targets]
        self._dead_letters: list[Record] = []
        self._positions: dict[int, int] = {}
        self._lost = False
        self.counters = Counters(written=dict.fromkeys(self._views.roles, 0))

    def run(self, stop: Callable[[], bool] = lambda: False) -> Counters:
        """Serve until ``stop`` says so; what was read is committed before it returns."""
        kafka = self._kafka
        self._producer = kafka.Producer(
            {
                **self._properties,
                "transactional.id": f"shoal-{self._topic}-{uuid.uuid4().hex}",
                "transaction.timeout.ms": 20_000,
                "linger.ms": 5,
            }
        )
        try:
            self._producer.init_transactions(TIMEOUT)
        except kafka.KafkaException as error:
            raise told(error.args[0], "starting transactions") from None
        self._consumer = self._start_consumer()
        self._disguises = self._start_disguises()
        try:
            self._consumer.subscribe(
                [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._gone
            )
            self._loop(stop)
            self._commit()
        finally:
            self._consumer.close()
        return self.counters

    def _loop(self, stop: Callable[[], bool]) -> None:
        last = time.monotonic()
        while not stop():
            messages = self._consumer.consume(self._batch, timeout=min(0.2, self._commit_every))
            if self._lost:
                raise LostError("the partitions were taken away", where="kafka")
            self._take([m for m in messages if self._usable(m)])
            full = max(map(len, self._pending), default=0) >= MOST
            if full or time.monotonic() - last >= self._commit_every:
                self._commit()
                last = time.monotonic()

    def _usable(self, message: Any) -> bool:
        error = message.error()
        if error is not None and (error.fatal() or not error.retriable()):
            raise told(error, "reading the source")
        return error is None

    def _take(self, messages: list[Any]) -> None:
        """Mask a batch and hold it for the commit, where the records of all batches are mixed."""
        records = [Record(m.partition(), m.offset(), m.key(), m.value(), m.timestamp()[1]) for m in messages]
        full = [r for r in records if r.value is not None]
        tombstones = [r for r in records if r.value is None]
        done = self._views.many([r.value for r in full if r.value is not None])
        refused = {at for at, _ in done.refused}
        kept = [r for at, r in enumerate(full) if at not in refused]
        for pending, disguise, values in zip(self._pending, self._disguises, done.views, strict=True):
            dressed = [disguise.dress(r, v) for r, v in zip(kept, values, strict=True)]
            dressed += [disguise.dress(r, None) for r in tombstones]
            pending += [d for d in dressed if d is not None]
        self._dead_letters += [full[at] for at in sorted(refused)]
        for record in records:
            self._positions[record.partition] = record.offset + 1
        self.counters.read += len(records)

    def _commit(self) -> None:
        """All that is held, mixed, with its offsets, in one transaction: it happens whole or not at all."""
        if not self._positions:
            return
        first = b",".join(b"%d:%d" % at for at in sorted(self._positions.items()))
        offsets = [self._kafka.TopicPartition(self._topic, p, o) for p, o in self._positions.items()]
        try:
            self._producer.begin_transaction()
            for target, disguise, pending in zip(self._targets, self._disguises, self._pending, strict=True):
                for record in disguise.shuffle(pending, first):
                    self._produce(target, record.value, record.key, record.partition, record.timestamp)
            for letter in self._dead_letters:
                self._produce(self._dead, _pointer(self._topic, letter), None, letter.partition, letter.timestamp)
            self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), TIMEOUT)
            self._producer.commit_transaction(TIMEOUT)
        except self._kafka.KafkaException as error:
            self._abort()
            raise LostError(f"the commit failed: {error.args[0].name()}", where="kafka") from None
        for role, pending in zip(self._views.roles, self._pending, strict=True):
            self.counters.written[role] += len(pending)
        self.counters.dead += len(self._dead_letters)
        self.counters.commits += 1
        self._forget()

    def _forget(self) -> None:
        self._pending = [[] for _ in self._targets]
        self._dead_letters = []
        self._positions = {}

    def _produce(self, topic: str, value: bytes | None, key: bytes | None, partition: int, timestamp: int) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, partition, timestamp=timestamp)
                return
            except BufferError:  # the broker is slower than we are: wait for it
                self._producer.poll(0.1)

    def _abort(self) -> None:
        self._forget()
        try:
            self._producer.abort_transaction(TIMEOUT)
        except self._kafka.KafkaException:
            return  # fenced or unreachable: the broker aborts it by itself

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        # waits while a former owner's transaction is still open, so that no record is read twice
        consumer.committed(partitions, timeout=TIMEOUT)
        if self._protocol == "consumer":
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        self._commit()
        if self._protocol == "consumer":
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def _gone(self, consumer: Any, partitions: list[Any]) -> None:
        self._forget()
        self._lost = True

    def _start_consumer(self) -> Any:
        settings: dict[str, Any] = {
            **self._properties,
            "group.id": self._source.get("group", f"shoal-{self._topic}"),
            "group.protocol": self._protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
        if self._protocol == "classic":  # a dead member must not hold up the group for minutes
            settings |= {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_500, "max.poll.interval.ms": 60_000}
        return self._kafka.Consumer(settings)

    def _start_disguises(self) -> list[Disguise]:
        counts = partitions_of(self._producer, self._targets)
        return [
            Disguise(self._policy.views[role], self._topic, counts[target], self._keys)
            for role, target in zip(self._views.roles, self._targets, strict=True)
        ]


def _pointer(topic: str, record: Record) -> bytes:
    """Where a record that could not be masked stands: who may read the source can look it up there."""
    return msgspec.json.encode(
        {"topic": topic, "partition": record.partition, "offset": record.offset, "error": "unreadable"}
    )


def partitions_of(client: Any, topics: list[str]) -> Mapping[str, int]:
    """The partitions of topics that must exist."""
    listed = client.list_topics(timeout=TIMEOUT).topics
    for name in topics:
        if name not in listed or listed[name].error is not None:
            raise KafkaError(f"the topic {name!r} is not there", where="kafka", hint="run `shoal serve apply` first")
    return {name: len(listed[name].partitions) for name in topics}
