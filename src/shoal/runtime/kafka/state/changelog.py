"""State on the changelog topic: snapshots in pieces, positions and ticks, each in the transaction it belongs to.

Partition i of the changelog belongs to partition i of the source. Per view it carries

- ``position``: how far the view's *published* output stands: the next input offset, how many ticks were acted on, and
  from where in the changelog a restore must read;
- ``snapshot``: the state at an earlier or equal position, cut into pieces below the message limit;
- ``tick``: the clock moved though no record came. It is committed before it is acted on, so that a replay moves the
  clock at the same place.

The newest record of every key is all a restore needs, so the topic is compacted. Every record is sealed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from shoal.connect.kafka import READ_NOW, TIMEOUT, KafkaError, UnboundError, ends_of, kind_of, library, told
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.sealed_state import opened, seal, unseal

KIND = "a view"
VERSION = 2
PIECE = 500_000  # bytes; brokers and clients take a million at most unless told otherwise
FAR = 1 << 62  # from where to read for what has no state
PATIENCE = 60.0  # seconds until the changelog must show what was committed
OWNER = "="  # before the id of transactions in a note; no name of a view begins so
TAIL = 64  # changelog records read first: the newest position is nearly always among them


class Tick(msgspec.Struct, frozen=True, array_like=True):
    """The clock said ``now`` (microseconds of event time) when the view stood at ``next``."""

    number: int
    next: int
    now: int


class Position(msgspec.Struct, frozen=True, array_like=True):
    """What is published: all input before ``next`` and the first ``ticks`` ticks; ``since``: where to read from.

    ``source`` is the id of the topic that ``next`` counts in, where the position is that of the source itself.
    """

    next: int
    ticks: int
    since: int
    source: str = ""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """A part of a snapshot taken at ``next`` after ``ticks`` ticks; pieces of one snapshot share ``name``."""

    version: int
    name: str
    at: int
    of: int
    next: int
    ticks: int
    data: bytes


class Snapshot(NamedTuple):
    """A whole snapshot."""

    version: int
    next: int
    ticks: int
    data: bytes


@dataclass
class Found:
    """What the changelog says about one view of one partition."""

    position: Position | None = None
    ticks: dict[int, Tick] = field(default_factory=dict)
    pieces: dict[int, Piece] = field(default_factory=dict)

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot, if all of it is there."""
        if not self.pieces or len(self.pieces) != self.pieces[min(self.pieces)].of:
            return None
        first = self.pieces[0]
        data = b"".join(self.pieces[at].data for at in range(first.of))
        return Snapshot(first.version, first.next, first.ticks, data)

    def take(self, kind: str, value: bytes) -> None:
        """One record of the changelog."""
        if kind == "position":
            self.position = msgspec.msgpack.decode(value, type=Position)
        elif kind == "tick":
            tick = msgspec.msgpack.decode(value, type=Tick)
            self.ticks[tick.number] = tick
        else:
            piece = msgspec.msgpack.decode(value, type=Piece)
            if self.pieces and next(iter(self.pieces.values())).name != piece.name:
                self.pieces.clear()
            self.pieces[piece.at] = piece

    def shows(self, stand: Stand) -> bool:
        """Whether the changelog says at least this much already."""
        at = self.position
        return at is not None and (at.next, at.ticks) >= (stand.next, stand.ticks) and self.newest >= stand.logged

    @property
    def newest(self) -> int:
        """The number of the newest tick."""
        return max(self.ticks, default=self.position.ticks if self.position else 0)


class Stand(NamedTuple):
    """How a view stands after a commit: the next offset, ticks acted on, ticks logged."""

    next: int
    ticks: int
    logged: int


def note_of(stands: Mapping[str, Stand], owner: str = "") -> str:
    """What a commit says beside its offset about the views of a partition.

    A transaction is marked as committed partition by partition: whoever sees the offset may not see the changelog
    yet, and would go on from an older state. The note tells what to wait for, and in whose transactions it was written:
    if one of them stays open, whoever takes over knows which to end.
    """
    said = [f"{_short(view)}:{s.next}:{s.ticks}:{s.logged}" for view, s in sorted(stands.items())]
    return ",".join([*said, *([OWNER + owner] if owner else [])])


def owner_of(note: str) -> str | None:
    """In whose transactions a note was written, if it says so.

    >>> owner_of(note_of({"visits": Stand(1, 0, 0)}, "shoal-visits-a"))
    'shoal-visits-a'
    """
    return next((one[len(OWNER) :] for one in note.split(",") if one.startswith(OWNER)), None)


def stands_of(note: str, views: list[str]) -> dict[str, Stand]:
    """What a note says about these views; nothing about views it does not know."""
    parts = (one.split(":") for one in note.split(",") if one and not one.startswith(OWNER))
    said = {short: Stand(*map(int, rest)) for short, *rest in parts}
    return {view: said[_short(view)] for view in views if _short(view) in said}


def _short(view: str) -> str:
    return hashlib.blake2b(view.encode(), digest_size=6).hexdigest()


def key_of(view: str, kind: str, number: int = 0) -> bytes:
    """The key of a changelog record; ``view`` is the view's topic."""
    return f"{view}/{kind}/{number}".encode()


def pieces_of(view: str, name: str, snapshot: Snapshot) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a snapshot's pieces."""
    cuts = range(0, max(1, len(snapshot.data)), PIECE)
    for at, cut in enumerate(cuts):
        part = snapshot.data[cut : cut + PIECE]
        piece = Piece(snapshot.version, name, at, len(cuts), snapshot.next, snapshot.ticks, part)
        yield key_of(view, "snapshot", at), msgspec.msgpack.encode(piece)


class Seal:
    """Records of the changelog leave the process sealed, each for its key and partition only.

    So nobody who may write to the topic can move a position or the clock, or put a snapshot in another's place. An
    *older* record put back is genuine; that it is older is told by the note of the committed offset.
    """

    def __init__(self, keys: KeyRing) -> None:
        self._key, *self._older = keys.every(DEFAULT, "state")  # a rotated key seals, the ones before it still open

    def close(self, record: bytes, key: bytes, partition: int) -> bytes:
        """The value of a record, sealed."""
        return seal(record, KIND, self._key, context=f"{key.decode()}@{partition}")

    def open(self, sealed: bytes, key: bytes, partition: int) -> bytes:
        """Open again, or an error that says why not."""
        context = f"{key.decode()}@{partition}"
        where = f"changelog, {context}"
        return opened(lambda by: unseal(sealed, KIND, by, context=context, where=where), [self._key, *self._older])


def name_of(view: str, snapshot: Snapshot) -> str:
    """A name for a snapshot by where it stands and what it holds."""
    said = f"{view}/{snapshot.next}/{snapshot.ticks}/".encode() + snapshot.data
    return hashlib.blake2b(said, digest_size=8).hexdigest()


class Changelog:
    """Reads what was committed to partitions of a changelog, all of them at once."""

    def __init__(self, properties: Mapping[str, Any], topic: str, keys: KeyRing) -> None:
        self._properties, self._topic, self._seal = properties, topic, Seal(keys)
        self.early: set[int] = set()  # partitions in which the last reading found less than was committed

    def read(self, notes: Mapping[int, str], views: list[str]) -> dict[int, dict[str, Found]]:
        """What is known of each view, by partition, once it shows what the note of the newest commit says."""
        out: dict[int, dict[str, Found]] = {}
        self.early = set()
        patience = time.monotonic() + PATIENCE
        with Reader(self._properties, self._topic) as reader:
            while len(out) < len(notes):
                found = self._newest(reader, [p for p in notes if p not in out], views)
                for partition, said in found.items():
                    stands = stands_of(notes[partition], views)
                    if all(said[view].shows(stand) for view, stand in stands.items()):
                        out[partition] = said
                late = [p for p in notes if p not in out]
                if not late:
                    break
                if time.monotonic() > patience:
                    raise self._lost(late)
                self.early |= set(late)
                time.sleep(0.1)
        return out

    def _lost(self, late: list[int]) -> KafkaError:
        """Why the changelog does not show what was committed. Whoever deleted it has deleted what was published."""
        with Reader(self._properties, self._topic, "read_uncommitted") as every:
            empty = [p for p, (_, high) in every.ends(late).items() if not high]
        if not empty:
            hint = "was it deleted? `shoal serve destroy`, then `apply` publishes everything anew"
            return KafkaError("it does not show what was committed", where=f"{self._topic}, {late[0]}", hint=hint)
        return UnboundError(
            "it holds nothing, though state was committed to it: it was deleted and made again",
            where=f"{self._topic}, {empty[0]}",
            hint="what was published is not known any more: `shoal serve destroy`, then `apply` publishes anew",
        )

    def _newest(self, reader: Reader, partitions: list[int], views: list[str]) -> dict[int, dict[str, Found]]:
        """The end first, then as far back as the newest snapshots."""
        ends = reader.ends(partitions)
        starts = {p: max(low, high - TAIL) for p, (low, high) in ends.items()}
        out: dict[int, dict[str, Found]] = {}
        while starts:
            found = self._collect(reader, starts, views)
            out |= found
            starts = {p: at for p, said in found.items() if (at := _further(said, starts[p], *ends[p])) < starts[p]}
        return out

    def _collect(self, reader: Reader, starts: Mapping[int, int], views: list[str]) -> dict[int, dict[str, Found]]:
        found = {partition: {view: Found() for view in views} for partition in starts}
        for message in reader.read(starts):
            if message.value() is None or message.key() is None:
                continue
            view, kind, _ = message.key().decode().rsplit("/", 2)
            if view in views:
                value = self._seal.open(message.value(), message.key(), message.partition())
                found[message.partition()][view].take(kind, value)
        return found


def _further(found: Mapping[str, Found], start: int, low: int, high: int) -> int:
    """From where to read again: what was found names an earlier snapshot, or a view has shown nothing yet."""
    since = [one.position.since for one in found.values() if one.position is not None]
    wanted = max(low, min(since)) if since else start
    if wanted < start:
        return wanted
    lacking = any(one.position is None for one in found.values())
    return max(low, high - (high - start) * 16) if lacking else start


class Reader:
    """Reads committed records of a topic's partitions, to their ends or to an offset; part of no group."""

    def __init__(self, properties: Mapping[str, Any], topic: str, isolation: str = "read_committed") -> None:
        self._kafka = library()
        self._topic = topic
        settings = {"group.id": f"shoal-{topic}", "enable.auto.commit": False, "enable.partition.eof": True}
        self._consumer = self._kafka.Consumer(
            {**properties, **settings, **READ_NOW, "isolation.level": isolation, "auto.offset.reset": "error"}
        )

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def partitions(self) -> list[int]:
        """The topic's partitions; none if it does not exist. That we may not see it does not mean that it does not."""
        try:
            listed = self._consumer.list_topics(self._topic, timeout=TIMEOUT).topics.get(self._topic)
        except self._kafka.KafkaException as error:
            raise told(error.args[0], f"asking for {self._topic}") from None
        if listed is None or (listed.error is not None and listed.error.name() == "UNKNOWN_TOPIC_OR_PART"):
            return []
        if listed.error is not None:
            raise told(listed.error, f"asking for {self._topic}")
        return list(listed.partitions)

    def ends(self, partitions: Collection[int]) -> dict[int, tuple[int, int]]:
        """The first offset of each partition, and the one after its last committed record."""
        return ends_of(self._consumer, self._topic, partitions)

    def read(self, starts: Mapping[int, int], ends: Mapping[int, int] | None = None) -> Iterator[Any]:
        """Messages of these partitions from their offsets on; before ``ends``, or until nothing committed is left."""
        before = dict.fromkeys(starts, FAR) if ends is None else ends
        left = {p for p, start in starts.items() if start < before[p]}
        self._consumer.assign([self._kafka.TopicPartition(self._topic, p, starts[p]) for p in left])
        patience = time.monotonic() + 4 * TIMEOUT
        while left:
            # it comes back when it has so many, or then: the end of a partition does not call it back
            for message in self._consumer.consume(5_000, 0.05):
                kind, partition = kind_of(message, f"reading {self._topic}"), message.partition()
                if kind == "end" or (kind == "record" and message.offset() >= before[partition]):
                    left.discard(partition)
                elif kind == "record" and partition in left:
                    patience = time.monotonic() + 4 * TIMEOUT
                    yield message
                    if message.offset() == before[partition] - 1:
                        left.discard(partition)
            if time.monotonic() > patience:
                raise KafkaError("the broker gives no records", where=self._topic)
