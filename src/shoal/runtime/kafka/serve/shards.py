"""A shard: one stateful view of one partition, restored from the changelog and the input log, and kept there."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.connect.kafka import KafkaError, internal
from shoal.core.errors import InputError
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.output import Disguise, Outgoing, Record
from shoal.runtime.kafka.state.changelog import (
    VERSION,
    Changelog,
    Found,
    Position,
    Reader,
    Seal,
    Snapshot,
    Stand,
    Tick,
    key_of,
    name_of,
    pieces_of,
)

QUIET = 1.0  # seconds without a record after which the clock is moved on
EVERY = 100_000  # records between two snapshots of a small state
OFTEN = 60.0  # seconds between two of them, while records come
LIGHT = 10_000_000  # bytes: a state ten times as large is written a tenth as often
TICKS = 1000  # ticks between two snapshots, at most
LARGEST = 900_000  # bytes of a record: what a view makes of it must stay below a million, the client's limit
SAMPLE = 500  # records to warm up with


@dataclass
class Shard:
    """One stateful view of one partition at work."""

    role: str
    view: str  # its topic: the name of its state
    partition: int
    work: stateful.Stateful
    seal: Seal
    next: int = 0
    ticks: int = 0
    since: int = -1  # where in the changelog the newest snapshot begins
    unsaved: int = 0  # records since the newest snapshot
    ticked: int = 0  # ticks since
    newest: int = 0  # the number of the newest tick that was logged
    size: int = 0  # its bytes
    dirty: bool = False
    ended: bool = False  # whether all input there is was read
    moved: float = field(default_factory=time.monotonic)  # when the last record or tick came, or the end was reached
    saved: float = field(default_factory=time.monotonic)

    def push(self, records: Sequence[Record]) -> tuple[list[Outgoing], list[Record]]:
        """Take records of this partition; those it has seen before it skips."""
        new = [r for r in records if r.offset >= self.next]
        if not new:
            return [], []
        out = self.work.push([r for r in new if r.value is not None])
        self.next = new[-1].offset + 1
        self.unsaved += len(new)
        self.dirty, self.ended, self.moved = True, False, time.monotonic()
        return out

    def reach_end(self) -> None:
        """All input there is was read: from now on it is quiet."""
        self.ended, self.moved = True, time.monotonic()

    def due(self) -> Tick | None:
        """The tick to log now, if records wait for the clock and none came for a while.

        The clock goes on from where the records left it, by the time that has passed since: a jump of this machine's
        clock moves nothing.
        """
        clock, quiet = self.work.clock, time.monotonic() - self.moved
        if clock is None or not self.ended or quiet < QUIET:
            return None
        return Tick(self.ticks + 1, self.next, clock + int(quiet * 1_000_000))

    def tick(self, tick: Tick) -> list[Outgoing]:
        """Act on a tick that is committed."""
        out = self.work.tick(tick.now)
        self.ticks = tick.number
        self.ticked += 1
        self.dirty, self.moved = True, time.monotonic()
        return out

    def wants_snapshot(self) -> bool:
        """Whether the log since the newest snapshot has grown long."""
        if self.since < 0 or self.ticked >= TICKS:
            return True
        worth = 1 + self.size / LIGHT  # reading the log again costs less than writing a large state all the time
        waited = time.monotonic() - self.saved
        return self.unsaved >= EVERY * worth or (self.unsaved + self.ticked > 0 and waited > OFTEN * worth)

    def snapshot(self) -> list[tuple[bytes, bytes]]:
        """The changelog records of a snapshot of now."""
        taken = Snapshot(VERSION, self.next, self.ticks, self.work.snapshot())
        out = [self._sealed(*piece) for piece in pieces_of(self.view, name_of(self.view, taken), taken)]
        self.unsaved, self.ticked, self.size, self.saved = 0, 0, len(taken.data), time.monotonic()
        return out

    def position(self) -> tuple[bytes, bytes]:
        """The changelog record that says how far the published output stands."""
        at = Position(self.next, self.ticks, self.since)
        return self._sealed(key_of(self.view, "position"), msgspec.msgpack.encode(at))

    def stand(self) -> Stand:
        """What the note of a commit says of it."""
        return Stand(self.next, self.ticks, max(self.ticks, self.newest))

    def logged(self, tick: Tick) -> tuple[bytes, bytes]:
        """The changelog record of a tick. Keys come round again, so that ticks of old snapshots are written over."""
        self.newest = tick.number
        return self._sealed(key_of(self.view, "tick", tick.number % (4 * TICKS)), msgspec.msgpack.encode(tick))

    def _sealed(self, key: bytes, value: bytes) -> tuple[bytes, bytes]:
        return key, self.seal.close(value, key, self.partition)


class Restorer:
    """Brings the shards of a partition back to where their published output stands."""

    def __init__(
        self,
        policy: Policy,
        keys: KeyRing,
        properties: Mapping[str, Any],
        topic: str,
        counters: Counters,
        say: Callable[[str], None],
        decode: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._policy, self._keys, self._properties, self._topic = policy, keys, properties, topic
        self._counters, self._say, self._decode = counters, say, decode
        self._changelog = Changelog(properties, internal(topic, "changelog"), keys)

    def look(self, notes: Mapping[int, str], names: list[str]) -> dict[int, dict[str, Found]]:
        """What the changelog says of these names, by partition: all partitions are read at once."""
        found = self._changelog.read(notes, names)
        for partition in sorted(self._changelog.early):
            self._say(f"partition {partition}: waited until the changelog showed the last commit")
        return found

    def restore(
        self,
        partition: int,
        views: Mapping[str, tuple[str, Disguise]],
        starts: Mapping[str, int],
        found: Mapping[str, Found],
    ) -> tuple[list[Shard], dict[str, list[Outgoing]]]:
        """The shards of a partition, and what ticks that were logged but not acted on release now."""
        shards: list[Shard] = []
        out: dict[str, list[Outgoing]] = {}
        for role, (view, disguise) in views.items():
            said = found[view]
            shard = self._back(role, view, partition, disguise, said, starts.get(role, 0))
            shards.append(shard)
            late = [said.ticks[n] for n in sorted(said.ticks) if n > shard.ticks]
            out[role] = [o for tick in late for o in shard.tick(tick)]
        return shards, out

    def warm(self, views: Mapping[str, Disguise]) -> None:
        """Let the views try a few records and forget them: what is compiled at first use is compiled before we join."""
        if not views:
            return
        with Reader(self._properties, self._topic, [0]) as reader:
            low, high = reader.ends(0)
            few = records_of(reader.read({0: low}, min(high, low + SAMPLE)), self._decode)
        for role, disguise in views.items():
            work = stateful.start(self._policy, role, 0, self._keys, disguise, None)
            work.push([r for r in few if r.value is not None])
            stateful.start(self._policy, role, 0, self._keys, disguise, work.snapshot())

    def _back(self, role: str, view: str, partition: int, disguise: Disguise, said: Found, start: int) -> Shard:
        def fresh(snapshot: bytes | None) -> Shard:
            work = stateful.start(self._policy, role, partition, self._keys, disguise, snapshot)
            return Shard(role, view, partition, work, Seal(self._keys))

        position, snapshot = said.position, said.snapshot
        if position is None:
            shard = fresh(None)
            shard.next = start
            return shard
        try:
            if snapshot is None or snapshot.version != VERSION:
                raise _LostError("its snapshot is of another version of this program, or is not whole")
            try:
                shard = fresh(snapshot.data)
            except InputError as error:
                raise _LostError(error.message) from None
            shard.next, shard.ticks, shard.since = snapshot.next, snapshot.ticks, position.since
            shard.size = len(snapshot.data)
            self._replay(shard, said, position)
        except _LostError as error:
            shard = self._anew(fresh(None), position, str(error))
        shard.next, shard.ticks, shard.dirty = position.next, position.ticks, False
        return shard

    def _replay(self, shard: Shard, said: Found, position: Position) -> None:
        """Read the log again from the snapshot to the position and publish nothing: that was done."""
        begin, before = shard.next, shard.ticks
        ticks = [t for n, t in sorted(said.ticks.items()) if shard.ticks < n <= position.ticks]
        if len(ticks) != position.ticks - shard.ticks:
            raise _LostError("ticks of its clock are missing")
        if begin < position.next:
            with Reader(self._properties, self._topic, [shard.partition]) as reader:
                low, _ = reader.ends(shard.partition)
                if low > begin:
                    raise _LostError(f"the source has forgotten {low - begin:,} records it needs (retention)")
                for records in self._batches(reader.read({shard.partition: begin}, position.next)):
                    self._silent(shard, records, ticks)
        for tick in ticks:
            shard.tick(tick)
        shard.unsaved, shard.ticked = position.next - begin, position.ticks - before

    def _silent(self, shard: Shard, records: list[Record], ticks: list[Tick]) -> None:
        while ticks and records and ticks[0].next <= records[-1].offset:
            tick = ticks.pop(0)
            shard.push([r for r in records if r.offset < tick.next])
            shard.tick(tick)
            records = [r for r in records if r.offset >= tick.next]
        shard.push(records)
        self._counters.replayed += len(records)

    def _anew(self, shard: Shard, position: Position, why: str) -> Shard:
        """Without its state a view begins anew, from the log if that is enough; else it withholds more."""
        place = f"{shard.view}, partition {shard.partition}"
        self._counters.fresh += 1
        if stateful.rebuilds(self._policy, shard.role):
            self._say(f"{place}: {why}; its window is rebuilt from the log")
            with Reader(self._properties, self._topic, [shard.partition]) as reader:
                low, _ = reader.ends(shard.partition)
                for records in self._batches(reader.read({shard.partition: low}, position.next)):
                    shard.push(records)
                    self._counters.replayed += len(records)
        else:
            self._say(f"{place}: {why}; what was held is withheld, and counting begins anew at {position.next:,}")
        return shard

    def _batches(self, messages: Iterable[Any]) -> Iterable[list[Record]]:
        rest = iter(messages)
        while batch := records_of(itertools.islice(rest, 10_000), self._decode):
            yield batch


def records_of(messages: Iterable[Any], decode: Callable[[bytes], bytes] | None = None) -> list[Record]:
    """Messages of the source as records; what a codec cannot read, or is too large to publish, no view can read."""
    out = []
    for message in messages:
        value = message.value()
        if value is not None and len(value) > LARGEST:
            value = b""
        if decode is not None and value:
            try:
                value = decode(value)
            except KafkaError:  # it is not the record's fault: try again later
                raise
            except InputError:
                value = b""
        out.append(Record(message.partition(), message.offset(), message.key(), value, message.timestamp()[1]))
    return out


class _LostError(Exception):
    """State cannot be brought back; the text says why."""
