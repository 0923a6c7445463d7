"""Bringing shards back to where their published output stands: from the changelog, then from the input log.

All partitions that come are restored together: one reader follows all their changelogs, one the input they must read
again. Time goes into waiting for the broker; one after the other, every partition would wait by itself.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from shoal.connect.kafka import internal
from shoal.core.errors import InputError
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.runtime.kafka.client.inbox import records_of
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.dressed import Dressed
from shoal.runtime.kafka.serve.journal import Trouble
from shoal.runtime.kafka.serve.output import Disguise
from shoal.runtime.kafka.serve.shards import Shard
from shoal.runtime.kafka.serve.source_records import Records
from shoal.runtime.kafka.state.changelog import VERSION, Changelog, Found, Position, Reader, Seal, Tick

SAMPLE = 500  # records to warm up with
BATCH = 10_000  # records read again at once


@dataclass
class _Return:
    """A shard on its way back: the records from ``shard.next`` to ``position``, with the ticks between them."""

    shard: Shard
    position: Position
    begin: int = 0  # where its snapshot stands
    before: int = 0  # how many ticks that has seen
    ticks: list[Tick] = field(default_factory=list)

    def push(self, records: Records) -> int:
        """Take records of its partition in silence, each tick in its place; answers how many were taken."""
        at = records.offsets
        mine = records.take(np.flatnonzero((at >= self.shard.next) & (at < self.position.next)))
        count = len(mine)
        while self.ticks and len(mine) and self.ticks[0].next <= mine.offsets[-1]:
            tick = self.ticks.pop(0)
            before = int((mine.offsets < tick.next).sum())  # the offsets of a partition rise
            self.shard.push(mine[:before])
            self.shard.tick(tick)
            mine = mine[before:]
        self.shard.push(mine)
        return count

    def end(self) -> None:
        """All input was read: it stands where its published output stands."""
        for tick in self.ticks:
            self.shard.tick(tick)
        self.shard.unsaved, self.shard.ticked = self.position.next - self.begin, self.position.ticks - self.before
        self.shard.next, self.shard.ticks, self.shard.dirty = self.position.next, self.position.ticks, False


class Restorer:
    """Brings the shards of partitions back to where their published output stands."""

    def __init__(
        self,
        policy: Policy,
        keys: KeyRing,
        properties: Mapping[str, Any],
        topic: str,
        counters: Counters,
        say: Callable[[str], None],
        decode: Callable[[bytes], bytes] | None = None,
        verify: float | None = None,
    ) -> None:
        self._verify = verify
        self._policy, self._keys, self._properties, self._topic = policy, keys, properties, topic
        self._counters, self._say, self._decode = counters, say, decode
        self._wanted: set[int] = set()  # the partitions that are restored
        self._lows: dict[int, int] = {}  # the first record the source has of each
        self._changelog = Changelog(properties, internal(topic, "changelog"), keys)

    def look(self, notes: Mapping[int, str], names: list[str]) -> dict[int, dict[str, Found]]:
        """What the changelog says of these names, by partition: all partitions are read at once."""
        found = self._changelog.read(notes, names)
        for partition in sorted(self._changelog.early):
            self._say(f"partition {partition}: waited until the changelog showed the last commit")
        return found

    def restore(
        self,
        views: Mapping[str, tuple[str, Disguise]],
        starts: Mapping[str, Mapping[int, int]],
        found: Mapping[int, Mapping[str, Found]],
    ) -> tuple[dict[int, list[Shard]], dict[str, Dressed]]:
        """The shards of these partitions, and what ticks that were logged but not acted on release now."""
        self._wanted, self._lows = set(found), {}
        shards: dict[int, list[Shard]] = {partition: [] for partition in found}
        returns: list[_Return] = []
        for partition, said in found.items():
            for role, (view, disguise) in views.items():
                fresh = partial(self._fresh, role, view, partition, disguise)
                position = said[view].position
                if position is None:
                    shards[partition].append(fresh(None))
                    shards[partition][-1].next = starts.get(role, {}).get(partition, 0)
                else:
                    returns.append(self._opened(fresh, said[view], position))
                    shards[partition].append(returns[-1].shard)
        self._read_again(returns)
        out = {role: Dressed() for role in views}
        for shard in itertools.chain.from_iterable(shards.values()):
            ticks = found[shard.partition][shard.view].ticks
            for number in sorted(n for n in ticks if n > shard.ticks):
                out[shard.role] += shard.tick(ticks[number])
        return shards, out

    def warm(self, views: Mapping[str, Disguise]) -> None:
        """Let the views try a few records and forget them: what is compiled at first use is compiled before we join."""
        if not views:
            return
        with Reader(self._properties, self._topic) as reader:
            low, high = reader.ends([0])[0]
            few = records_of(reader.read({0: low}, {0: min(high, low + SAMPLE)}), self._decode)
        for role, disguise in views.items():
            work = stateful.start(self._policy, role, 0, self._keys, disguise, None)
            work.push(few.full())
            stateful.start(self._policy, role, 0, self._keys, disguise, work.snapshot())

    def _fresh(self, role: str, view: str, partition: int, disguise: Disguise, snapshot: bytes | None) -> Shard:
        work = stateful.start(self._policy, role, partition, self._keys, disguise, snapshot, self._verify, view)
        return Shard(role, view, partition, work, Seal(self._keys))

    def _opened(self, fresh: Callable[[bytes | None], Shard], said: Found, position: Position) -> _Return:
        """A shard as its snapshot has it; or empty, if there is none that can be used."""
        snapshot = said.snapshot
        if snapshot is None or snapshot.version != VERSION:
            why = "its snapshot is of another version of this program, or is not whole"
            return self._anew(fresh(None), position, why)
        try:
            shard = fresh(snapshot.data)
        except InputError as error:
            return self._anew(fresh(None), position, error.message)
        shard.next, shard.ticks, shard.since = snapshot.next, snapshot.ticks, position.since
        shard.size = len(snapshot.data)
        ticks = [t for n, t in sorted(said.ticks.items()) if shard.ticks < n <= position.ticks]
        if len(ticks) != position.ticks - shard.ticks:
            return self._anew(fresh(None), position, "ticks of its clock are missing")
        if shard.next < position.next and (low := self._low(shard.partition)) > shard.next:
            why = f"the source has forgotten {low - shard.next:,} records it needs (retention)"
            return self._anew(fresh(None), position, why)
        return _Return(shard, position, snapshot.next, snapshot.ticks, ticks)

    def _anew(self, shard: Shard, position: Position, why: str) -> _Return:
        """Without its state a view begins anew, from the log if that is enough; else it withholds more."""
        place = f"{shard.view}, partition {shard.partition}"
        self._counters.fresh += 1
        if stateful.rebuilds(self._policy, shard.role):
            self._say(Trouble(f"{place}: {why}; its window is rebuilt from the log"))
            return _Return(shard, position)
        shard.next = position.next
        anew = f"what was held is withheld, and counting begins anew at {position.next:,}"
        self._say(Trouble(f"{place}: {why}; {anew}"))
        return _Return(shard, position, position.next, position.ticks)

    def _low(self, partition: int) -> int:
        """The first record the source still has of a partition; of all that are restored, it is asked once."""
        if partition not in self._lows:
            with Reader(self._properties, self._topic) as reader:
                ends = reader.ends({partition, *self._wanted})
                self._lows = {p: low for p, (low, _) in ends.items()}
        return self._lows[partition]

    def _read_again(self, returns: list[_Return]) -> None:
        """Read the log from the snapshots to the positions and publish nothing: that was done."""
        behind: dict[int, list[_Return]] = defaultdict(list)
        for back in returns:
            if back.shard.next < back.position.next:
                behind[back.shard.partition].append(back)
        if behind:
            starts = {p: max(self._low(p), min(b.shard.next for b in backs)) for p, backs in behind.items()}
            ends = {p: max(b.position.next for b in backs) for p, backs in behind.items()}
            with Reader(self._properties, self._topic) as reader:
                for records in self._batches(reader.read(starts, ends)):
                    for partition, part in records.by_partition():
                        self._counters.replayed += sum(back.push(part) for back in behind[partition])
        for back in returns:
            back.end()

    def _batches(self, messages: Iterable[Any]) -> Iterable[Records]:
        rest = iter(messages)
        while batch := records_of(itertools.islice(rest, BATCH), self._decode):
            yield batch
