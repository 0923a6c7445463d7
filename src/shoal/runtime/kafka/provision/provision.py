"""Plan and apply: make a cluster look as a policy says, and refuse what would let anyone see too much."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Set
from typing import Any

from shoal.connect.kafka import KafkaError, Source, internal
from shoal.core.errors import PolicyError, PromiseError, UsageError
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.runtime.kafka.formats.codec import Codec
from shoal.runtime.kafka.provision.audit import Applying, Audit, History
from shoal.runtime.kafka.provision.backfill import backfill_group
from shoal.runtime.kafka.provision.carry_out import carry_out
from shoal.runtime.kafka.provision.cluster import Cluster
from shoal.runtime.kafka.provision.layout import Layout, Topic, layout
from shoal.runtime.kafka.provision.plan import Plan
from shoal.runtime.kafka.provision.refusals import at_home_nowhere, check, is_ours, paths_of, refuse_closeness
from shoal.runtime.kafka.provision.served import begun_topics, former_topics, served_next, served_of
from shoal.runtime.kafka.provision.turn import Turn, turn_group
from shoal.runtime.kafka.regions.wish import cost_told, routed, topics_for
from shoal.runtime.kafka.serve.membership import group_of
from shoal.runtime.kafka.serve.stateful import reuse_told, reuses
from shoal.runtime.provision.change import Change
from shoal.runtime.provision.passwords import password_of, refuse_shared_variables
from shoal.runtime.provision.widening import seen_by_role, widened


class Provisioner:
    """Plans and applies the topics, users and rights of one policy."""

    def __init__(
        self, policy: Policy, *, only: str | None = None, codec: Codec | None = None, passwords: bool = False
    ) -> None:
        self.policy, self.codec, self.passwords = policy, codec, passwords
        self.source = Source(policy.source, policy.path)
        self.properties = self.source.properties
        self.cluster = Cluster(self.properties)
        if only not in (None, "topics", "rights"):
            raise UsageError(f"expected topics or rights, found {only!r}", where="--only")
        if passwords and only is not None:
            raise UsageError("users are managed elsewhere", where="--passwords", hint="leave out --only")
        self.only = only

    def plan(self) -> Plan:
        """What would be done; changes nothing."""
        check(self.policy)
        topic = self.source.topic
        make = self._source_to_make()
        partitions = make.partitions if make is not None else self.cluster.partitions([topic])[topic]
        if partitions > 1:
            refuse_closeness(self.policy)
        history = self.history()
        before, left = history.newest, history.left
        if before is not None and before.get("dataset", self.policy.dataset) != self.policy.dataset:
            raise PolicyError(
                f"the source {topic!r} is served by the policy of another dataset: its views would be deleted",
                where=self.policy.path,
                hint="one policy per source: put all views into one, or `shoal serve destroy` the other first",
            )
        former = former_topics(before)
        there = self.cluster.partitions(former.values())
        source = self.cluster.topic_id(topic) if make is None else ""
        anew = (before or {}).get("source", source) != source
        served = served_next(self.policy, before, left, there, anew=anew)
        wanted = layout(self.policy, partitions, {role: one.topic for role, one in served.items()})
        known_names = {one.name for one in served_of(before).values()}
        new = tuple(role for role, one in served.items() if one.name not in known_names)
        changes: list[Change] = []
        if make is not None:
            changes.append(Change("create", "topic", topic, f"the source, {partitions} partitions"))
        if anew:
            changes.append(Change("change", "source", topic, "deleted and made again: every view begins anew"))
        steps: list[Callable[[], None]] = []
        switch: list[Callable[[], None]] = []
        half = self._take_back(left, former, changes, steps)
        grown = self._topics(wanted, half, changes, steps)
        taken = self.cluster.holding(set(wanted.views.values()) - set(former.values()) - half)
        refusals = [
            f"the topic {name} holds what no applied view of this policy has written (delete it, if nobody needs it)"
            for name in taken
        ]
        if before is not None and not anew:
            refusals += self._forgotten(half=left is not None)
        if self.only != "topics":
            known = {user for view in before["views"].values() for user in view["users"]} if before else set()
            if self.only is None:  # else someone else makes them: a directory, certificates, tokens
                self._users(wanted, known, former, changes, steps)
            refusals += self._rights(wanted, known, former, changes, steps, switch)
        self._leave(wanted, former, changes, switch)
        wider = widened(before["views"], seen_by_role(self.policy)) if before else []
        return Plan(
            wanted,
            tuple(changes),
            tuple(wider),
            tuple(refusals),
            (*self._notes(partitions), *self._unlike(wanted)),
            served,
            new,
            history,
            source,
            make,
            anew,
            grown,
            tuple(steps),
            tuple(switch),
        )

    def _source_to_make(self) -> Topic | None:
        """The source topic, if there is none and the policy says how many ``partitions`` it must have."""
        said, topic = self.policy.source, self.source.topic
        if self.cluster.partitions([topic]):
            return None
        if "partitions" not in said:
            raise PolicyError(
                f"the source topic {topic!r} does not exist",
                where=self.policy.path,
                hint="create it, or say `partitions` in the source",
            )
        return Topic(topic, int(said["partitions"]), {}, int(said.get("replication", -1)))

    def _notes(self, partitions: int) -> tuple[str, ...]:
        promising = {role: view for role, view in self.policy.views.items() if view.promises}
        told = [reuse_told(role) for role in promising if reuses(self.policy, role)]
        return (*told, *cost_told(routed(self.policy), self.source.topic, partitions, promising))

    def apply(self, plan: Plan, *, allow_wider: bool = False, keys: KeyRing | None = None) -> None:
        """Carry out a plan, if it may be: see :func:`~shoal.runtime.kafka.provision.carry_out.carry_out`."""
        if plan.refusals:
            raise PromiseError(plan.refusals[0], where="serve apply", hint="nothing was changed")
        if plan.wider and not allow_wider:
            raise PromiseError(
                f"roles would see more than before: {'; '.join(plan.wider)}",
                where="serve apply",
                hint="--allow-wider if that is meant; nothing was changed",
            )
        if plan.make is not None:
            self.cluster.create_topics([plan.make])
        with self._turn():
            if self.history() != plan.history:
                raise KafkaError("someone else has applied meanwhile", where=self.source.topic, hint="plan it anew")
            carry_out(self, plan, keys)

    def destroy(self, *, audit: bool = False) -> list[Change]:
        """Take away the views: rights first, then users, then topics. The source is never touched.

        The audit topic stays, and says who did it, unless ``audit`` is to go, too.
        """
        with self._turn():
            out = self._destroyed(audit=audit)
        self.cluster.delete_group(turn_group(self.source.topic))
        return out

    def _destroyed(self, *, audit: bool) -> list[Change]:
        topic, history = self.source.topic, self.history()
        last, served = history.newest, former_topics(history.newest)
        wanted = layout(self.policy, self.cluster.partitions([topic]).get(topic, 1), served)
        # whoever was let in last, too, though the policy may have forgotten them since
        former = {u for v in (last or {"views": {}})["views"].values() for u in v["users"]}
        begun = begun_topics(history.left)  # an apply that did not end has made them
        topics = {*wanted.topics, *served.values(), *begun.values(), *topics_for(topic)}
        roles = {*wanted.views, *served, *begun}
        now, people = self.cluster.rights(), wanted.principals | {f"User:{u}" for u in (*former, wanted.worker)}
        mine = {r for r in now if r.principal in people and is_ours(r, topics, roles, self.source)}
        mine |= now & wanted.rights
        self.cluster.revoke(mine)
        people_gone = sorted(self.cluster.users(at_home_nowhere({*wanted.users, *former}, now - mine)))
        self.cluster.delete_users(people_gone)
        kept = internal(topic, "audit")
        there = sorted(self.cluster.partitions(topics if audit else topics - {kept}))
        self.cluster.delete_topics(there)
        if (last is not None or history.left is not None) and not audit:
            log = Audit(self.properties, topic)
            log.write({"at": int(time.time()), "by": log.by, "dataset": self.policy.dataset, "destroyed": True})
        # what a group has read of the source says nothing about views that are made anew
        own = [group_of(self.source.group, of_regions=stage) for stage in (False, True)]
        for group in (*own, *self.cluster.groups(backfill_group(topic, ""))):
            self.cluster.delete_group(group)
        return [
            *[Change("revoke", "right", r.principal, r.told) for r in sorted(mine)],
            *[Change("delete", "user", name) for name in people_gone],
            *[Change("delete", "topic", name) for name in there],
        ]

    def _turn(self) -> Turn:
        topic = self.source.topic
        return Turn(self.properties, topic, sorted(self.cluster.partitions([topic, internal(topic, "audit")])))

    def last_applied(self) -> dict[str, Any] | None:
        """The newest whole entry of the audit topic."""
        return self.history().newest

    def history(self) -> History:
        """What the audit topic says: the newest whole entry, and an apply that did not end."""
        if not self.cluster.partitions([internal(self.source.topic, "audit")]):
            return History()
        return Audit(self.properties, self.source.topic).history()

    def _take_back(
        self,
        left: Applying | None,
        former: Mapping[str, str],
        changes: list[Change],
        steps: list[Callable[[], None]],
    ) -> set[str]:
        """The topics an apply that did not end was filling: they are deleted, and made again if they are wanted."""
        if left is None:
            return set()
        half = set(self.cluster.partitions(set(begun_topics(left).values()) - set(former.values())))
        changes += [Change("delete", "topic", name, "left of an apply that did not end") for name in sorted(half)]
        if half:
            steps.append(lambda: self.cluster.delete_topics(half))
        return half

    def _forgotten(self, *, half: bool) -> list[str]:
        """Changelogs that were applied and are gone: an empty one in their place would say that nothing was published.

        ``half``: an apply that did not end may not have made those of regions yet.
        """
        regions, of_regions, _ = topics_for(self.source.topic)
        names = {internal(self.source.topic, "changelog")}
        if not half and self.cluster.partitions([regions]):
            names.add(of_regions)
        gone = sorted(names - self.cluster.partitions(names).keys())
        return [
            f"{name} is gone, and with it what says how far views are published (`shoal serve destroy`, then `apply`, "
            "publishes them anew)"
            for name in gone
        ]

    def _topics(self, wanted: Layout, gone: Set[str], changes: list[Change], steps: list[Callable[[], None]]) -> bool:
        """Topics to make or to change; whether some get more partitions."""
        there = {name: n for name, n in self.cluster.partitions(wanted.topics).items() if name not in gone}
        new = [t for name, t in wanted.topics.items() if name not in there]
        changes += [Change("create", "topic", t.name, f"{t.partitions} partitions") for t in new]
        if new:
            steps.append(lambda: self.cluster.create_topics(new))
        configs = self.cluster.configs(there) if there else {}
        for name, count in there.items():
            topic = wanted.topics[name]
            if count < topic.partitions:
                changes.append(Change("change", "topic", name, f"{count} to {topic.partitions} partitions"))
                steps.append(lambda n=name, p=topic.partitions: self.cluster.add_partitions(n, p))  # type: ignore[misc]
            other = {k: v for k, v in topic.configs.items() if configs[name].get(k) != v}
            if other:
                changes.append(Change("change", "topic", name, ", ".join(f"{k}={v}" for k, v in other.items())))
                steps.append(lambda n=name, o=other: self.cluster.set_configs(n, o))  # type: ignore[misc]
        return any(count < wanted.topics[name].partitions for name, count in there.items())

    def _unlike(self, wanted: Layout) -> list[str]:
        """What is otherwise than the policy says, and no apply can change."""
        there, copies = self.cluster.partitions(wanted.topics), self.cluster.replication(wanted.topics)
        more = {n: c for n, c in there.items() if c > wanted.topics[n].partitions}
        other = {n: c for n, c in copies.items() if wanted.topics[n].replication not in (-1, c)}
        return [
            *(
                f"{n} has {c} partitions, {wanted.topics[n].partitions} are said: none is taken away"
                for n, c in more.items()
            ),
            *(
                f"{n} has {c} copies, {wanted.topics[n].replication} are said: see kafka-reassign-partitions.sh"
                for n, c in other.items()
            ),
        ]

    def _users(
        self,
        wanted: Layout,
        known: set[str],
        former: Mapping[str, str],
        changes: list[Change],
        steps: list[Callable[[], None]],
    ) -> None:
        names, there = list(wanted.users), self.cluster.users(wanted.users)
        new = [u for u in names if u not in there or self.passwords]
        if new:
            refuse_shared_variables(names)
            passwords = {user: password_of(user, self.source.folder) for user in new}
            again = [Change("change", "user", user, "its password") for user in new if user in there]
            changes += [*(Change("create", "user", user) for user in new if user not in there), *again]
            steps.append(lambda: self.cluster.set_users(passwords))
        topics, roles = {*wanted.topics, *former.values()}, {*wanted.views, *former}
        others = {r for r in self.cluster.rights() if not is_ours(r, topics, roles, self.source)}
        gone = sorted(at_home_nowhere(known - set(names), others))
        if gone and self.cluster.users(gone):
            changes += [Change("delete", "user", user) for user in gone]
            # first of all: whoever was removed is out before anything else happens
            steps.insert(0, lambda: self.cluster.delete_users(gone))

    def _leave(
        self, wanted: Layout, former: Mapping[str, str], changes: list[Change], switch: list[Callable[[], None]]
    ) -> None:
        """Topics of former versions and of views that are no more: two generalizations of one record intersect."""
        gone = set(former.values()) | set(topics_for(self.source.topic))
        old = sorted(self.cluster.partitions(gone - set(wanted.topics)))
        changes += [Change("delete", "topic", name, "a former version") for name in old]
        if old:
            switch.append(lambda: self.cluster.delete_topics(old))

    def _rights(
        self,
        wanted: Layout,
        known: set[str],
        served: Mapping[str, str],
        changes: list[Change],
        steps: list[Callable[[], None]],
        switch: list[Callable[[], None]],
    ) -> list[str]:
        now = self.cluster.rights()
        principals = wanted.principals | {f"User:{user}" for user in known}
        missing, staying = wanted.rights - now, wanted.principals | {f"User:{wanted.worker}"}
        extra = {r for r in now if r.principal in principals | staying and r not in wanted.rights}
        old = {r for r in extra if r.resource == "TOPIC" and r.name in set(served.values()) - set(wanted.topics)}
        # who stays reads the former version until the new one is filled; who was removed is out at once
        left = {r for r in old if r.principal in staying}
        mine = {r for r in extra if is_ours(r, set(wanted.topics), {*wanted.views, *served}, self.source)}
        surplus = mine | (old - left)
        for verb, rights in (("grant", missing), ("revoke", surplus | left)):
            changes += [Change(verb, "right", r.principal, r.told) for r in sorted(rights)]
        if surplus:
            steps.insert(0, lambda: self.cluster.revoke(surplus))
        if left:
            switch.append(lambda: self.cluster.revoke(left))
        # the worker's rights come first: it fills new views before roles may read them
        own = {r for r in missing if r.principal == f"User:{wanted.worker}"}
        if own:
            steps.append(lambda: self.cluster.grant(own))
        if missing - own:
            switch.append(lambda: self.cluster.grant(missing - own))
        paths = paths_of(now - surplus - left, wanted, principals)
        refusals = [f"{r.principal} has a path to {r.name}" for r in sorted(paths)]
        if self.cluster.open_to_everyone():
            refusals.append(
                "the broker lets everyone in where no right says otherwise, or does not say that it does not "
                "(take allow.everyone.if.no.acl.found out of its settings: without it nobody is let in)"
            )
        return refusals
