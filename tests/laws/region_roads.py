"""A stream through the repartition step without a broker: partitions read in turns, blocks, regions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.regions.blocks import BlockSeal
from shoal.runtime.kafka.regions.router import Router
from shoal.runtime.kafka.regions.wish import regions_of, unrouted
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.output import Disguise, Record

KEYS = KeyRing({"default": {1: bytes(range(32))}})
SEAL = BlockSeal(KEYS)
NAME = "visits.view@1"


def parted(values: Sequence[bytes], partitions: int, key: Callable[[int], int]) -> list[list[Record]]:
    """The records of a source with so many partitions; ``key`` says which one a record is sent to."""
    out: list[list[Record]] = [[] for _ in range(partitions)]
    for at, value in enumerate(values):
        part = out[key(at) % partitions]
        part.append(Record(key(at) % partitions, len(part), None, value, at))
    return out


def in_turns(parts: list[list[Record]], most: int, seed: int) -> Iterator[list[Record]]:
    """Batches as a consumer gets them: stretches of single partitions, none in the order of time."""
    chance, at = random.Random(seed), [0] * len(parts)
    while any(at[p] < len(part) for p, part in enumerate(parts)):
        batch: list[Record] = []
        for p in chance.sample(range(len(parts)), len(parts)):
            step = chance.randrange(most)
            batch += parts[p][at[p] : at[p] + step]
            at[p] = min(len(parts[p]), at[p] + step)
        yield batch


def blocks_of(
    policy: Policy, role: str, parts: list[list[Record]], batches: Iterator[list[Record]], again: int | None = None
) -> list[list[Record]]:
    """The partitions of the topic of regions, opened, after one commit per batch.

    Before batch number ``again`` all partitions were read to their end as it was then, and a new worker takes over.
    """
    log: list[list[Record]] = [[] for _ in range(regions_of(policy.views[role]))]
    left = {p: len(part) for p, part in enumerate(parts)}

    def begun() -> Router:
        router = Router(policy, KEYS, {role: Served("visits.view", NAME, "")}, len(parts))
        router.begin({p: len(parts[p]) - rest for p, rest in left.items()})
        return router

    def commit() -> None:
        for region, value in router.blocks():
            log[region].append(Record(region, len(log[region]), None, value, 0))
        router.committed()
        for view, cuts in router.wishes().items():
            router.partitioners[view].take(cuts)

    router = begun()
    for number, batch in enumerate(batches):
        if number == again:
            router.end(left)
            commit()
            router = begun()
        router.take(batch)
        for record in batch:
            left[record.partition] = len(parts[record.partition]) - record.offset - 1
        router.end([p for p, rest in left.items() if not rest])
        commit()
    router.end(left)
    commit()
    return log


def start(policy: Policy, role: str, partition: int, snapshot: bytes | None = None) -> stateful.Stateful:
    """A view at work on a partition or a region."""
    return stateful.start(policy, role, partition, KEYS, Disguise(policy.views[role], "visits", 4, KEYS), snapshot,
                          view=NAME)  # fmt: skip


def served(policy: Policy, role: str, parts: list[list[Record]]) -> tuple[list[bytes], int, int]:
    """What a view publishes of these partitions, how many records it withholds, and how many it still holds."""
    out: list[bytes] = []
    withheld = held = 0
    for partition, records in enumerate(parts):
        view = start(policy, role, partition)
        made, _ = view.push(records)
        out += [o.value for o in made if o.value is not None]
        withheld, held = withheld + view.withheld, held + view.held
    return out, withheld, held


def plain(policy: Policy, role: str, parts: list[list[Record]]) -> tuple[list[bytes], int, int]:
    """The same without regions: each partition counts for itself."""
    return served(unrouted(policy), role, parts)


def numbers(values: Sequence[bytes]) -> list[int]:
    return [msgspec.json.decode(value)["number"] for value in values]
