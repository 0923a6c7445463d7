"""The same users and rights as commands of Kafka's own tools, for clusters where someone else manages them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from shoal.runtime.kafka.provision.layout import Layout, Right

KINDS = {"TOPIC": "--topic", "GROUP": "--group", "TRANSACTIONAL_ID": "--transactional-id"}


def commands(wanted: Layout, brokers: str, mechanism: str = "SCRAM-SHA-256") -> Iterator[str]:
    """One line per user and per right, to be run with an administrator's `admin.properties`; passwords are yours."""
    login = ["--bootstrap-server", brokers, "--command-config", "admin.properties"]
    for user in wanted.users:
        secret = f"{mechanism}=[password=…]"
        what = ["--alter", "--add-config", secret, "--entity-type", "users", "--entity-name", user]
        yield shlex.join(["kafka-configs.sh", *login, *what])
    for right in sorted(wanted.rights):
        yield shlex.join(["kafka-acls.sh", *login, "--add", *_words(right)])


def _words(right: Right) -> list[str]:
    pattern = ["--resource-pattern-type", "prefixed"] if right.pattern == "PREFIXED" else []
    who = ["--allow-principal", right.principal, "--operation", right.operation.title()]
    return [*who, KINDS[right.resource], right.name, *pattern]
