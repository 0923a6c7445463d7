"""What the Kafka benchmark works on: a real broker, topics, policies and records."""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from scripts.kafka.broker import Cluster
from shoal.core.keys import KeyRing
from shoal.datasets.hospital import hospital
from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.tools.send import lines

SECRET = "ab" * 32
KEYS = KeyRing({"default": {1: bytes.fromhex(SECRET)}})

COLUMNS = """
dataset: patients
source: {use: kafka, topic: TOPIC, properties: admin.properties}
columns:
  pid: {role: subject, type: int}
  name: {role: identifier, type: str}
  zip: {role: quasi, type: str}
  sex: {role: quasi, type: str, hierarchy: suppress}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  ins_co: {role: quasi, type: str}
  ins_no: {role: identifier, type: str}
  diag: {role: sensitive, type: str}
  gluc: {role: plain, type: float}
  hba1c: {role: plain, type: float}
  med: {role: plain, type: str}
  sent: {role: plain, type: int}
views:
"""
VIEW = """
  ROLE:
    show: everything
    masks:
      name: suppress
      zip: {use: blur, first: 2}
      age: {use: bucket, width: 10}
      ins_no: suppress
      med: {use: substitute, value: "yes"}
"""
OWN = """
  ward:
    show: everything
    masks:
      name: suppress
      zip: {use: blur, first: 2}
      age: {use: bucket, width: 10}
      ins_no: suppress
      med: {use: substitute, value: "yes"}
  lab:
    show: [zip, sex, age, diag, gluc, hba1c, med]
    masks:
      zip: {use: blur, first: 3}
      age: {use: bucket, width: 5}
      gluc: {use: round, to: 10}
      hba1c: {use: round, to: 1}
      med: {use: blur, first: 2}
  office:
    show: [name, zip, ins_co, ins_no, sent]
    masks:
      name: {use: blur, first: 1}
      zip: {use: blur, first: 1}
      ins_co: suppress
      ins_no: {use: blur, last: 4}
      sent: {use: bucket, width: 1000}
"""
RESEARCH = """
  research:
    show: [age, sex, diag]
    promises: [{use: k-anonymity, k: 5}]
    method: {use: batches, delay: 500}
"""
WINDOWS = """
  lab:
    show: [age, sex, diag, gluc, hba1c]
    masks:
      gluc: {use: aggregate, function: mean, k: 5, window: {use: tumbling, size: 100}}
      hba1c: {use: aggregate, function: mean, k: 5, window: {use: tumbling, size: 100}}
"""
DIVERSE = """
  research:
    show: [age, sex, diag]
    promises: [{use: k-anonymity, k: 5}, {use: l-diversity, l: 2, column: diag}]
    method: {use: batches, delay: 500}
"""
VISITS = """
dataset: visits
source: {use: kafka, topic: TOPIC, properties: admin.properties}
columns:
  time: {role: time, unit: s}
  subject: {role: subject, type: str}
  value: {role: quasi, type: str, hierarchy: path}
views:
  market:
    show: [time, subject, value]
    masks: {subject: pseudonym}
    promises: [{use: z-anonymity, z: 20, window: 1h}]
    method: z-anonymity
"""


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """CPU and wall seconds of something."""
    wall, used = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - used, time.perf_counter() - wall


class Bench:
    """A broker, a folder, and fresh topics."""

    def __init__(self, cluster: Any, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.login = cluster.login()
        self.admin = AdminClient({**self.login, "log_level": 0})  # it outlives the broker, and would say so
        (folder / "admin.properties").write_text("".join(f"{k}={v}\n" for k, v in self.login.items()))

    def topic(self, partitions: int = 1) -> str:
        name = f"bench{uuid.uuid4().hex[:8]}"
        for future in self.admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(30)
        return name

    def fill(self, topic: str, records: list[bytes], partitions: int = 1) -> None:
        writer = Producer({**self.login, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
        for at, record in enumerate(records):
            writer.produce(topic, record, partition=at % partitions)
            if at % 10_000 == 0:
                writer.poll(0)
        assert writer.flush(120) == 0

    def policy(self, text: str, topic: str) -> Path:
        file = self.folder / f"{topic}.yaml"
        file.write_text(text.replace("TOPIC", topic))
        service = Provisioner(load(file))
        service.apply(service.plan())
        return file


def patients(count: int) -> list[bytes]:
    frame = hospital(count, seed=1)
    return [line[:-1] + b',"sent":0}' for line in lines(frame)]


@contextmanager
def running_bench() -> Iterator[Bench]:
    folder = Path(tempfile.mkdtemp(prefix="shoal-bench-"))
    cluster = Cluster(folder / "broker").start()
    try:
        yield Bench(cluster, folder)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
