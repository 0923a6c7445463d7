"""The worker on a real broker: every record once per view, whatever happens to the worker."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from stage import GUARD, WARD, drain, threads

from shoal.core.keys import KeyRing
from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.serve.worker import Worker

pytestmark = pytest.mark.system
NUMBER = itertools.count()
PARTITIONS = 3

POLICY = """
dataset: patients
source: {{use: kafka, topic: {topic}, properties: admin.properties}}
columns:
  number: {{role: plain, type: int}}
  name: {{role: identifier, type: str}}
  diag: {{role: sensitive, type: str}}
views:
  ward:
    show: [number, name, diag]
    masks: {{name: {{use: blur, first: 1}}}}
  billing:
    show: [number, diag]
    service: {{key: pseudonym}}
"""


@pytest.fixture
def place(cluster, tmp_path: Path):
    """A policy over a fresh source topic, applied."""
    topic = f"work{next(NUMBER)}"
    admin = AdminClient(cluster.login())
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        future.result(30)
    (tmp_path / "admin.properties").write_text("".join(f"{k}={v}\n" for k, v in cluster.login().items()))
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.format(topic=topic))
    service = Provisioner(load(file))
    service.apply(service.plan())
    yield topic, file
    service.destroy()


def fill(cluster, topic: str, count: int) -> None:
    writer = Producer(cluster.login())
    for number in range(count):
        record = {"number": number, "name": f"Person{number}", "diag": "E10", "iban": "DE00"}
        writer.produce(topic, msgspec.json.encode(record), key=f"key{number % 50}")
        if number % 5000 == 0:
            writer.poll(0)
    assert writer.flush(60) == 0


def until_done(worker: Worker, count: int) -> None:
    end = time.monotonic() + GUARD
    worker.run(lambda: worker.counters.read >= count or time.monotonic() > end)
    assert worker.counters.read >= count


def test_a_worker_that_has_ended_leaves_no_client_behind(stage):
    """Whoever still holds it, as the traceback of what ended it does: its threads would go on asking brokers."""
    here = stage(WARD)
    here.send([(b'{"number": 1}', None)])
    here.serve()
    before, ended = threads(), []
    for stop in (lambda: True, lambda: ended[-1].counters.commits > 0):
        ended.append(here.worker())
        here.send([(b'{"number": 2}', None)])
        ended[-1].run(stop)
    assert threads() <= before


def test_every_role_gets_its_masked_records_and_nothing_that_joins_them(cluster, place):
    topic, file = place
    fill(cluster, topic, 2000)
    writer = Producer(cluster.login())
    writer.produce(topic, b"not json", key="bad", partition=0)
    writer.produce(topic, None, key="key1", partition=0)
    writer.flush(20)
    worker = Worker(load(file), KeyRing().new("default"), commit_every=0.3)
    until_done(worker, 2002)
    ward, billing = drain(cluster, f"{topic}.ward"), drain(cluster, f"{topic}.billing")
    seen = [msgspec.json.decode(m.value()) for m in ward]
    assert sorted(r["number"] for r in seen) == list(range(2000))
    assert {r["name"][0] for r in seen} == {"P"}
    assert not any("Person" in r["name"] or "iban" in r for r in seen)
    assert all(m.key() is None and not m.headers() and m.timestamp()[1] % 60_000 == 0 for m in ward)
    values = [m for m in billing if m.value() is not None]
    assert len(values) == 2000
    assert len(billing) == 2001  # the tombstone passes with its key masked
    assert not any(m.key().startswith(b"key") for m in billing)
    assert len({m.key() for m in values}) == 50
    dead = [msgspec.json.decode(m.value()) for m in drain(cluster, f"{topic}.shoal.dead")]
    assert [set(d) for d in dead] == [{"topic", "partition", "offset", "error", "views"}]
    assert dead[0]["views"] == [f"{topic}.ward", f"{topic}.billing"]
    # neither place nor order tells which records of the two views are the same
    same = {msgspec.json.decode(m.value())["number"]: (m.partition(), m.offset()) for m in ward}
    joined = sum(same[msgspec.json.decode(m.value())["number"]] == (m.partition(), m.offset()) for m in values)
    assert joined < 20


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["consumer"])  # the classic one is killed in test_chaos
def test_killed_workers_lose_nothing_and_repeat_nothing(cluster, place, protocol):
    topic, file = place
    count = 30_000
    fill(cluster, topic, count)
    secret = "ab" * 32
    words = [sys.executable, "-m", "shoal", "serve", "run", str(file), "--commit-every", "0.2", "--protocol", protocol]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, env={**os.environ, "SHOAL_KEY": secret}, stderr=subprocess.DEVNULL)

    workers = [start(), start()]
    chance = random.Random(7)
    kills = 0
    end = time.monotonic() + GUARD
    try:
        while time.monotonic() < end:
            time.sleep(chance.uniform(3, 6))
            if kills < 4:
                victim = chance.choice(workers)
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                kills += 1
            workers = [w for w in workers if w.poll() is None]
            workers += [start() for _ in range(2 - len(workers))]
            if kills >= 4 and len(drain(cluster, f"{topic}.ward")) >= count:
                break
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(GUARD)
    for view in ("ward", "billing"):
        times = Counter(msgspec.json.decode(m.value())["number"] for m in drain(cluster, f"{topic}.{view}"))
        assert set(times) == set(range(count)), f"{view}: {count - len(times)} missing after {kills} kills"
        assert set(times.values()) == {1}, f"{view}: repeated after {kills} kills"
