"""The repartition step at work in a worker: blocks into the topic of regions, in the transaction of everything else.

Cuts of quasi space stand on a topic of their own, sealed, the newest per view: every worker goes by the same ones, and
whoever sees the load drift writes better ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.connect.kafka import KafkaError, internal, kind_of, library
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.regions.cells import Cuts
from shoal.runtime.kafka.regions.router import Router
from shoal.runtime.kafka.regions.wish import regions_of, topics_for
from shoal.runtime.kafka.serve.transactions import Transactions
from shoal.runtime.kafka.state.changelog import Reader, Seal

LOOK = 1.0  # seconds between two looks at the cuts of others


class Repartition:
    """The first stage of views that are repartitioned: what a worker must tell it, and what it writes."""

    def __init__(
        self,
        policy: Policy,
        keys: KeyRing,
        properties: Mapping[str, Any],
        served: Mapping[str, Served],
        out: Transactions,
    ) -> None:
        source = str(policy.source["topic"])
        self._out, self._served = out, served
        self._regions, _, self._cuts = topics_for(source)
        states = internal(source, "changelog")  # has a partition for each of the source that is read
        counts = out.partitions([states, self._regions, self._cuts])
        most = max(regions_of(policy.views[role]) for role in served)
        if counts[self._regions] < most:
            raise KafkaError(
                f"expected {most} partitions, found {counts[self._regions]}",
                where=self._regions,
                hint="run `shoal serve apply`",
            )
        self.router = Router(policy, keys, served, counts[states])
        self._seal, self._looked = Seal(keys), time.monotonic()
        self._wishes: dict[str, Cuts] = {}
        self._roles = {one.name: role for role, one in served.items()}
        with Reader(properties, self._cuts) as reader:
            ends = reader.ends([0])
            for message in reader.read({0: ends[0][0]}):
                self._hear(message)
        self._reader: Any = library().Consumer(
            {**properties, "group.id": f"shoal-{source}", "enable.auto.commit": False, "log_level": 0}
        )
        self._reader.assign([library().TopicPartition(self._cuts, 0, ends[0][1])])

    def write(self) -> None:
        """Everything of this commit, into the open transaction."""
        if time.monotonic() - self._looked > LOOK:
            self._looked = time.monotonic()
            for message in self._reader.consume(100, 0.0):
                if kind_of(message, "reading cuts") == "record":
                    self._hear(message)
        for region, block in self.router.blocks():
            self._out.write(self._regions, block, None, region)
        self._wishes = self.router.wishes()
        for role, cuts in self._wishes.items():
            key = self._served[role].name.encode()
            self._out.write(self._cuts, self._seal.close(msgspec.msgpack.encode(cuts), key, 0), key, 0)

    def committed(self) -> None:
        """It happened."""
        self.router.committed()
        for role, cuts in self._wishes.items():
            self.router.partitioners[role].take(cuts)
        self._wishes = {}

    def close(self) -> None:
        """Stop listening."""
        self._reader.close()

    def _hear(self, message: Any) -> None:
        key = message.key() or b""
        role = self._roles.get(key.decode(errors="replace"))
        if role is not None and message.value() is not None:
            cuts = msgspec.msgpack.decode(self._seal.open(message.value(), key, 0), type=Cuts)
            self.router.partitioners[role].take(cuts)
