"""Being a member of the workers' group, by either group protocol: classic, or the newer one of KIP-848."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from shoal.connect.kafka import library

Protocol = Literal["classic", "consumer"]


def member(properties: Mapping[str, Any], group: str, protocol: Protocol) -> Any:
    """A consumer that commits through transactions only, and tells when a partition has nothing more.

    An offset the source does not have is an error, never a jump: where to begin is decided when partitions come.
    """
    settings: dict[str, Any] = {
        **properties,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
    if protocol == "classic":  # a dead member must not hold up the group for minutes
        settings |= {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_500, "max.poll.interval.ms": 120_000}
    return library().Consumer(settings)


def attach(consumer: Any, protocol: Protocol, partitions: list[Any]) -> None:
    """Begin to read these partitions."""
    if protocol == "consumer":
        consumer.incremental_assign(partitions)
    else:
        consumer.assign(partitions)


def detach(consumer: Any, protocol: Protocol, partitions: list[Any]) -> None:
    """Stop reading these partitions."""
    if protocol == "consumer":
        consumer.incremental_unassign(partitions)
    else:
        consumer.unassign()
