"""What every role gets of the records that come in, held until the next commit mixes and publishes it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
import numpy as np

from shoal.connect.kafka import KafkaError
from shoal.core.errors import InputError
from shoal.core.keys import KeyRing
from shoal.core.lines import Lines
from shoal.policy.document import Policy
from shoal.runtime.kafka.formats.codec import Codec
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.serve.dressed import Dressed
from shoal.runtime.kafka.serve.output import COARSE, ROOM, Disguise, coarse_times
from shoal.runtime.kafka.serve.shards import Shard
from shoal.runtime.kafka.serve.source_records import Record, Records
from shoal.runtime.kafka.serve.stateful import remembers
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView


class Masking:
    """The views of a policy at work: those that remember nothing here, the others in the shards they are given."""

    def __init__(self, policy: Policy, keys: KeyRing, served: Mapping[str, Served], codec: Codec | None) -> None:
        self._policy, self._keys, self._served, self._codec = policy, keys, served, codec
        resolved = {role: RoleView.of(policy, role) for role in served}
        self.stateful = [role for role, view in resolved.items() if remembers(policy.views[role], view)]
        plain = [view for role, view in resolved.items() if role not in self.stateful]
        self._plain = RecordGate(plain, keys) if plain else None
        self._latest = max((at for s in served.values() for at in s.starts.values()), default=0)
        self.disguises: dict[str, Disguise] = {}
        self.forget()

    def open(self, source: str, partitions: Mapping[str, int]) -> None:
        """Ready to publish: how many partitions each topic has is known now."""
        self.disguises = {
            role: Disguise(self._policy.views[role], source, partitions[served.topic], self._keys)
            for role, served in self._served.items()
        }

    def take(self, batch: Sequence[Record], shards: Mapping[int, Sequence[Shard]]) -> None:
        """Mask a batch and hold it for the commit, where the records of all batches are mixed."""
        records = Records.of(batch)
        dead = self._take_plain(records)
        for partition, mine in records.by_partition() if self.stateful else ():
            for shard in shards[partition]:
                out, bad = shard.push(mine)
                self.pending[shard.role] += out
                for record in bad:
                    dead.setdefault((record.partition, record.offset), (record, []))[1].append(shard.role)
        self.dead += dead.values()

    @property
    def tells_times(self) -> bool:
        """Whether a view shows when a record was sent: those that remember show the time of their commit."""
        return self._plain is not None

    @property
    def keeps_keys(self) -> bool:
        """Whether a view shows anything of a record's key."""
        return any(disguise.keeps_keys for disguise in self.disguises.values())

    @property
    def fullest(self) -> int:
        """The most records held for one view."""
        return max(map(len, self.pending.values()), default=0)

    def mixed(self, role: str, commit: bytes) -> Dressed:
        """What a view's topic gets in this commit, in an order of its own, as its topic carries it."""
        codec = self._codec
        now = int(time.time() * 1000) // COARSE * COARSE
        mixed = self.disguises[role].shuffle(self.pending[role], commit).not_later(now)
        if codec is not None and role in self.stateful:  # the others were encoded when they came
            mixed = mixed.encoded(partial(codec.encode, role))
        return mixed

    def letters(self, source: str) -> list[tuple[Record, bytes]]:
        """Where records stand that views (by topic: a version of them) could not read: look them up in the source."""
        out = []
        for record, roles in self.dead:
            place = {"topic": source, "partition": record.partition, "offset": record.offset}
            views = [self._served[role].topic for role in roles]
            out.append((record, msgspec.json.encode({**place, "error": "unreadable", "views": views})))
        return out

    def forget(self) -> None:
        """It is published: begin the next commit."""
        self.pending: dict[str, Dressed] = {role: Dressed() for role in self._served}
        self.dead: list[tuple[Record, list[str]]] = []  # with the views that cannot read it

    def _take_plain(self, records: Records) -> dict[tuple[int, int], tuple[Record, list[str]]]:
        """The views that remember nothing; answers the records that cannot be read, and by which views."""
        if self._plain is None:
            return {}
        full = records.full()
        # without a key nothing is left of one
        tombstones = [] if full is records or not self.keeps_keys else [r for r in records if r.value is None]
        done = self._plain.many(full.values)
        refused = sorted({at for at, _ in done.refused})
        kept = full.take(np.delete(np.arange(len(full)), refused)) if refused else full
        dead = {(r.partition, r.offset): (r, list(self._plain.roles)) for r in (full[at] for at in refused)}
        early = self._latest > 0 and bool((records.offsets < self._latest).any())
        timed, times = kept, coarse_times(kept)
        for role, made in zip(self._plain.roles, done.views, strict=True):
            disguise, mine, gone = self.disguises[role], kept, tombstones
            if early:
                begun = self._served[role].begun
                places = zip(kept.partitions.tolist(), kept.offsets.tolist(), strict=True)
                since = np.flatnonzero([begun(*place) for place in places])
                mine, made = kept.take(since), Lines.of(made).take(since)
                gone = [r for r in tombstones if begun(r.partition, r.offset)]
            mine, made, odd = self._encoded(role, mine, made)
            for record in odd:
                dead.setdefault((record.partition, record.offset), (record, []))[1].append(role)
            if mine is not timed:  # most roles get the same records
                timed, times = mine, coarse_times(mine)
            self.pending[role] += disguise.dress_many(mine, made, times)
            if gone:
                self.pending[role] += [d for r in gone if (d := disguise.dress(r, None)) is not None]
        return dead

    def _encoded(
        self, role: str, records: Records, values: Sequence[bytes]
    ) -> tuple[Records, Sequence[bytes], list[Record]]:
        """Records and values as the view's topic carries them, and the records whose values its format refuses."""
        if self._codec is None and Lines.of(values).longest <= ROOM:
            return records, values, []
        kept, out, odd = [], [], []
        for at, value in enumerate(values):
            try:
                made = value if self._codec is None else self._codec.encode(role, value)
            except KafkaError:  # the registry's fault, not the record's
                raise
            except InputError:
                odd.append(records[at])
                continue
            if len(made) > ROOM:
                odd.append(records[at])
            else:
                out.append(made)
                kept.append(at)
        return records.take(np.array(kept, np.int64)), out, odd
