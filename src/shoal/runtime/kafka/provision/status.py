"""How a service stands: what was applied, what has drifted or is refused, who works, and how much is unread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.connect.kafka import library
from shoal.runtime.kafka.provision.audit import Applying
from shoal.runtime.kafka.provision.backfill import Log
from shoal.runtime.kafka.provision.control import members_of, order_now
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.provision.served import first_name, pattern_of, served_of
from shoal.runtime.kafka.provision.turn import turn_group
from shoal.runtime.kafka.regions.wish import routed, topics_for
from shoal.runtime.kafka.serve.membership import group_of
from shoal.runtime.provision.change import Change

JOINING = 6.0  # seconds that workers may take to come back before we say that nobody is there


class Member(msgspec.Struct, frozen=True):
    """One worker of the group, and the partitions it reads."""

    client: str
    host: str
    partitions: tuple[int, ...] = ()
    name: str | None = None  # the one it keeps over new starts, if it has one

    def __str__(self) -> str:
        return f"{self.name or self.client} on {self.host} reads {_listed(self.partitions)}"


class Status(msgspec.Struct, frozen=True):
    """All that an operator asks first; ``well`` if nothing of it needs a hand."""

    last: dict[str, Any] | None
    topics: dict[str, str] = {}  # by view
    drift: tuple[Change, ...] = ()
    wider: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    left: Applying | None = None
    paused: bool = False
    workers: tuple[Member, ...] = ()
    unread: dict[int, int] = {}  # offsets of the source before the group, by partition
    versions: dict[str, int] = {}  # by view
    patterns: dict[str, str] = {}  # what readers subscribe to, whatever the version
    epochs: dict[str, tuple[int, ...]] = {}  # of the keys the views were applied with
    regions: dict[int, int] = {}  # blocks before the second stage of repartitioned views, by region
    gone: tuple[int, ...] = ()  # partitions whose offset the group has lost
    applying: bool = False  # an apply or destroy is at work now

    @property
    def well(self) -> bool:
        """Whether the cluster looks as it was applied, nothing is refused, half done or standing still, and somebody
        is there for what is unread."""
        return not (self.drift or self.refusals or self.left or self.paused or self.gone or self.waits)

    @property
    def waits(self) -> bool:
        """Whether records wait and there is no worker at all: those that are there may be sharing partitions out."""
        return not self.workers and any(self.unread.values())

    def __str__(self) -> str:
        lines = [f"{summary(self.last)}; {len(self.drift)} changes pending"]
        lines += [
            f"{role}: {topic}, version {self.versions[role]} (readers stay subscribed to {self.patterns[role]})"
            for role, topic in self.topics.items()
        ]
        lines += [
            f"key {name}: applied with epoch {max(known)}, the newest of {len(known)} (workers that have a newer one "
            "seal with it: `shoal_key_epoch`)"
            for name, known in self.epochs.items()
        ]
        if not self.applying:  # what is pending then is being done
            lines += [str(change) for change in self.drift]
            lines += [f"! wider: {w}" for w in self.wider]
        lines += [f"! refused: {r}" for r in self.refusals]
        if self.applying:
            lines.append(f"an apply or destroy is at work{f': {self.left.reached}' if self.left is not None else ''}")
        elif self.left is not None:
            widening = ", with --allow-wider if it still is to be" if self.wider else ""
            lines.append(f"! {self.left}{widening}")
        unread = f"{sum(self.unread.values()):,} records unread"
        if self.gone:
            unread += f" at most: the group's offset of {_listed(self.gone)} is gone (expired or deleted)"
            lines.append(f"! offsets are gone of {_listed(self.gone)}: a worker that starts goes on by the changelog")
        if self.paused:
            ends = "" if self.left is not None else "; `shoal serve resume` lets them go on"
            lines.append(f"! paused: no worker reads ({unread}){ends}")
        else:
            lines.append(f"{len(self.workers)} workers read {_count(self.workers)} partitions; {unread}")
            lines += [f"  {worker}" for worker in self.workers]
            nobody = sorted(set(self.unread) - {p for worker in self.workers for p in worker.partitions})
            lines += [f"{'! ' if self.waits else '  '}nobody reads {_listed(nobody)}"] if nobody else []
        if self.regions:
            lines.append(f"{sum(self.regions.values()):,} blocks of {len(self.regions)} regions unread")
        return "\n".join([*lines, *[f"note: {n}" for n in self.notes]])


def status(service: Provisioner) -> Status:
    """How the service of a policy stands now; changes nothing."""
    source, last = service.source, service.last_applied()
    service.only = service.only or (last or {}).get("only")  # users and rights of others are none of its business
    plan = service.plan()
    regions = topics_for(source.topic)[0]
    second = routed(service.policy) and service.cluster.partitions([regions])
    unread, gone = _unread(Log.of(source)) if plan.make is None else ({}, ())
    paused = order_now(service.properties, source.topic).paused
    awaited = any(unread.values()) and not paused
    workers = _workers(service.properties, source.group, JOINING if awaited else 0.0)
    return Status(
        last,
        {role: one.topic for role, one in served_of(last).items()},
        plan.changes,
        plan.wider,
        plan.refusals,
        plan.notes,
        plan.left,
        paused,
        workers,
        unread,
        {role: one.version for role, one in served_of(last).items()},
        {role: pattern_of(first_name(one)) for role, one in served_of(last).items()},
        {name: tuple(sorted(map(int, known))) for name, known in (last or {}).get("keys", {}).items() if known},
        _unread(Log.on(source, regions, group_of(source.group, of_regions=True)))[0] if second else {},
        gone,
        bool(members(service.properties, turn_group(source.topic))),
    )


def _workers(properties: dict[str, Any], group: str, seconds: float) -> tuple[Member, ...]:
    """The workers of a group; those that have just been told to go on, or start again, are there in a moment."""
    end = time.monotonic() + seconds
    while not (found := members(properties, group)) and time.monotonic() < end:
        time.sleep(0.3)
    return found


def _unread(log: Log) -> tuple[dict[int, int], tuple[int, ...]]:
    """What is unread, by partition, and those whose offset the group has lost."""
    try:
        return log.unread(), tuple(log.gone(log.committed()))
    finally:
        log.close()


def members(properties: dict[str, Any], group: str) -> tuple[Member, ...]:
    """The workers of a group; none if there never was one."""
    found = members_of(library().admin.AdminClient({**properties, "log_level": 0}), group)
    return tuple(
        Member(
            m.client_id,
            m.host,
            tuple(sorted(p.partition for p in m.assignment.topic_partitions)),
            m.group_instance_id or None,
        )
        for m in found
    )


def summary(entry: dict[str, Any] | None) -> str:
    """One line about what was applied last."""
    if entry is None:
        return "nothing was applied yet"
    return f"policy {entry['policy']} applied by {entry['by']}, {len(entry['views'])} views"


def _listed(partitions: Sequence[int]) -> str:
    """
    >>> _listed([0, 3]), _listed([2]), _listed([])
    ('partitions 0, 3', 'partition 2', 'nothing')
    """
    if not partitions:
        return "nothing"
    return f"partition{'s' * (len(partitions) > 1)} {', '.join(map(str, partitions))}"


def _count(workers: tuple[Member, ...]) -> int:
    return sum(len(worker.partitions) for worker in workers)
