"""A policy that changes: a new version of the view, filled from the log, then the switch. And where a view begins."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time

import msgspec
import pytest
from confluent_kafka import Consumer, KafkaException
from stage import KEYS
from test_provision import read
from test_service import Background

from scripts.kafka.broker import ROOT
from shoal.core.errors import PolicyError
from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.provision.served import pattern_of
from shoal.runtime.kafka.provision.status import status
from shoal.runtime.kafka.serve.worker import Worker

pytestmark = pytest.mark.system

POLICY = """
dataset: patients
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  number: {role: plain, type: int}
  pid: {role: subject, type: int}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  diag: {role: sensitive, type: str}
views:
  ward:
    show: [number, diag]
  research:
    users: [USER]
    show: [number, age, diag]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: batches, delay: 50}
"""


def patients(first: int, last: int):
    for number in range(first, last):
        record = {"number": number, "pid": number % 97, "age": number % 97, "diag": f"E{number % 5}"}
        yield msgspec.json.encode(record), None, number % 2


def numbers(stage, topic: str) -> list[int]:
    return sorted(msgspec.json.decode(m.value())["number"] for m in stage.drain(topic))


def following(login: dict[str, str], pattern: str, group: str) -> Consumer:
    """A reader that stays subscribed to every version of a view."""
    own = {"group.id": group, "auto.offset.reset": "earliest", "topic.metadata.refresh.interval.ms": 500}
    reader = Consumer({**login, **own, "log_level": 0})
    reader.subscribe([pattern])
    return reader


def taken(reader: Consumer, topic: str, seen: list[bytes]) -> list[bytes]:
    """All that a reader was given of a topic so far."""
    seen += [m.value() for m in reader.consume(5000, 0.5) if m.error() is None and m.topic() == topic]
    return seen


def test_a_changed_view_is_a_new_version_filled_from_the_log(stage, monkeypatch):
    user = f"lab{time.time_ns()}"
    monkeypatch.setenv(f"SHOAL_PASSWORD_{user.upper()}", "lab-secret")
    text = POLICY.replace("USER", user)
    here = stage(text)
    here.send(patients(0, 1000))
    service = Background(here)
    try:
        here.until(lambda: here.committed() == 1000)
        login = here.cluster.login(user, "lab-secret")
        assert read(login, f"{here.topic}.research", "research.a")
        follower = following(login, pattern_of(f"{here.topic}.research"), "research.stays")
        here.until(lambda: bool(follower.consume(5000, 0.5)))
        here.write_policy(text.replace("k: 3", "k: 6"))
        with pytest.raises(PolicyError, match="not what was applied last"):
            Worker(load(here.file), KEYS).run()  # nobody serves what was not applied
        here.apply(allow_wider=True, keys=KEYS)
        here.send(patients(1000, 1500))
        here.until(lambda: here.committed() == 1500)
    finally:
        service.stop()
    assert not service.failed
    assert f"{here.topic}.research" not in here.admin.list_topics(timeout=10).topics
    rows = [msgspec.json.decode(m.value()) for m in here.drain(f"{here.topic}.research.v2")]
    # a reader that subscribed once is told of the new version by the cluster itself, and gets all of it
    seen: list[bytes] = []
    here.until(lambda: len(taken(follower, f"{here.topic}.research.v2", seen)) == len(rows))
    follower.close()
    status_now = status(Provisioner(load(here.file)))
    assert status_now.patterns["research"] == pattern_of(f"{here.topic}.research")
    assert status_now.patterns["research"] in str(status_now)
    assert len({r["number"] for r in rows}) == len(rows) > 1300
    assert min(r["number"] for r in rows) < 100  # from the beginning of the log
    assert max(r["number"] for r in rows) > 1300
    assert read(login, f"{here.topic}.research.v2", "research.b")
    with pytest.raises(KafkaException):
        read(login, f"{here.topic}.research", "research.c")
    assert numbers(here, f"{here.topic}.ward") == list(range(1500))  # the other view never noticed
    assert Provisioner(load(here.file)).plan().changes == ()


def test_a_view_begins_where_its_policy_says(stage):
    text = POLICY.replace("    users: [USER]\n", "")
    here = stage(text)
    here.send(patients(0, 200))
    here.serve()
    time.sleep(0.05)
    moment = time.time()
    time.sleep(0.05)
    here.send(patients(200, 300))
    more = """  late:
    show: [number]
    service: {start: latest}
  timed:
    show: [number]
    service: {start: "MOMENT"}
  whole:
    show: [number]
"""
    stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(moment))}.{int(moment % 1 * 1000):03d}"
    here.write_policy(text + more.replace("MOMENT", stamp))
    here.apply(allow_wider=True, keys=KEYS)
    here.send(patients(300, 400))
    here.serve()
    assert numbers(here, f"{here.topic}.ward") == list(range(400))
    assert numbers(here, f"{here.topic}.whole") == list(range(400))
    assert numbers(here, f"{here.topic}.timed") == list(range(200, 400))
    assert numbers(here, f"{here.topic}.late") == list(range(300, 400))


def test_the_worker_needs_no_more_than_its_own_rights(stage, monkeypatch):
    user = f"svc{time.time_ns()}"
    monkeypatch.setenv(f"SHOAL_PASSWORD_{user.upper()}", "svc-secret")
    text = POLICY.replace("    users: [USER]\n", "").replace("admin.properties}", f"admin.properties, worker: {user}}}")
    here = stage(text)
    here.send(patients(0, 500))
    own = here.folder / "worker.properties"
    own.write_text("".join(f"{k}={v}\n" for k, v in here.cluster.login(user, "svc-secret").items()))
    here.file.write_text(here.file.read_text().replace("admin.properties", "worker.properties"))
    here.serve()
    assert numbers(here, f"{here.topic}.ward") == list(range(500))
    here.file.write_text(here.file.read_text().replace("worker.properties", "admin.properties"))


@pytest.mark.slow
def test_the_printed_commands_make_the_same_users_and_rights(stage, monkeypatch):
    """Kafka's own tools take them as they are, and `apply` then finds nothing left to do."""
    user = f"lab{time.time_ns()}"
    monkeypatch.setenv(f"SHOAL_PASSWORD_{user.upper()}", "lab-secret")
    here = stage(POLICY.replace("    users: [USER]\n", ""))
    here.write_policy(POLICY.replace("USER", user))
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "serve", "plan", "--commands", str(here.file)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [shlex.split(line) for line in done.stdout.splitlines()]
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" password="admin-secret";'
    login = here.folder / "java.properties"
    login.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={jaas}\n")
    tools = {"kafka-configs.sh": "kafka.admin.ConfigCommand", "kafka-acls.sh": "org.apache.kafka.tools.AclCommand"}
    for tool, *words in lines:
        mine = [w.replace("…", "lab-secret").replace("admin.properties", str(login)) for w in words]
        jars = f"{ROOT}/.cache/kafka/lib/*"
        subprocess.run(["java", "-cp", jars, tools[tool], *mine], check=True, capture_output=True)
    assert len(lines) == 4  # one user, three rights
    assert [str(c) for c in Provisioner(load(here.file)).plan().changes] == []
    assert read(here.cluster.login(user, "lab-secret"), f"{here.topic}.research", "research.own") == []
