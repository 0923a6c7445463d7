"""Topics, users and rights on a real broker: each role reads its own view and nothing else."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from shoal.connect.kafka import KafkaError
from shoal.core.errors import PolicyError, PromiseError, UsageError
from shoal.policy.load import parse
from shoal.runtime.kafka.provision.cluster import Cluster
from shoal.runtime.kafka.provision.provision import Provisioner

pytestmark = pytest.mark.system
NUMBER = itertools.count()

POLICY = """
dataset: patients
source: {{use: kafka, topic: {topic}, properties: {properties}}}
columns:
  pid: {{role: subject}}
  age: {{role: quasi, type: int}}
  diag: {{role: sensitive}}
views:
  nurse:
    users: [{nurse}]
    show: [age, diag]
  research:
    users: [{research}]
    show: [{show}]
    service: {{retention: 7d}}
"""


@pytest.fixture
def setting(cluster, tmp_path: Path, monkeypatch):
    """A fresh source topic, and a way to write policies about it."""
    number = next(NUMBER)
    topic = f"patients{number}"
    admin = AdminClient(cluster.login())
    for future in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        future.result(30)
    Cluster._until(lambda: topic in admin.list_topics(timeout=30).topics, "the source")  # a busy broker shows it later
    file = tmp_path / "admin.properties"
    file.write_text("".join(f"{k}={v}\n" for k, v in cluster.login().items()))
    nurse, research = f"ward{number}", f"lab{number}"
    monkeypatch.setenv(f"SHOAL_PASSWORD_WARD{number}", "ward-secret")
    monkeypatch.setenv(f"SHOAL_PASSWORD_LAB{number}", "lab-secret")

    def provisioner(show: str = "diag", **changes: str) -> Provisioner:
        names = {"topic": topic, "properties": str(file), "nurse": nurse, "research": research, "show": show, **changes}
        return Provisioner(parse(POLICY.format(**names), str(tmp_path / "policy.yaml")))

    yield topic, nurse, research, provisioner
    provisioner().destroy()


def refusal(work) -> str:
    """The name of the error that ``work`` meets."""
    with pytest.raises(KafkaException) as caught:
        work()
    return caught.value.args[0].name()


def read(login: dict[str, str], topic: str, group: str) -> list[bytes]:
    """What a user gets out of a topic, or the error."""
    reader = Consumer(
        {**login, "group.id": group, "auto.offset.reset": "earliest", "enable.partition.eof": True, "log_level": 0}
    )
    out: list[bytes] = []
    try:
        reader.subscribe([topic])
        for _ in range(40):
            message = reader.poll(0.5)
            if message is None:
                continue
            if message.error():
                if message.error().name() == "_PARTITION_EOF":
                    return out
                raise KafkaException(message.error())
            out.append(message.value())
        return out
    finally:
        reader.close()


def test_each_role_reads_its_own_view_and_nothing_else(cluster, setting):
    topic, nurse, _, provisioner = setting
    service = provisioner()
    service.apply(service.plan())
    writer = Producer(cluster.login())
    writer.produce(topic, b"secret", partition=0)
    writer.produce(f"{topic}.nurse", b"masked", partition=0)
    writer.produce(f"{topic}.nurse", b"masked", partition=1)
    writer.flush(20)
    login = cluster.login(nurse, "ward-secret")
    assert b"masked" in read(login, f"{topic}.nurse", "nurse.one")
    assert refusal(lambda: read(login, topic, "nurse.two")) == "TOPIC_AUTHORIZATION_FAILED"
    assert refusal(lambda: read(login, f"{topic}.research", "nurse.three")) == "TOPIC_AUTHORIZATION_FAILED"
    assert refusal(lambda: read(login, f"{topic}.shoal.changelog", "nurse.four")) == "TOPIC_AUTHORIZATION_FAILED"
    assert refusal(lambda: read(login, f"{topic}.nurse", "research.one")) == "GROUP_AUTHORIZATION_FAILED"
    failed = []
    intruder = Producer({**login, "log_level": 0})
    intruder.produce(f"{topic}.nurse", b"forged", on_delivery=lambda error, _: failed.append(error))
    intruder.flush(20)
    assert failed[0].name() == "TOPIC_AUTHORIZATION_FAILED"
    wish = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{nurse}",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    asking = AdminClient(login)
    assert (
        refusal(lambda: [f.result(20) for f in asking.create_acls([wish]).values()]) == "CLUSTER_AUTHORIZATION_FAILED"
    )


def test_apply_is_idempotent_and_plan_changes_nothing(setting):
    _, _, _, provisioner = setting
    service = provisioner()
    first = service.plan()
    assert [str(c) for c in service.plan().changes] == [str(c) for c in first.changes]
    service.apply(first)
    assert provisioner().plan().changes == ()
    retention = service.cluster.configs([first.wanted.views["research"]])
    assert retention[first.wanted.views["research"]]["retention.ms"] == str(7 * 86_400_000)


def test_widening_needs_a_word(setting):
    _, _, _, provisioner = setting
    service = provisioner("diag")
    service.apply(service.plan())
    wider = provisioner("diag, age")
    with pytest.raises(PromiseError, match="see more than before"):
        wider.apply(wider.plan())
    wider.apply(wider.plan(), allow_wider=True)
    assert provisioner("diag, age").plan().wider == ()
    other = Provisioner(msgspec.structs.replace(provisioner("diag, age").policy, dataset="another"))
    with pytest.raises(PolicyError, match="another dataset"):  # it would delete these views as its own former ones
        other.plan()


def test_a_removed_user_is_out_at_once(cluster, setting, monkeypatch):
    topic, nurse, _, provisioner = setting
    service = provisioner()
    service.apply(service.plan())
    other = f"{nurse}x"
    monkeypatch.setenv(f"SHOAL_PASSWORD_{other.upper()}", "other-secret")
    changed = provisioner(nurse=other)
    changed.apply(changed.plan(), allow_wider=True)
    with pytest.raises(KafkaException):
        AdminClient({**cluster.login(nurse, "ward-secret"), "log_level": 0}).list_topics(timeout=5)
    assert not {r for r in changed.cluster.rights() if r.principal == f"User:{nurse}"}
    changed.destroy()
    assert not changed.cluster.partitions([f"{topic}.nurse"])
    assert changed.cluster.partitions([topic])


def test_a_role_with_a_path_to_the_source_is_refused(cluster, setting):
    topic, nurse, _, provisioner = setting
    admin = AdminClient(cluster.login())
    path = AclBinding(
        ResourceType.TOPIC,
        topic[:5],
        ResourcePatternType.PREFIXED,
        f"User:{nurse}",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([path]).values():
        future.result(20)
    service = provisioner()
    service.cluster._until(lambda: any(r.principal == f"User:{nurse}" for r in service.cluster.rights()), "the right")
    with pytest.raises(PromiseError, match="has a path to"):
        service.apply(service.plan())
    assert not service.cluster.partitions([f"{topic}.nurse"])


def test_everyone_who_may_change_the_cluster_is_a_path(cluster, setting):
    topic, _, _, provisioner = setting
    admin = AdminClient(cluster.login())
    cluster_right = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "User:*", "*")
    right = AclBinding(*cluster_right, AclOperation.ALTER, AclPermissionType.ALLOW)
    admin.create_acls([right])[right].result(20)
    try:
        service = provisioner()
        service.cluster._until(lambda: any(r.principal == "User:*" for r in service.cluster.rights()), "the right")
        with pytest.raises(PromiseError, match="has a path to kafka-cluster"):
            service.apply(service.plan())
        assert not service.cluster.partitions([f"{topic}.nurse"])
    finally:
        wanted = AclBindingFilter(*cluster_right, AclOperation.ALTER, AclPermissionType.ALLOW)
        admin.delete_acls([wanted])[wanted].result(20)
        service.cluster._until(lambda: all(r.principal != "User:*" for r in service.cluster.rights()), "it")


def test_a_user_of_two_policies_keeps_what_the_other_gave(cluster, setting, tmp_path):
    topic, nurse, research, provisioner = setting
    first = provisioner()
    first.apply(first.plan())
    admin, other = AdminClient(cluster.login()), f"{topic}x"
    admin.create_topics([NewTopic(other, 1, 1)])[other].result(30)
    names = {
        "topic": other,
        "properties": str(tmp_path / "admin.properties"),
        "research": f"{research}x",
        "show": "diag",
    }
    text = POLICY.format(nurse=nurse, **names).replace("  nurse:", "  ward:").replace(f"    users: [{research}x]\n", "")
    second = Provisioner(parse(text, str(tmp_path / "other.yaml")))
    second.cluster._until(lambda: bool(second.cluster.partitions([other])), "the topic")
    second.apply(second.plan())
    assert provisioner().plan().changes == ()
    second.destroy()
    assert provisioner().plan().changes == ()
    assert not {r for r in first.cluster.rights() if r.name in (f"{other}.ward", "ward.")}


def test_a_topic_of_someone_else_is_no_view(cluster, setting):
    """A view called like another policy's source would let its users read that source."""
    topic, _, _, provisioner = setting
    admin = AdminClient(cluster.login())
    admin.create_topics([NewTopic(f"{topic}.nurse", 1, 1)])[f"{topic}.nurse"].result(30)
    service = provisioner()
    service.cluster._until(lambda: bool(service.cluster.partitions([f"{topic}.nurse"])), "the topic")
    assert service.plan().refusals == ()  # an empty one may be what an apply left that did not end
    writer = Producer(cluster.login())
    writer.produce(f"{topic}.nurse", b"secret")
    writer.flush(20)
    with pytest.raises(PromiseError, match="no applied view"):
        service.apply(service.plan())
    assert not {r for r in service.cluster.rights() if r.name == f"{topic}.nurse"}


def test_a_source_that_is_not_there_is_planned_and_made_only_by_an_apply_that_may(cluster, setting):
    topic, _, _, provisioner = setting
    made = f"{topic}.made, partitions: 2"
    service = provisioner(topic=made)
    plan = service.plan()
    assert f"+ topic {topic}.made (the source, 2 partitions)" in str(plan)
    assert not service.cluster.partitions([f"{topic}.made"])
    with pytest.raises(PromiseError, match="nothing was changed"):
        service.apply(dataclasses.replace(plan, refusals=("somebody else reads it",)))
    assert not service.cluster.partitions([f"{topic}.made"])
    service.apply(plan)
    assert service.cluster.partitions([f"{topic}.made"]) == {f"{topic}.made": 2}
    assert provisioner(topic=made).plan().changes == ()
    service.destroy()


def test_wrong_credentials_missing_topic_and_password_are_told(cluster, setting, tmp_path, monkeypatch):
    _, _, _, provisioner = setting
    with pytest.raises(PolicyError, match="does not exist"):
        provisioner(topic="nowhere").plan()
    monkeypatch.delenv(next(k for k in __import__("os").environ if k.startswith("SHOAL_PASSWORD_LAB")))
    with pytest.raises(UsageError, match="no password"):
        provisioner().plan()
    wrong = tmp_path / "wrong.properties"
    wrong.write_text("".join(f"{k}={v}\n" for k, v in cluster.login(password="no").items()))
    with pytest.raises(KafkaError, match="_AUTHENTICATION") as caught:
        provisioner(properties=str(wrong)).plan()
    assert "wrong user or password" in str(caught.value)
