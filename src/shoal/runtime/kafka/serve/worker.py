"""The worker: source records in, every role's view out, exactly once.

Views, dead letters, state and offsets commit in one transaction. A worker that is killed leaves an aborted transaction
behind and nothing else; one that is fenced or loses its partitions stops and is started again with clean state. More
workers in the group share the partitions: input partition i is shard i.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np

from shoal.connect.kafka import KafkaError, Source, committed, ends_of, internal, library
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.runtime.kafka.client.inbox import Inbox, Received
from shoal.runtime.kafka.formats.codec import Codec
from shoal.runtime.kafka.provision.served import Fill, Served
from shoal.runtime.kafka.regions.repartition import Repartition
from shoal.runtime.kafka.regions.wish import regions_of
from shoal.runtime.kafka.serve.applied import Applied
from shoal.runtime.kafka.serve.binding import SOURCE, Binding
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.masking import Masking
from shoal.runtime.kafka.serve.membership import (
    Membership,
    attach,
    checked_name,
    detach,
    group_of,
    member,
    refuse_twin,
    transactional_id,
)
from shoal.runtime.kafka.serve.output import keeps_keys
from shoal.runtime.kafka.serve.places import begin, unread, with_room
from shoal.runtime.kafka.serve.restore import Restorer
from shoal.runtime.kafka.serve.shards import Shard
from shoal.runtime.kafka.serve.source_records import Records, as_written, whole
from shoal.runtime.kafka.serve.transactions import LostError, Transactions, lost
from shoal.runtime.kafka.state.changelog import Changelog, note_of

ALONE = Membership()
SILENT = 10.0  # seconds without a record before we look whether the source is still there
COMMIT_RECORDS = 20_000  # records of a view held for one commit
ROUTED_RECORDS = 120_000  # and on their way to regions: those of a small block cost more


class Worker:
    """Runs the views of one policy over its source topic. One use: after an error start another.

    With ``fill`` it fills new views from the log (:mod:`.backfill`) instead, and ends.
    """

    def __init__(
        self,
        policy: Policy,
        keys: KeyRing,
        *,
        commit_every: float = 0.5,
        batch: int = 20_000,  # frames of fewer records cost more a record
        membership: Membership = ALONE,
        codec: Codec | None = None,
        counters: Counters | None = None,
        say: Callable[[str], None] = lambda text: None,
        fill: Fill | None = None,
        verify: float | None = None,
    ) -> None:
        self._kafka = library()
        source = Source(policy.source, policy.path)
        self._properties, self._source = source.properties, source.topic
        # the second stage reads the topic of regions as the first one reads the source
        self._of_regions = of_regions = membership.of_regions
        self._topic = internal(source.topic, "regions") if of_regions else source.topic
        self._changelog, self._dead = internal(self._topic, "changelog"), internal(self._source, "dead")
        self._group = fill.group if fill is not None else group_of(source.group, of_regions=of_regions)
        self._verify = verify
        self._commit_every, self._batch, self._how = commit_every, batch, membership
        checked_name(membership.name)
        self._policy, self._keys, self._say = policy, keys, say
        # what regions read are blocks, which they open themselves; what leaves has the views' codec
        self._decode, self._written_by = as_written if of_regions else codec.decode if codec else None, codec
        self._stream: Repartition | None = None  # the first stage, if a view asks for it
        self._served: Mapping[str, Served] | None = fill.served if fill is not None else None
        self._upto: Mapping[int, int] | None = fill.upto if fill is not None else None
        self._shards: dict[int, list[Shard]] = {}
        self._positions: dict[int, int] = {}  # what this commit reaches
        self._reached: dict[int, int] = {}  # what was reached before
        self._noted: dict[int, str] = {}  # what was noted beside it
        self._done: set[int] = set()  # partitions read as far as asked
        self._lost = self._leaving = False
        self._consumer: Any = None
        self._applied: Applied | None = None
        self._binding: Binding | None = None  # none while a view is filled from the log, in a group of its own
        self._assignment: set[int] = set()
        self.counters = counters or Counters()
        self.counters.know(list(fill.served if fill is not None else policy.views))

    def run(self, stop: Callable[[], bool] = lambda: False) -> Counters:
        """Serve until ``stop`` says so; what was read is committed before it returns."""
        name = transactional_id(self._source, self._how.name, of_regions=self._of_regions)
        self._out = Transactions(self._properties, self._topic, name)
        try:
            self._open()
            if not stop():  # it may have been asked to leave before it came
                self._serve(stop)
        finally:
            self._let_go()
        return self.counters

    def _open(self) -> None:
        """Everything but the group: which views there are, and what they are made with."""
        served = self._served
        if served is None:
            self._applied = Applied(self._policy, self._keys, self._properties, self._source, self._topic)
            self._applied.tell(self.counters)
            served, self._binding = self._applied.served, self._applied.binding
        self._views = {r: s for r, s in served.items() if bool(regions_of(self._policy.views[r])) == self._of_regions}
        others = {} if self._of_regions else {r: s for r, s in served.items() if r not in self._views}
        # what nobody sees of a record is not read: those that are repartitioned want it of the first stage
        self._keeps_keys = any(keeps_keys(self._policy.views[role]) for role in served)
        # where views begin is said in offsets of the source: the first stage leaves out what was before
        counted = self._of_regions and self._binding is not None
        self._starts = {r: {} if counted else s.starts for r, s in {**self._views, **others}.items()}
        if others:
            self._stream = Repartition(self._policy, self._keys, self._properties, others, self._out)
        self._masking = Masking(self._policy, self._keys, self._views, self._written_by)
        topics = [one.topic for one in self._views.values()]
        counts = self._out.partitions([*topics, self._changelog])
        self._room = counts[self._changelog]  # partitions of the source that were there when it was applied
        self._masking.open(self._source, counts)
        told = self.counters, self._say, self._decode, self._verify
        self._restorer = Restorer(self._policy, self._keys, self._properties, self._topic, *told)
        self._restorer.warm({role: self._masking.disguises[role] for role in self._masking.stateful})

    def _serve(self, stop: Callable[[], bool]) -> None:
        """As a member of the group, until ``stop`` says so or all that was asked for is read."""
        self._consumer = member(self._properties, self._group, self._how)
        self._inbox = Inbox(self._consumer, self._decode, keyed=self._keeps_keys, timed=self._masking.tells_times)
        try:
            self._consumer.subscribe(
                [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._gone
            )
            # records are no cycles: to look for some after every few hundred costs a tenth of all work
            gc.freeze()
            gc.disable()
            self._loop(lambda: stop() or (self._upto is not None and self._done >= set(self._upto)))
            self._commit(leaving=self._assignment)
        except (self._kafka.KafkaException, KafkaError) as error:
            self._lost = True
            refuse_twin(error, self._how)
            raise (error if isinstance(error, KafkaError) else lost(error.args[0], "the group")) from None
        except BaseException:
            self._lost = True  # what is half done must not be committed on leaving
            raise
        finally:
            gc.enable()
            gc.unfreeze()
            self._leaving = True
            self._inbox.close()
            self._consumer.close()

    def _let_go(self) -> None:
        """End every client now, whoever still holds this object, as the traceback of an error does: otherwise their
        threads go on asking brokers, also those that are gone."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self._consumer = self._applied = None
        self._out.close()

    def wait_until_shown(self) -> None:
        """Wait until whoever reads the changelog next sees what was committed last."""
        views = [self._views[role].name for role in self._masking.stateful]
        if views:
            Changelog(self._properties, self._changelog, self._keys).read(self._noted, views)

    def _loop(self, stop: Callable[[], bool]) -> None:
        last = heard = time.monotonic()
        took: deque[float] = deque([0.0], maxlen=8)  # from the last look at the source to the end of its commit
        while not stop():
            self.counters.beat = time.monotonic()
            # a commit begins so early that it ends in time: no record must wait longer than was said
            due = last + self._commit_every - min(max(took), self._commit_every / 2)
            wait = min(0.2, max(0.001, due - time.monotonic()))
            # while it has no partitions, all it waits for is to hear of some
            some = self._inbox.read(self._batch, wait if self._assignment else 0.0)
            read = time.monotonic()
            self._receive(some)
            more = self._inbox.hear(self._batch, 0.0 if self._assignment else wait)
            self._receive(more)
            if some or more:
                heard = read
            elif read - heard > SILENT:
                self._out.partitions([self._topic])  # a source that was deleted is silent, too
                if self._applied is not None:  # and so is one that was made again
                    self._applied.check()
                heard = read
            if self._full or time.monotonic() >= due:
                self._commit()
                took.append(time.monotonic() - read)
                last = read
                self._tick()
                if self.counters.commits % 20 == 0:
                    gc.collect()

    @property
    def _full(self) -> bool:
        routed = self._stream.router.held if self._stream is not None else 0
        return self._masking.fullest >= COMMIT_RECORDS or routed >= ROUTED_RECORDS

    def _receive(self, what: Received) -> None:
        if self._lost:
            raise LostError("the partitions were taken away", where="kafka")
        self._take(what.records)
        self._see(what.ends)

    def _see(self, ends: Mapping[int, int]) -> None:
        """After the records that came with it: these partitions have nothing more to read before these offsets."""
        self._done |= set(ends)
        if self._stream is not None:
            self._stream.router.end(ends)
        if self._upto is None:
            # marks of the producers' own transactions take offsets, too: they are not unread records
            passed = {p: max(self._reached.get(p, 0), self._positions.get(p, 0)) for p in ends}
            self._positions |= {p: end for p, end in ends.items() if end > passed[p] and p in self._assignment}
        for shard in (shard for partition in ends for shard in self._shards.get(partition, [])):
            shard.reach_end()

    def _take(self, records: Records) -> None:
        if not len(records):
            return
        if not records.follow(self._reached | self._positions):
            raise LostError("records came twice, or in another order", where="kafka")
        reached = records.reached()
        if not reached.keys() <= self._assignment:
            raise LostError("records came of a partition that is not ours", where="kafka")
        if self._upto is not None:
            upto = whole(self._upto.get(partition, 0) for partition in records.partitions.tolist())
            self._done |= {*records.partitions[records.offsets >= upto].tolist()}
            records = records.take(np.flatnonzero(records.offsets < upto))
        # a block has thousands of records: without a commit in between, those of a batch would be written far apart
        for part in (mine for _, mine in records.by_partition()) if self._of_regions else [records]:
            if self._full:
                self._commit()
            self._masking.take(part, self._shards)
            if self._stream is not None and len(part):
                self._stream.router.take(part)
            self._positions |= part.reached()
            self.counters.read += len(part)

    def _tick(self) -> None:
        """Move the clock of views that wait: the tick is committed first, then acted on."""
        due = [(shard, tick) for shard in self._all_shards() if (tick := shard.due()) is not None]
        if due:
            self._commit(ticks=[(shard.partition, *shard.logged(tick)) for shard, tick in due])
            for shard, tick in due:
                self._masking.pending[shard.role] += shard.tick(tick)

    def _commit(self, *, leaving: Collection[int] = (), ticks: list[tuple[int, bytes, bytes]] | None = None) -> None:
        """All that is held, mixed, with state and offsets, in one transaction: it happens whole or not at all.

        State of the partitions we are ``leaving`` is written whole: whoever gets them has nothing to read again.
        """
        shards = [
            s for s in self._all_shards() if s.dirty or ticks or (s.partition in leaving and s.unsaved + s.ticked)
        ]
        if self._stream is not None:  # who waits for a partition must hear that it has nothing, too
            said = self._stream.router.restless()
            self._positions = {p: max(at, self._reached.get(p, 0)) for p, at in said.items()} | self._positions
        if not self._positions and not shards and not ticks:
            return
        began = time.monotonic()
        self._reached |= self._positions
        for shard in shards:
            if shard.partition in self._reached:
                self._positions[shard.partition] = self._reached[shard.partition]
        self._lost = True  # until it has happened
        commit = b",".join(b"%d:%d" % at for at in sorted(self._positions.items()))
        notes = self._noted
        with self._out.transaction(self._consumer, self._positions, notes):
            for role, served in self._views.items():
                self._out.write_all(served.topic, self._masking.mixed(role, commit))
            for record, letter in self._masking.letters(self._source):
                self._out.write(self._dead, letter, None, record.partition, record.timestamp)
            self._keep(shards, leaving, ticks or [])
            if self._stream is not None:
                self._stream.write()
            for partition, at in self._positions.items():
                kept = [s for s in self._shards.get(partition, []) if s.since >= 0]
                stands = {s.view: s.stand() for s in kept}
                if self._binding is not None:
                    key, value = self._binding.record(partition, at)
                    self._out.write(self._changelog, value, key, partition)
                    stands[SOURCE] = self._binding.stand(at)
                notes[partition] = note_of(stands, self._out.name)
        self._lost = False
        self._count(time.monotonic() - began)
        self._forget()

    def _keep(self, shards: list[Shard], leaving: Collection[int], ticks: list[tuple[int, bytes, bytes]]) -> None:
        """State into the changelog: snapshots that are due, then ticks and positions."""
        due = [shard for shard in shards if shard.partition in leaving or shard.wants_snapshot()]
        taken = [(shard.partition, shard.snapshot()) for shard in due]
        for shard, (_, pieces), first in zip(due, taken, self._out.keep(self._changelog, taken), strict=True):
            shard.since = first
            self.counters.snapshots += 1
            self.counters.state_bytes[shard.role] = sum(len(value) for _, value in pieces)
        for partition, key, value in ticks:
            self._out.write(self._changelog, value, key, partition)
        for shard in shards:
            key, value = shard.position()
            self._out.write(self._changelog, value, key, shard.partition)

    def _count(self, seconds: float) -> None:
        for role, pending in self._masking.pending.items():
            self.counters.written[role] += len(pending)
        self._stand()
        self.counters.dead += len(self._masking.dead)
        self.counters.committed(seconds)
        now = {p: unread(self._consumer, self._topic, p, at) for p, at in self._reached.items()}
        self.counters.lag |= {p: lag for p, lag in now.items() if lag is not None}

    def _stand(self) -> None:
        """How views that remember stand, over the partitions that are here."""
        for role in self._masking.stateful:
            self.counters.stand(role, [s.work for s in self._all_shards() if s.role == role])

    def _forget(self) -> None:
        self._masking.forget()
        if self._stream is not None:
            self._stream.committed()
        self._positions = {}
        for shard in self._all_shards():
            shard.dirty = False

    def _all_shards(self) -> list[Shard]:
        return [shard for shards in self._shards.values() for shard in shards]

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        if self._leaving:  # the group answered when it was asked to go: a closed client can be asked nothing
            return
        began, self.counters.restoring = time.monotonic(), True
        self.counters.keep_lag({*self._assignment, *(place.partition for place in partitions)})
        partitions = with_room(consumer, self._topic, partitions, self._room, self.counters, self._say)
        # waits while a former owner's transaction is still open, so that no record is read twice
        end_others = partial(self._out.end_others, self._group, partitions, self._say)
        places = committed(consumer, partitions, "asking where the group stands", unblock=end_others)
        stored = {place.partition: place for place in places}
        notes = {p: (place.metadata or "") if place.offset >= 0 else "" for p, place in stored.items()}
        names = {role: (self._views[role].name, self._masking.disguises[role]) for role in self._masking.stateful}
        wanted = [view for view, _ in names.values()] + ([SOURCE] if self._binding is not None else [])
        found = self._restorer.look(notes, wanted) if wanted and partitions else {}
        ends = ends_of(consumer, self._topic, [place.partition for place in partitions])
        for place in partitions:
            said, group = found.get(place.partition, {}), stored[place.partition].offset
            at = group if group >= 0 else None
            if self._binding is not None:
                at = self._binding.settle(place.partition, at, said[SOURCE].position, self._say)
            first = min(start.get(place.partition, 0) for start in self._starts.values())
            place.offset = begin(place.partition, ends[place.partition], at, first, self.counters, self._say)
            if at is not None:
                self._reached[place.partition] = place.offset
        shards, late = self._restorer.restore(names, self._starts, found) if names else ({}, {})
        self._shards |= {place.partition: shards.get(place.partition, []) for place in partitions}
        for shard in (shard for mine in shards.values() for shard in mine):
            self.counters.begin(shard.work)
        self._stand()
        for role, out in late.items():
            self._masking.pending[role] += out
        self._assignment |= {place.partition for place in partitions}
        if self._stream is not None:
            self._stream.router.begin({place.partition: place.offset for place in partitions})
        self._inbox.attach(self._topic, [place.partition for place in partitions])
        attach(consumer, self._how, partitions)
        self.counters.restore_seconds = time.monotonic() - began
        self.counters.restoring = False

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        partitions = [place for place in partitions if place.partition < self._room]
        if not self._lost:
            self._commit(leaving={place.partition for place in partitions})
        for place in partitions:
            self._shards.pop(place.partition, None)
            self._reached.pop(place.partition, None)
            self._assignment.discard(place.partition)
            self.counters.lag.pop(place.partition, None)
        if self._stream is not None:
            self._stream.router.leave([place.partition for place in partitions])
        detach(consumer, self._how, partitions)

    def _gone(self, consumer: Any, partitions: list[Any]) -> None:
        self._lost = True
