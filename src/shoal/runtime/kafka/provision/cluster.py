"""What a cluster has now, and the few ways to change it: a thin layer over the client library's admin."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shoal.connect.kafka import KafkaError, library, told, topic_id, topics_of
from shoal.runtime.kafka.provision.layout import Right, Topic

WAIT = 30.0  # seconds until the cluster must show what was written
MECHANISM_ITERATIONS = 8192
STRONGER = "SCRAM-SHA-512"
PROBE = "shoal-probe-"  # and the second in which it was made


class Cluster:
    """One cluster, seen through an administrator's eyes."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        kafka = library()
        self._kafka = kafka
        self._admin = kafka.admin
        self._failed: list[Any] = []
        self._properties = properties
        self.mechanism = STRONGER if properties.get("sasl.mechanism") == STRONGER else "SCRAM-SHA-256"
        # a refused login shows up here and nowhere else
        self._client = kafka.admin.AdminClient({"log_level": 0, **properties, "error_cb": self._failed.append})

    def partitions(self, names: Iterable[str]) -> dict[str, int]:
        """The partitions of those topics that exist."""
        listed = topics_of(self._client, self._failed, "asking for topics")
        return {name: len(listed[name].partitions) for name in names if name in listed and listed[name].error is None}

    def replication(self, names: Iterable[str]) -> dict[str, int]:
        """How many copies the partitions of those topics have that exist: of the one with the fewest."""
        listed = topics_of(self._client, self._failed, "asking for topics")
        there = {name: listed[name].partitions.values() for name in names if name in listed}
        return {name: min(len(p.replicas) for p in many) for name, many in there.items() if many}

    def topic_id(self, name: str) -> str:
        """See :func:`~shoal.connect.kafka.topic_id`."""
        return topic_id(self._client, name)

    def configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """The settings of topics."""
        kind = self._admin.ConfigResource
        found = self._results(
            self._client.describe_configs([kind(kind.Type.TOPIC, n) for n in names]), "asking for topic settings"
        )
        return {resource.name: {k: e.value for k, e in entries.items()} for resource, entries in found}

    def open_to_everyone(self) -> bool:
        """Whether a broker lets users in where no right says so, or checks no rights at all.

        Where a broker hides whether it does, a user without rights is made, asks for a topic that no right names, and
        is deleted.
        """
        kind = self._admin.ConfigResource
        nodes = [str(b.id) for b in self._client.list_topics(timeout=10).brokers.values()]
        asked = [self._client.describe_configs([kind(kind.Type.BROKER, n)]) for n in nodes]  # each answers for itself
        found = [
            is_open({name: entry.value for name, entry in entries.items()})
            for many in asked
            for _, entries in self._results(many, "asking for broker settings")
        ]
        if None in found and True not in found and str(self._properties.get("sasl.mechanism", "")).startswith("SCRAM"):
            return self._lets_in_anyone()
        # what nobody could tell counts as open
        return any(one is not False for one in found)

    def _lets_in_anyone(self) -> bool:
        """Whether a new user is let in where no right says so.

        Asked about a name that nobody knows: a single right on a topic, whoever's it is, closes it to all others, and
        those beside it stay open.
        """
        unknown, password = f"{PROBE}{int(time.time())}-{secrets.token_hex(8)}", secrets.token_hex(16)
        self.delete_users(self._old_probes())
        self.set_users({unknown: password})
        try:
            login = {**self._properties, "sasl.username": unknown, "sasl.password": password, "log_level": 0}
            client = self._kafka.admin.AdminClient(login)
            end = time.monotonic() + WAIT
            while True:  # a broker may hear of the new login a moment later
                try:
                    found = client.list_topics(unknown, timeout=5).topics[unknown].error
                    # to all others a broker does not even say that there is no such topic
                    return found is None or found.name() != "TOPIC_AUTHORIZATION_FAILED"
                except self._kafka.KafkaException as error:
                    if time.monotonic() > end:
                        raise told(error.args[0], "trying whether a user without rights is let in") from None
        finally:
            # also if it failed: a user made for a trial must not stay
            self.delete_users([unknown])

    def _old_probes(self) -> list[str]:
        """Users made for a trial that was killed before it could delete them."""
        return sorted(user for user in self._every_user() if _is_old_probe(user, time.time()))

    def holding(self, names: Iterable[str]) -> list[str]:
        """Which of these topics hold records, or are the source of another policy."""
        admin, out = self._admin, []
        for name, count in self.partitions(names).items():
            places = [self._kafka.TopicPartition(name, p) for p in range(count)]
            first, last = (
                self._results(self._client.list_offsets(dict.fromkeys(places, at)), "asking for offsets")
                for at in (admin.OffsetSpec.earliest(), admin.OffsetSpec.latest())
            )
            used = sum(r.offset for _, r in last) > sum(r.offset for _, r in first)
            if used or self.partitions([f"{name}.shoal.audit"]):
                out.append(name)
        return out

    def _every_user(self) -> list[str]:
        """All users who can log in by a password that the cluster keeps."""
        try:
            return list(self._client.describe_user_scram_credentials().result(WAIT))
        except self._kafka.KafkaException as error:
            raise told(error.args[0], "asking for users") from None

    def users(self, names: Iterable[str]) -> set[str]:
        """Which of these users can log in."""
        wanted = list(names)
        if not wanted:
            return set()
        out = set()
        for name, future in self._client.describe_user_scram_credentials(wanted).items():
            try:
                future.result(WAIT)
                out.add(name)
            except self._kafka.KafkaException as error:
                if error.args[0].name() != "RESOURCE_NOT_FOUND":
                    raise told(error.args[0], "asking for users") from None
        return out

    def rights(self) -> set[Right]:
        """All rights that allow something."""
        admin = self._admin
        everything = admin.AclBindingFilter(
            admin.ResourceType.ANY,
            None,
            admin.ResourcePatternType.ANY,
            None,
            None,
            admin.AclOperation.ANY,
            admin.AclPermissionType.ALLOW,
        )
        try:
            found = self._client.describe_acls(everything).result(WAIT)
        except self._kafka.KafkaException as error:
            raise told(error.args[0], "asking for rights") from None
        return {
            Right(a.principal, a.operation.name, a.restype.name, a.name, a.resource_pattern_type.name) for a in found
        }

    def create_topics(self, topics: Iterable[Topic]) -> None:
        """Make topics and wait until they are there."""
        new = [self._admin.NewTopic(t.name, t.partitions, t.replication, config=dict(t.configs)) for t in topics]
        if new:
            self._patiently(lambda missing: self._client.create_topics([t for t in new if t.topic in missing]), new)
            self._until(lambda: len(self.partitions([t.topic for t in new])) == len(new), "the new topics")

    def _patiently(self, create: Callable[[set[str]], Mapping[str, Any]], topics: list[Any]) -> None:
        """Make topics; where no broker can take a copy at this moment, a little later."""
        missing, brokers = {topic.topic for topic in topics}, len(self._client.list_topics(timeout=10).brokers)
        never = any(topic.replication_factor > brokers for topic in topics)
        end = time.monotonic() + (0 if never else WAIT)
        while missing:
            for name, future in create(missing).items():
                try:
                    future.result(WAIT)
                    missing = missing - {name}
                except self._kafka.KafkaException as error:
                    # brokers that the controller has not heard of for a moment take no copies
                    if error.args[0].name() != "INVALID_REPLICATION_FACTOR" or time.monotonic() > end:
                        raise told(error.args[0], "creating topics") from None
            time.sleep(0.5 if missing else 0)

    def set_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Change settings of a topic."""
        admin = self._admin
        entries = [
            admin.ConfigEntry(k, v, incremental_operation=admin.AlterConfigOpType.SET) for k, v in configs.items()
        ]
        kind = admin.ConfigResource
        resource = kind(kind.Type.TOPIC, name, incremental_configs=entries)
        self._results(self._client.incremental_alter_configs([resource]), "changing topic settings")

    def add_partitions(self, name: str, partitions: int) -> None:
        """Give a topic more partitions."""
        self._results(
            self._client.create_partitions([self._admin.NewPartitions(name, partitions)]), "adding partitions"
        )

    def delete_topics(self, names: Iterable[str]) -> None:
        """Remove topics and wait until they are gone."""
        gone = list(names)
        if gone:
            self._results(self._client.delete_topics(gone), "deleting topics")
            self._until(lambda: not self.partitions(gone), "the deleted topics")

    def delete_group(self, name: str, *, idle: bool = False) -> None:
        """Forget where a group stands; one that never was is no matter, nor one at work, unless it must be ``idle``."""
        passing = {"GROUP_ID_NOT_FOUND"} | (set() if idle else {"NON_EMPTY_GROUP"})
        end = time.monotonic() + WAIT
        while True:
            try:
                self._client.delete_consumer_groups([name])[name].result(WAIT)
                return
            except self._kafka.KafkaException as error:
                if error.args[0].name() in passing:
                    return
                # a coordinator that has just moved needs a moment, a worker that was killed is a member for its session
                word = error.args[0].name()
                passes = error.args[0].retriable() or word == "NON_EMPTY_GROUP" or "COORDINATOR" in word
                if time.monotonic() > end or not passes:
                    raise told(error.args[0], "forgetting the group (are workers still running?)") from None
                time.sleep(0.2)

    def groups(self, prefix: str) -> list[str]:
        """The consumer groups whose names begin so."""
        try:
            found = self._client.list_consumer_groups(request_timeout=WAIT).result(WAIT)
        except self._kafka.KafkaException as error:
            raise told(error.args[0], "asking for groups") from None
        return sorted(one.group_id for one in found.valid if one.group_id.startswith(prefix))

    def set_users(self, passwords: Mapping[str, str]) -> None:
        """Let users log in."""
        admin = self._admin
        info = admin.ScramCredentialInfo(self._scram(), MECHANISM_ITERATIONS)
        changes = [admin.UserScramCredentialUpsertion(u, info, p.encode()) for u, p in passwords.items()]
        if changes:
            self._results(self._client.alter_user_scram_credentials(changes), "creating users")
            self._until(lambda: self.users(passwords) == set(passwords), "the new users")

    def delete_users(self, names: Iterable[str]) -> None:
        """Lock users out."""
        admin = self._admin
        gone = sorted(self.users(names))
        found = self._results(self._client.describe_user_scram_credentials(gone), "asking for users") if gone else []
        changes = [
            admin.UserScramCredentialDeletion(user, one.mechanism)
            for user, said in found
            for one in said.scram_credential_infos
        ]
        if changes:
            self._results(self._client.alter_user_scram_credentials(changes), "deleting users")
            self._until(lambda: not self.users(gone), "the deleted users")

    def _scram(self) -> Any:
        """How users of roles log in: as the administrator does, or else by the mechanism every broker has."""
        return self._admin.ScramMechanism[self.mechanism.replace("-", "_")]

    def grant(self, rights: Iterable[Right]) -> None:
        """Add rights and wait until the cluster shows them: it answers before they hold everywhere."""
        wanted = set(rights)
        if wanted:
            self._results(self._client.create_acls([self._binding(r) for r in wanted]), "granting rights")
            self._until(lambda: wanted <= self.rights(), "the new rights")

    def revoke(self, rights: Iterable[Right]) -> None:
        """Take rights away and wait until they are gone."""
        gone = set(rights)
        if gone:
            filters = [self._binding(r, self._admin.AclBindingFilter) for r in gone]
            self._results(self._client.delete_acls(filters), "revoking rights")
            self._until(lambda: not gone & self.rights(), "the revoked rights")

    def _binding(self, right: Right, kind: Any = None) -> Any:
        admin = self._admin
        return (kind or admin.AclBinding)(
            admin.ResourceType[right.resource],
            right.name,
            admin.ResourcePatternType[right.pattern],
            right.principal,
            "*",
            admin.AclOperation[right.operation],
            admin.AclPermissionType.ALLOW,
        )

    def _results(self, futures: Mapping[Any, Any], doing: str) -> list[tuple[Any, Any]]:
        try:
            return [(key, future.result(WAIT)) for key, future in futures.items()]
        except self._kafka.KafkaException as error:
            raise told(error.args[0], doing) from None

    @staticmethod
    def _until(shown: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + WAIT
        while not shown():
            if time.monotonic() > end:
                raise KafkaError(f"the cluster does not show {what} after {WAIT:.0f} s", where="kafka")
            time.sleep(0.1)


def is_open(settings: Mapping[str, str | None]) -> bool | None:
    """Whether a broker with these settings lets users in where no right says so, or checks no rights at all.

    Brokers tell their authorizer's own settings without a value: of one that is set, and not told, nobody knows.

    >>> is_open({"authorizer.class.name": "StandardAuthorizer"}), is_open({})
    (False, True)
    >>> is_open({"authorizer.class.name": "StandardAuthorizer", "allow.everyone.if.no.acl.found": None}) is None
    True
    """
    if not settings.get("authorizer.class.name"):
        return True
    allowed = settings.get("allow.everyone.if.no.acl.found", "false")
    return None if allowed is None else allowed != "false"


def _is_old_probe(user: str, now: float) -> bool:
    """Whether a user was made for a trial that must be over.

    >>> [_is_old_probe("shoal-probe-1000-ab", now) for now in (1030, 2000)], _is_old_probe("ann", 2000)
    ([False, True], False)
    """
    made = user.removeprefix(PROBE).partition("-")[0]
    return user.startswith(PROBE) and made.isdecimal() and int(made) + 4 * WAIT < now
