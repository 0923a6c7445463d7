"""Being a member of the workers' group, by either group protocol: classic, or the newer one of KIP-848.

A worker with a name that outlives its process is a *static* member: started again before its session ends, it gets its
own partitions back and nobody else notices. By the newer protocol partitions also stay where they are when others come
and go. By the classic one all members stop for a change: a commit in the middle of one would be refused.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from shoal.connect.kafka import KafkaError, library
from shoal.core.errors import UsageError

Protocol = Literal["classic", "consumer"]
SESSION = 6.0  # seconds until the group gives up a member that says nothing, unless told otherwise
LONGEST_SESSION = 120  # a member is given as long between two questions
FENCED = ("_FENCED", "FENCED_INSTANCE_ID", "PRODUCER_FENCED")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


class Membership(NamedTuple):
    """How a worker is a member: by which protocol, under which name, and for how long without a word.

    >>> Membership(name="shoal-0").protocol
    'classic'
    """

    protocol: Protocol = "classic"
    name: str | None = None
    session: float = SESSION
    of_regions: bool = False  # of the second stage, which reads the topic of regions


def checked_name(name: str | None) -> str | None:
    """A worker's name as it may stand in ids.

    >>> checked_name("shoal-0")
    'shoal-0'
    """
    if name is not None and not _NAME.fullmatch(name):
        raise UsageError("expected at most 100 letters, digits, `.`, `-` or `_`", where="--name")
    return name


def checked_session(seconds: float) -> float:
    """Seconds of a session as a group may wait for a worker that says nothing.

    >>> checked_session(6)
    6
    """
    # whoever pauses workers waits longer than for any session: a named one is a member until its session ends
    if not 1 <= seconds <= LONGEST_SESSION:
        raise UsageError(
            f"expected 1 to {LONGEST_SESSION} seconds, found {seconds:g}",
            where="--session",
            hint="less than 6 only if the brokers' group.min.session.timeout.ms allows it",
        )
    return seconds


def transactional_id(topic: str, name: str | None, *, of_regions: bool = False) -> str:
    """The id of a worker's transactions. With a name it stays the same: a new start ends what the former left open.

    >>> transactional_id("patients", "shoal-0"), transactional_id("patients", "shoal-0", of_regions=True)
    ('shoal-patients-shoal-0', 'shoal-patients-shoal-0@regions')
    """
    # no worker's name has an @: the two stages of one never end each other's transactions
    return f"shoal-{topic}-{name or uuid.uuid4().hex}{'@regions' if of_regions else ''}"


def group_of(group: str, *, of_regions: bool) -> str:
    """The group of a stage: the one of the source, or that of the topic of regions.

    >>> group_of("shoal-patients", of_regions=True)
    'shoal-patients-regions'
    """
    return f"{group}-regions" if of_regions else group


def refuse_twin(error: Any, how: Membership) -> None:
    """Two workers of one name would take turns in ending each other: the older one stops for good."""
    found = error.name if isinstance(error, KafkaError) else error.args[0].name()
    # the client tells of a name that is taken as of any error it cannot go on after
    if how.name is not None and (found in FENCED or (found == "_FATAL" and how.protocol == "classic")):
        made = KafkaError(
            f"another worker has taken the name {how.name!r}",
            where="serve run --name",
            hint="every worker needs a name of its own, for example its pod's",
        )
        made.name = "taken"
        raise made from None


def member(properties: Mapping[str, Any], group: str, how: Membership) -> Any:
    """A consumer that commits through transactions only, and tells when a partition has nothing more.

    An offset the source does not have is an error, never a jump: where to begin is decided when partitions come.
    """
    settings: dict[str, Any] = {
        **properties,
        "group.id": group,
        "group.protocol": how.protocol,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
    if how.name is not None:
        settings["group.instance.id"] = how.name
    if how.protocol == "classic":  # a dead member must not hold up the group for minutes, nor a change for seconds
        settings |= {
            "session.timeout.ms": int(how.session * 1000),
            "heartbeat.interval.ms": 500,
            "max.poll.interval.ms": LONGEST_SESSION * 1000,
        }
    return library().Consumer(settings)


def attach(consumer: Any, how: Membership, partitions: list[Any]) -> None:
    """Begin to read these partitions."""
    if how.protocol == "consumer":
        consumer.incremental_assign(partitions)
    else:
        consumer.assign(partitions)


def detach(consumer: Any, how: Membership, partitions: list[Any]) -> None:
    """Stop reading these partitions."""
    if how.protocol == "consumer":
        consumer.incremental_unassign(partitions)
    else:
        consumer.unassign()
