"""What clusters of others ask for: stronger logins, changed passwords, users made elsewhere, a worker without power."""

from __future__ import annotations

import json
import time

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from stage import GUARD, KEYS, Stage

from scripts.kafka.broker import MECHANISMS, Cluster
from scripts.kafka.identities import Authority, principal
from shoal.connect.kafka import KafkaError, topics_of
from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.provision.status import status
from shoal.runtime.kafka.serve.worker import Worker
from shoal.runtime.provision.passwords import variable_of
from tests.cli.in_process import call

pytestmark = pytest.mark.system

POLICY = """
dataset: patients
source: {use: kafka, topic: {topic}, properties: strong.properties, worker: WORKER}
columns:
  number: {role: plain, type: int}
  name: {role: identifier, type: str}
views:
  ward: {users: [WARD], show: [number]}
"""


def may(login: dict[str, str], topic: str) -> bool:
    """Whether a user gets in and sees a topic; a changed login may take the broker a moment."""
    failed: list[object] = []
    reader = Consumer({**login, "group.id": "ward.own", "log_level": 0, "error_cb": failed.append})
    try:
        return topic in topics_of(reader, failed, "asking for topics", timeout=5)
    except KafkaError:
        return False
    finally:
        reader.close()


def refused(login: dict[str, str], topic: str) -> bool:
    """Whether a user may not write to a topic."""
    told: list[object] = []
    writer = Producer({**login, "log_level": 0})
    writer.produce(topic, b"{}", on_delivery=lambda error, _: told.append(error))
    writer.flush(60)
    return told[0] is not None


def test_logins_passwords_and_a_worker_without_power(cluster, tmp_path, monkeypatch):
    mark = time.time_ns()
    ward, worker = f"ward{mark}", f"svc{mark}"
    for user in (ward, worker):
        monkeypatch.setenv(variable_of(user), "first-secret")
    strong = cluster.login(mechanism=MECHANISMS[1])
    (tmp_path / "strong.properties").write_text("".join(f"{k}={v}\n" for k, v in strong.items()))
    here = Stage(cluster, tmp_path, POLICY.replace("WARD", ward).replace("WORKER", worker), 1)
    view, audit = f"{here.topic}.ward", f"{here.topic}.shoal.audit"
    try:
        # users of roles log in as their administrator does
        here.until(lambda: may(cluster.login(ward, "first-secret", MECHANISMS[1]), view))
        assert not may(cluster.login(ward, "first-secret", MECHANISMS[0]), view)
        # a worker fills the views, and gives no orders and writes no history
        own = cluster.login(worker, "first-secret", MECHANISMS[1])
        here.until(lambda: not refused(own, view))
        assert refused(own, audit)
        assert refused(own, f"{here.topic}.shoal.control")
        # a password is changed when it is asked for, and the former one is no good
        monkeypatch.setenv(variable_of(ward), "second-secret")
        assert not Provisioner(load(here.file)).plan().changes
        again = Provisioner(load(here.file), passwords=True)
        plan = again.plan()
        assert {(c.action, c.name) for c in plan.changes} == {("change", ward), ("change", worker)}
        again.apply(plan, keys=KEYS)
        here.until(lambda: may(cluster.login(ward, "second-secret", MECHANISMS[1]), view))
        here.until(lambda: not may(cluster.login(ward, "first-secret", MECHANISMS[1]), view))
        # where users are certificates or tokens, rights are given to their names and nobody is made
        certified = f"CN=lab{mark},O=Hospital"
        here.write_policy(here.file.read_text().replace(ward, f'"{certified}"'))
        outside = Provisioner(load(here.file), only="rights")
        outside.apply(outside.plan(), allow_wider=True, keys=KEYS)
        rights = {(r.principal, r.operation) for r in outside.cluster.rights() if r.name == view}
        assert (f"User:{certified}", "READ") in rights
        assert (f"User:{ward}", "READ") not in rights
        assert not outside.cluster.users([certified])
        here.write_policy(here.file.read_text().replace(f'"{certified}"', ward))
        here.apply(allow_wider=True, keys=KEYS)
        # what is taken away leaves its history, and what is made afterwards begins anew
        Provisioner(load(here.file)).destroy()
        left = [t for t in AdminClient(cluster.login()).list_topics(timeout=30).topics if t.startswith(here.topic)]
        assert sorted(left) == [here.topic, audit]
        assert json.loads(here.drain(audit)[-1].value())["destroyed"] is True
        assert not Provisioner(load(here.file)).cluster.users([ward, worker])
        here.apply(keys=KEYS)
        assert status(Provisioner(load(here.file))).well
    finally:
        here.close()


def read_by(login: dict[str, str], topic: str, count: int) -> list[int]:
    """So many records of a topic, as one of its readers gets them."""
    reader = Consumer({**login, "group.id": "ward.own", "auto.offset.reset": "earliest", "log_level": 0})
    reader.subscribe([topic])
    found: list[int] = []
    end = time.monotonic() + GUARD
    while len(found) < count and time.monotonic() < end:
        found += [json.loads(m.value())["number"] for m in reader.consume(count, 0.5) if m.error() is None]
    reader.close()
    return found


def certificates(cluster, name: str) -> tuple[str, dict[str, str]]:
    return principal(name), cluster.certified(name)


def tokens(cluster, name: str) -> tuple[str, dict[str, str]]:
    return name, cluster.tokened(name)


@pytest.mark.parametrize("door", [certificates, tokens])
def test_whoever_has_a_certificate_or_a_token_administers_works_and_reads(cluster, tmp_path, door):
    """From the first apply to a read view nobody has a password: the broker asks for a certificate, or for a token."""
    (ward, ward_login), (worker, worker_login) = door(cluster, f"ward{time.time_ns()}"), door(cluster, "svc")
    _, stranger = door(cluster, "stranger")
    for name, login in (("strong", door(cluster, "admin")[1]), ("worker", worker_login), ("ward", ward_login)):
        (tmp_path / f"{name}.properties").write_text("".join(f"{k}={v}\n" for k, v in login.items()))
    text = POLICY.replace("WARD", f'"{ward}"').replace("WORKER", f'"{worker}"')
    here = Stage(cluster, tmp_path, text, 1, only="rights")
    try:
        assert status(Provisioner(load(here.file))).well  # users are none of its business: none is missed
        here.send([(json.dumps({"number": n, "name": f"P{n}"}), None) for n in range(50)])
        own = tmp_path / "worker.yaml"
        own.write_text(here.file.read_text().replace("strong.properties", "worker.properties"))
        counters = Worker(load(own), KEYS, commit_every=0.2).run(lambda: here.committed() >= 50)
        assert counters.written == {"ward": 50}
        view = f"{here.topic}.ward"
        assert sorted(read_by(ward_login, view, 50)) == list(range(50))
        seen = call(
            ["consume", here.file.name, "--role", "ward", "--properties", "ward.properties", "--limit", "50"], tmp_path
        )
        assert seen.returncode == 0, seen.stderr
        # what a right does not name stays closed: to the reader, to the worker, and to anybody else of the house
        assert not may(ward_login, here.topic)
        assert not may(stranger, view)
        assert refused(worker_login, f"{here.topic}.shoal.audit")
        assert refused(ward_login, view)
    finally:
        here.close()


def test_a_certificate_of_another_authority_and_a_wrong_secret_open_nothing(cluster, tmp_path):
    foreign = Authority(tmp_path / "foreign").certify("admin")
    forged = {
        **cluster.certified("admin"),
        "ssl.certificate.location": str(foreign / "admin.pem"),
        "ssl.key.location": str(foreign / "admin.key"),
    }
    guessed = {**cluster.tokened("admin"), "sasl.oauthbearer.client.secret": "guessed"}
    for login, good in ((forged, cluster.certified("admin")), (guessed, cluster.tokened("admin"))):
        assert AdminClient(good).list_topics(timeout=30).topics is not None
        failed: list[object] = []
        with pytest.raises(KafkaError):
            topics_of(AdminClient({**login, "log_level": 0, "error_cb": failed.append}), failed, "asking", timeout=2)


@pytest.mark.parametrize("everyone", [True, False])
def test_a_broker_that_hides_whether_everyone_may_read_is_tried(tmp_path, everyone):
    broker = Cluster(tmp_path / "kafka", settings={"allow.everyone.if.no.acl.found": str(everyone).lower()}).start()
    try:
        (tmp_path / "strong.properties").write_text("".join(f"{k}={v}\n" for k, v in broker.login().items()))
        text = POLICY.replace("users: [WARD], ", "").replace(", worker: WORKER", "")
        admin = AdminClient(broker.login())
        # a producer's right closes the source to all others; what the service makes beside it stays open
        of_a_producer = ("stage", ResourcePatternType.PREFIXED, "User:sender", "*", AclOperation.WRITE)
        binding = AclBinding(ResourceType.TOPIC, *of_a_producer, AclPermissionType.ALLOW)
        # and a trial that was killed left its user
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        left = UserScramCredentialUpsertion("shoal-probe-1000-ab", info, b"left")
        for future in (*admin.create_acls([binding]).values(), *admin.alter_user_scram_credentials([left]).values()):
            future.result(30)
        if everyone:
            with pytest.raises(Exception, match="lets everyone in"):
                Stage(broker, tmp_path, text, 1)
            return
        here = Stage(broker, tmp_path, text, 1)
        assert status(Provisioner(load(here.file))).well
        described = admin.describe_user_scram_credentials().result(30)
        assert not [user for user in described if "probe" in user]
        here.close()
    finally:
        broker.stop()
