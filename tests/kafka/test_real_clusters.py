"""What clusters of others ask for: stronger logins, changed passwords, users made elsewhere, a worker without power."""

from __future__ import annotations

import json
import os
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from stage import KEYS, Stage

from scripts.kafka.broker import MECHANISMS, Cluster
from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.provision.status import status
from shoal.runtime.provision.passwords import variable_of

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
    reader = Consumer({**login, "group.id": "ward.own", "log_level": 0})
    try:
        return reader.list_topics(topic, timeout=5).topics[topic].error is None
    except KafkaException:
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


@pytest.mark.skipif(os.environ.get("SHOAL_LONG") != "1", reason="two more brokers: SHOAL_LONG=1")
@pytest.mark.parametrize("everyone", [True, False])
def test_a_broker_that_hides_whether_everyone_may_read_is_tried(tmp_path, everyone):
    broker = Cluster(tmp_path / "kafka", settings={"allow.everyone.if.no.acl.found": str(everyone).lower()}).start()
    try:
        (tmp_path / "strong.properties").write_text("".join(f"{k}={v}\n" for k, v in broker.login().items()))
        text = POLICY.replace("users: [WARD], ", "").replace(", worker: WORKER", "")
        if everyone:
            with pytest.raises(Exception, match="lets everyone in"):
                Stage(broker, tmp_path, text, 1)
            return
        here = Stage(broker, tmp_path, text, 1)
        assert status(Provisioner(load(here.file))).well
        admin = AdminClient(broker.login())
        described = admin.describe_user_scram_credentials().result(30)
        assert not [user for user in described if "probe" in user]
        here.close()
    finally:
        broker.stop()
