"""The first stage: records of the source into blocks by region, held until the commit that publishes everything else.

Whether a record can be masked is asked by who publishes it; here only a glance tells where it goes.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from shoal.core.keys import KeyRing
from shoal.core.lines import Numbers
from shoal.core.time import AHEAD, EventTime
from shoal.policy.document import Policy
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.regions.blocks import FULL, UNTIMED, BlockSeal, Entries, Mark, Packed
from shoal.runtime.kafka.regions.cells import Cuts, RegionNumbers
from shoal.runtime.kafka.regions.glance import Glance, Pace, near
from shoal.runtime.kafka.regions.partitioner import Partitioner, partitioner_of
from shoal.runtime.kafka.regions.wish import regions_of
from shoal.runtime.kafka.serve.source_records import LARGEST, Record, Records, whole

ROOM = 64  # bytes that a record takes in a block beside its value and its key


class Router:
    """Parts the records of a batch by region, for every view that asks for it; ``of``: partitions of the source."""

    def __init__(self, policy: Policy, keys: KeyRing, served: Mapping[str, Served], of: int) -> None:
        self._served, self._of = dict(served), of
        self.partitioners: dict[str, Partitioner] = {role: partitioner_of(policy, role, keys) for role in served}
        self._regions = {role: regions_of(policy.views[role]) for role in served}
        names = dict.fromkeys(name for partitioner in self.partitioners.values() for name in partitioner.columns)
        self._glance = Glance(policy.schema, list(names))
        ahead = EventTime.of(policy.schema).ahead
        self._ahead = AHEAD if ahead is None else ahead
        self._seal = BlockSeal(keys)
        self._paces: dict[int, Pace] = {}
        self._next: dict[int, int] = {}  # of every partition we read
        self._begun: dict[int, int] = {}  # and when we began to
        self._ended: set[int] = set()  # read to their end
        self._moved: set[int] = set()  # those that brought records since the last commit
        self._told: dict[int, Mark] = {}  # what was said of each
        self.forget()

    def forget(self) -> None:
        """What was held is committed."""
        self._held: dict[str, list[list[Entries]]] = {r: [[] for _ in range(n)] for r, n in self._regions.items()}
        self._moved.clear()
        self._new: list[Mark] = []
        self.held = 0

    def begin(self, starts: Mapping[int, int]) -> None:
        """These partitions are read from here on."""
        for partition, at in starts.items():
            self.leave([partition])
            self._next[partition] = at
            self._begun[partition] = time.time_ns()
            self._paces[partition] = Pace(self._ahead)

    def leave(self, partitions: Collection[int]) -> None:
        """These partitions are another's now."""
        for partition in partitions:
            self._next.pop(partition, None)
            self._paces.pop(partition, None)
            self._told.pop(partition, None)
            self._ended.discard(partition)
            self._moved.discard(partition)

    def take(self, batch: Sequence[Record]) -> None:
        """Hold a batch, parted."""
        records = Records.of(batch)
        full = records.full().within(LARGEST)  # a block of one that is larger could not be written
        frame, times = self._glance.read(full.values)
        entries = Entries(full, self._paced(full, times))
        for role, partitioner in self.partitioners.items():
            served, held = self._served[role], self._held[role]
            regions = partitioner.of(frame, times)
            if served.starts:
                places = zip(full.partitions.tolist(), full.offsets.tolist(), strict=True)
                begun = np.fromiter((served.begun(*place) for place in places), np.bool_, len(full))
                regions = np.where(begun, regions, -1)
            for region, mine in _by_region(regions):
                held[region].append(entries if len(mine) == len(entries) else entries.take(mine))
        reached = records.reached()
        self._next |= reached
        self._moved |= reached.keys()
        self._ended -= self._moved
        self.held += len(records)

    def end(self, partitions: Collection[int]) -> None:
        """These have nothing more to read for now."""
        self._ended |= {p for p in partitions if p in self._next}

    def restless(self) -> dict[int, int]:
        """Partitions about which something new is to be said, and where they stand, records of theirs or not."""
        if not self._glance.timed:
            return {}
        said = {p: self._told.get(p) for p in self._next}
        return {p: self._next[p] for p, told in said.items() if told is None or self._mark(p).ended != told.ended}

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Regions and blocks of this commit. A region without records gets the marks: others' times wait for them."""
        self._new = [mark for p in sorted(self._next) if (mark := self._mark(p)) != self._told.get(p)]
        for role, regions in self._held.items():
            name = self._served[role].name
            for region, held in enumerate(regions):
                *parts, last = _parts(Entries.joined(held))
                for part in parts:
                    yield region, self._sealed(name, region, [], part)
                if len(last) or (self._new and self._glance.timed):
                    yield region, self._sealed(name, region, self._new, last)

    def _sealed(self, name: str, region: int, marks: list[Mark], entries: Entries) -> bytes:
        return self._seal.sealed(Packed.of_entries(name, region, self._of, marks, entries))

    def committed(self) -> None:
        """It happened: what was said is known, and the next commit begins."""
        self._told |= {mark.partition: mark for mark in self._new}
        self.forget()

    def wishes(self) -> dict[str, Cuts]:
        """Cuts that would share the load better, by view."""
        return {
            role: cuts for role, partitioner in self.partitioners.items() if (cuts := partitioner.wish()) is not None
        }

    def _mark(self, partition: int) -> Mark:
        # one that brought records since the last commit may bring more at once: wait for it once more
        ended = partition in self._ended and partition not in self._moved
        begun = self._begun.get(partition, 0)
        return Mark(partition, self._next[partition], self._paces[partition].now, ended, begun)

    def _paced(self, records: Records, times: Numbers) -> Numbers:
        if not self._glance.timed:
            return np.full(len(records), UNTIMED)
        partitions = records.partitions
        out, sure = np.empty(len(records), np.int64), near(times, self._ahead)
        for partition in np.unique(partitions).tolist():
            mine = partitions == partition
            out[mine] = self._paces.setdefault(partition, Pace(self._ahead)).of(times[mine], sure[mine])
        return out


def _by_region(regions: RegionNumbers) -> Iterator[tuple[int, Numbers]]:
    """Which records belong to each region, in their order; below 0 stands what belongs to none."""
    if not len(regions):  # a batch may hold ticks alone
        return
    order = np.argsort(regions.astype(np.int16), kind="stable")  # of short numbers it is the fastest
    found, first = np.unique(regions[order], return_index=True)
    for region, mine in zip(found.tolist(), np.split(order, first[1:]), strict=True):
        if region >= 0:
            yield region, mine


def _parts(entries: Entries) -> Iterator[Entries]:
    """Records that fit into one block each, at least one of them, if an empty one."""
    sizes = entries.values.lengths + ROOM
    if entries.keys is not None:
        sizes = sizes + whole(len(key or b"") for key in entries.keys)
    begin, reached = 0, np.cumsum(sizes)
    while begin < len(entries) and int(reached[-1] - (reached[begin - 1] if begin else 0)) > FULL:
        upto = FULL + (int(reached[begin - 1]) if begin else 0)
        end = max(begin + 1, int(np.searchsorted(reached, upto, "right")))
        if end >= len(entries):
            break
        yield entries[begin:end]
        begin = end
    yield entries[begin:] if begin else entries
