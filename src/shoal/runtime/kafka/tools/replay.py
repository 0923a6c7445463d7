"""Dead letters, again: each pointer is looked up in the source, and what can be masked by now is queued once more.

The dead-letter topic holds no values, so the source must still hold the record: what retention has deleted is counted
as gone. A record that still does not fit keeps its pointer, and so does one that only some views could not read: the
others have published it, and would publish it again. Where every view has a newer version since, that one was filled
from the log and has read the record: the pointer is settled. Records, pointers and the position among the dead letters
commit in one transaction, so no record is queued twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.connect.kafka import READ_NOW, TIMEOUT, KafkaError, Source, committed, internal, kind_of, library, told
from shoal.core.errors import InputError
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.runtime.kafka.client.inbox import records_of
from shoal.runtime.kafka.formats.registry import codec_of
from shoal.runtime.kafka.provision.served import Served, served_now
from shoal.runtime.kafka.regions.wish import unrouted
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.masking import Masking
from shoal.runtime.kafka.serve.shards import Shard
from shoal.runtime.kafka.state.changelog import Seal


class Pointer(msgspec.Struct, frozen=True):
    """Where a record stands that could not be masked."""

    topic: str
    partition: int
    offset: int
    error: str = ""
    views: tuple[str, ...] = ()  # topics of those that could not read it
    tried: int = 0


class Replayed(msgspec.Struct):
    """What became of the dead letters."""

    pointers: int = 0
    ready: int = 0  # can be masked by now
    still: int = 0  # does not fit yet
    partly: int = 0  # other views have published it
    settled: int = 0  # newer versions of the views have read it
    gone: int = 0  # deleted from the source


class Replay:
    """Looks dead letters up and queues their records again."""

    def __init__(self, policy: Policy, keys: KeyRing) -> None:
        self._kafka = library()
        source = Source(policy.source, policy.path)
        self._properties, self._topic = source.properties, source.topic
        self._dead = internal(self._topic, "dead")
        self._codec = codec_of(policy)
        self._policy = policy
        self._keys = keys
        self._shards: list[Shard] = []
        self._bounds: dict[int, tuple[int, int]] = {}  # what the source still has, by partition

    def run(self, *, dry: bool = False) -> Replayed:
        """All pointers that were not replayed yet; ``dry`` only looks."""
        consumer = self._consumer(f"shoal-{self._topic}.replay")
        source = self._consumer(f"shoal-{self._topic}.replay.source")
        try:
            pointers, positions = self._pointers(consumer)
            self._bounds.clear()
            served = served_now(self._policy)
            self._try_on(served)
            found = Replayed(pointers=len(merged(pointers)))
            ready: list[Any] = []
            still: list[Pointer] = []
            for pointer in merged(pointers):
                views = {s.topic for s in served.values() if s.begun(pointer.partition, pointer.offset)}
                message = self._look_up(source, pointer)
                if message is None:
                    found.gone += 1
                elif views and not views & set(pointer.views):
                    found.settled += 1
                elif views <= set(pointer.views) and self._fits(message):
                    ready.append(message)
                else:
                    found.partly += not views <= set(pointer.views)
                    still.append(pointer)
            found.ready, found.still = len(ready), len(still) - found.partly
            if not dry and pointers:
                self._queue(consumer, positions, ready, still)
            return found
        except self._kafka.KafkaException as error:
            raise told(error.args[0], "replaying dead letters") from None
        finally:
            consumer.close()
            source.close()
            if self._codec is not None:
                self._codec.close()

    def _pointers(self, consumer: Any) -> tuple[list[Pointer], Mapping[int, int]]:
        """What stands in the dead-letter topic after the last replay."""
        listed = consumer.list_topics(self._dead, timeout=TIMEOUT).topics[self._dead]
        if listed.error is not None:
            raise told(listed.error, f"asking for {self._dead}")
        places = [self._kafka.TopicPartition(self._dead, p) for p in listed.partitions]
        known = committed(consumer, places, "asking what was replayed")
        for place in known:
            place.offset = place.offset if place.offset >= 0 else self._kafka.OFFSET_BEGINNING
        consumer.assign(known)
        found: list[Pointer] = []
        positions: dict[int, int] = {}
        ended: set[int] = set()
        while len(ended) < len(known):
            for message in consumer.consume(1_000, 0.5):
                kind = kind_of(message, f"reading {self._dead}")
                if kind == "record":
                    found.append(self._pointer(message))
                    positions[message.partition()] = message.offset() + 1
                elif kind == "end":
                    ended.add(message.partition())
        return found, positions

    def _pointer(self, message: Any) -> Pointer:
        try:
            pointer = msgspec.json.decode(message.value() or b"", type=Pointer)
        except msgspec.MsgspecError:
            pointer = None
        if pointer is None or pointer.topic != self._topic:
            place = f"{self._dead}, partition {message.partition()}, offset {message.offset()}"
            raise InputError("this is no pointer into the source", where=place)
        return pointer

    def _look_up(self, source: Any, pointer: Pointer) -> Any:
        """The record a pointer means, or nothing if the source has deleted it."""
        place = self._kafka.TopicPartition(self._topic, pointer.partition, pointer.offset)
        if pointer.partition not in self._bounds:  # asked once: a record that goes meanwhile is not found below
            self._bounds[pointer.partition] = source.get_watermark_offsets(place, timeout=TIMEOUT)
        low, high = self._bounds[pointer.partition]
        if not low <= pointer.offset < high:
            return None
        source.assign([place])
        for _ in range(int(TIMEOUT / 0.5)):
            message = source.poll(0.5)
            kind = "hiccup" if message is None else kind_of(message, f"reading {self._topic}")
            if kind != "hiccup":
                return message if kind == "record" and message.offset() == pointer.offset else None
        raise KafkaError("the source does not answer", where=self._topic)

    def _fits(self, message: Any) -> bool:
        """Whether the workers would read it now: tried by what they do themselves, every limit among it."""
        if message.value() is None:
            return False
        decode = self._codec.decode if self._codec is not None else None
        for shard in self._shards:
            shard.next = 0
        self._masking.take(records_of([message], decode), {message.partition(): self._shards})
        fits = not self._masking.dead
        self._masking.forget()
        return fits

    def _try_on(self, served: Mapping[str, Served]) -> None:
        """The views as the workers have them, to try records on; nothing of it is published or kept."""
        policy = unrouted(self._policy)  # what a region publishes is tried as the record it is
        self._masking = Masking(policy, self._keys, served, self._codec)
        self._masking.open(self._topic, {one.topic: 1 for one in served.values()})
        dressed, seal = self._masking.disguises, Seal(self._keys)
        self._shards = [
            Shard(role, served[role].name, 0, stateful.start(policy, role, 0, self._keys, dressed[role], None), seal)
            for role in self._masking.stateful
        ]

    def _queue(self, consumer: Any, positions: Mapping[int, int], ready: list[Any], still: list[Pointer]) -> None:
        name = f"shoal-{self._topic}-replay-{uuid.uuid4().hex}"
        producer = self._kafka.Producer({**self._properties, "transactional.id": name})
        producer.init_transactions(TIMEOUT)
        producer.begin_transaction()
        for message in ready:
            producer.produce(
                self._topic,
                message.value(),
                message.key(),
                message.partition(),
                timestamp=message.timestamp()[1],
                headers=message.headers(),
            )
        for pointer in still:
            again = msgspec.structs.replace(pointer, tried=pointer.tried + 1)
            producer.produce(self._dead, msgspec.json.encode(again), partition=pointer.partition)
        offsets = [self._kafka.TopicPartition(self._dead, p, o) for p, o in positions.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT)
        producer.commit_transaction(TIMEOUT)

    def _consumer(self, group: str) -> Any:
        return self._kafka.Consumer(
            {
                **self._properties,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                **READ_NOW,
                "isolation.level": "read_committed",
            }
        )


def merged(pointers: list[Pointer]) -> list[Pointer]:
    """One pointer per record, in the order of the source: views that were filled later wrote pointers of their own."""
    found: dict[tuple[int, int], Pointer] = {}
    for pointer in pointers:
        place = (pointer.partition, pointer.offset)
        other = found.get(place, pointer)
        views = tuple(dict.fromkeys((*other.views, *pointer.views)))
        tried = max(other.tried, pointer.tried)
        found[place] = msgspec.structs.replace(pointer, views=views, tried=tried)
    return [found[place] for place in sorted(found)]
