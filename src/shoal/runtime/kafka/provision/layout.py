"""What a policy means on a cluster: topics, users and access rights. Values only, compared by :mod:`.provision`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shoal.connect.kafka import Source, internal
from shoal.core.errors import PolicyError
from shoal.core.time import duration
from shoal.policy.document import Policy, View
from shoal.runtime.kafka.regions.wish import routed, topics_for
from shoal.runtime.kafka.serve.membership import group_of

# state is written over and over: small segments, so that what is old goes soon
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": str(64 << 20), "segment.ms": "3600000"}
# what a worker does with what the service keeps for itself
KEPT = {
    **dict.fromkeys(("changelog", "regions", "cuts"), ("READ", "WRITE")),
    "dead": ("WRITE",),
    "audit": ("READ",),
    "control": ("READ",),
}
SERVICE = ("topic", "partitions", "retention", "start", "key", "replication", "repartition")
# sealed copies of records: long enough to restart after a long week-end, no longer
PASSING = {"cleanup.policy": "delete", "retention.ms": str(7 * 24 * 3600 * 1000)}


class Right(NamedTuple):
    """One access right: this principal may do this to that."""

    principal: str
    operation: str  # READ, WRITE, DESCRIBE …
    resource: str  # TOPIC, GROUP, TRANSACTIONAL_ID
    name: str
    pattern: str = "LITERAL"

    @property
    def told(self) -> str:
        """What it allows, in words.

        >>> Right("User:lab", "READ", "GROUP", "lab.", "PREFIXED").told
        'READ GROUP lab.*'
        """
        return f"{self.operation} {self.resource} {self.name}{'*' if self.pattern == 'PREFIXED' else ''}"

    def covers(self, resource: str, name: str) -> bool:
        """Whether it speaks about this resource, also by prefix or star."""
        if self.resource != resource:
            return False
        return self.name in ("*", name) if self.pattern == "LITERAL" else name.startswith(self.name)


@dataclass(frozen=True)
class Topic:
    """A topic as it should be."""

    name: str
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)
    replication: int = -1  # the broker's default


@dataclass(frozen=True)
class Layout:
    """Everything the service needs on a cluster."""

    source: str
    topics: Mapping[str, Topic]
    users: tuple[str, ...]
    rights: frozenset[Right]
    views: Mapping[str, str]  # role -> topic
    internal: tuple[str, ...]  # topics no role may ever read
    worker: str | None = None

    @property
    def principals(self) -> frozenset[str]:
        """The principals of all roles."""
        return frozenset(r.principal for r in self.rights if r.principal != f"User:{self.worker}")


def layout(policy: Policy, partitions: int, served: Mapping[str, str] | None = None) -> Layout:
    """The layout of a policy whose source has this many partitions; ``served`` names topics of later versions."""
    described = Source(policy.source, policy.path)
    source = described.topic
    own = [
        Topic(internal(source, "changelog"), partitions, COMPACTED),
        Topic(internal(source, "dead"), partitions),
        Topic(internal(source, "audit"), 1, {"retention.ms": "-1"}),
        Topic(internal(source, "control"), 1, COMPACTED),
    ]
    if counts := routed(policy):
        regions, states, cuts = topics_for(source)
        most = max(counts.values())
        own += [Topic(regions, most, PASSING), Topic(states, most, COMPACTED), Topic(cuts, 1, COMPACTED)]
    topics = {topic.name: topic for topic in own}
    kept = tuple(topics)
    rights: set[Right] = set()
    users: list[str] = []
    views: dict[str, str] = {}
    for role, view in policy.views.items():
        topic = view_topic(policy, view, partitions, (served or {}).get(role))
        if topic.name in topics or topic.name == source or topic.name in views.values():
            raise PolicyError(f"two things want the topic {topic.name!r}", where=f"views.{role}.service.topic")
        topics[topic.name] = topic
        views[role] = topic.name
        for user in view.users:
            users.append(user)
            rights |= role_rights(role, user, topic.name)
    for role in policy.views:
        # a role reads in groups called `role.…`: it must not reach into another's, nor into the workers'
        inside = [name for name in (described.group, *policy.views) if name.startswith(f"{role}.")]
        if inside:
            raise PolicyError(f"groups of {role!r} would cover those of {inside[0]!r}", where="views", hint="rename it")
    strange = [user for user in users if user == "*" or not user.strip()]
    if strange:
        raise PolicyError("a user is one user, by name", where="views", hint="`*` would let everyone in")
    twice = sorted({u for u in users if users.count(u) > 1})
    if twice:
        raise PolicyError(
            f"the user {twice[0]!r} belongs to more than one view",
            where="views",
            hint="two views of one record intersect",
        )
    worker = policy.source.get("worker")
    if worker is not None:
        if worker in users:
            raise PolicyError("the worker's user must not be a role's", where="source.worker")
        users.append(worker)
        rights |= worker_rights(worker, source, described.group, tuple(views.values()), kept)
        if counts:
            rights.add(Right(f"User:{worker}", "READ", "GROUP", group_of(described.group, of_regions=True)))
    return Layout(source, topics, tuple(users), frozenset(rights), views, kept, worker)


def view_topic(policy: Policy, view: View, partitions: int, named: str | None = None) -> Topic:
    """The topic of a view: as many partitions as the source unless it says otherwise."""
    service = view.service
    for key in service:
        if key not in SERVICE:
            raise PolicyError(
                f"{key!r} is not known here", where=f"views.{view.name}.service", hint=f"one of: {', '.join(SERVICE)}"
            )
    configs = {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime"}
    if "retention" in service:
        configs["retention.ms"] = str(milliseconds(service["retention"], f"views.{view.name}.service.retention"))
    name = named or service.get("topic", f"{policy.source['topic']}.{view.name}")
    return Topic(name, int(service.get("partitions", partitions)), configs, int(service.get("replication", -1)))


def role_rights(role: str, user: str, topic: str) -> set[Right]:
    """A user of a role reads its view in groups of its own, and nothing else."""
    principal = f"User:{user}"
    return {
        Right(principal, "READ", "TOPIC", topic),
        Right(principal, "DESCRIBE", "TOPIC", topic),
        Right(principal, "READ", "GROUP", f"{role}.", "PREFIXED"),
    }


def worker_rights(user: str, source: str, group: str, views: tuple[str, ...], internal: tuple[str, ...]) -> set[Right]:
    """A worker reads the source and its orders, writes the views and its state, and changes no cluster.

    It may not write the audit and control topics: who applied what, and who gives orders, is not its to say.
    """
    principal = f"User:{user}"
    own = {topic: KEPT[topic.rpartition(".")[2]] for topic in internal}
    both = {source: ("READ",), **dict.fromkeys(views, ("WRITE",)), **own}
    topics = {Right(principal, o, "TOPIC", t) for t, many in both.items() for o in ("DESCRIBE", *many)}
    return topics | {
        Right(principal, "READ", "GROUP", f"shoal-{source}", "PREFIXED"),
        Right(principal, "READ", "GROUP", group),
        Right(principal, "WRITE", "TRANSACTIONAL_ID", f"shoal-{source}-", "PREFIXED"),
        Right(principal, "DESCRIBE", "TRANSACTIONAL_ID", f"shoal-{source}-", "PREFIXED"),
    }


def milliseconds(text: Any, where: str) -> int:
    """``7d``, ``1h30m`` or a number of milliseconds."""
    return text if isinstance(text, int) else duration(text, where=where) // 1000
