"""Carrying out a plan, step by step: a journal says how far it came; nobody reads a new view before it is filled."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

import msgspec

from shoal.connect.kafka import internal
from shoal.core.errors import UsageError
from shoal.core.keys import KeyRing
from shoal.runtime.kafka.provision.audit import Audit, Steps
from shoal.runtime.kafka.provision.backfill import Log, Rest, backfill, backfill_group, fill_beside, started
from shoal.runtime.kafka.provision.control import order_now
from shoal.runtime.kafka.provision.key_checks import Checks, checks_of, refuse_other_keys, together
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.serve.membership import group_of
from shoal.runtime.provision.widening import fingerprint, seen_by_role

if TYPE_CHECKING:
    from shoal.runtime.kafka.provision.plan import Plan
    from shoal.runtime.kafka.provision.provision import Provisioner


def carry_out(service: Provisioner, plan: Plan, keys: KeyRing | None) -> None:
    """Do all that a plan says, and write it down. Idempotent: what is already so is not touched.

    New views are filled from the log up to where the workers stand, with ``keys``; only then rights are switched.
    """
    policy, cluster, properties, left = service.policy, service.cluster, service.properties, plan.left
    topic, group = service.source.topic, service.source.group
    known = (plan.history.newest or {}).get("keys", {})
    mine = checks_of(policy, keys) if keys is not None else {}
    refuse_other_keys(known, mine, "serve apply")
    source = plan.source or cluster.topic_id(topic)
    if plan.anew:  # what the group has read was of another source
        for of_regions in (False, True):
            cluster.delete_group(group_of(group, of_regions=of_regions), idle=True)
    log = Log(properties, topic, cluster.partitions([topic])[topic], group)
    at_work = bool(plan.new) and bool(log.standing(keys, source))
    if at_work and keys is None:
        raise UsageError("new views are filled from the log, which needs the keys", where="serve apply")
    if service.codec is not None:
        service.codec.register({role: one.topic for role, one in plan.served.items()})
    audit = Audit(properties, topic)
    steps = Steps(audit)
    # an apply that did not end has paused the workers itself: what it found before counts
    was_paused = left.was_paused if left is not None else order_now(properties, topic).paused
    if cluster.partitions([internal(topic, "audit")]):
        made = msgspec.to_builtins(plan.served, str_keys=True)
        steps.begin(was_paused=was_paused, served=made, new=plan.new)
    for group_left in cluster.groups(backfill_group(topic, "")):  # of one that was killed
        cluster.delete_group(group_left)
    for step in plan.steps:
        step()
    steps.did("made")
    served = {r: started(policy.views[r], s, log) if r in plan.new else s for r, s in plan.served.items()}
    rest = Rest(properties, topic, group, was_paused=was_paused)
    filling = backfill_group(topic)
    new = {role: served[role] for role in plan.new}

    def fill() -> int:
        assert keys is not None
        return backfill(policy, keys, new, log, source=source, group=filling, codec=service.codec)

    if at_work and not was_paused:  # beside the workers: they stand still for the rest of it and the switch alone
        fill_beside(fill)
    with rest if at_work else nullcontext():
        if at_work:
            steps.did("paused")
            fill()
            steps.did("filled")
            for of_regions in (False, True):
                cluster.delete_group(group_of(filling, of_regions=of_regions))
        for step in plan.switch:
            step()
        steps.did("switched")
        _write_down(service, audit, plan, source, served, together(known, mine))
    # the workers learn of more partitions only when they begin anew
    if (left is not None or plan.grown) and not at_work:
        rest.release()
    steps.did("ended")
    log.close()


def _write_down(
    service: Provisioner, audit: Audit, plan: Plan, source: str, served: Mapping[str, Served], keys: Checks
) -> None:
    audit.write(
        {
            "at": int(time.time()),
            "by": audit.by,
            "dataset": service.policy.dataset,
            "source": source,
            "keys": keys,
            "policy": fingerprint(service.policy),
            "only": service.only,
            "views": seen_by_role(service.policy),
            "served": msgspec.to_builtins(served, str_keys=True),
            "changes": [msgspec.to_builtins(c) for c in plan.changes],
        }
    )
