"""The service around a worker: orders, losses, and what a new start cannot mend. On a real broker."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from functools import partial

import msgspec
import polars as pl
import pytest
from confluent_kafka import Producer
from stage import KEYS, WARD

from shoal.connect.kafka import KafkaError, topics_of
from shoal.policy.load import load
from shoal.runtime.kafka.provision import control
from shoal.runtime.kafka.provision.control import Control, send, wait_for_rest
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.serve import transactions, worker
from shoal.runtime.kafka.serve.service import Service
from shoal.runtime.kafka.serve.worker import Worker
from shoal.verifier import verify

pytestmark = pytest.mark.system

SHARED = """
dataset: patients
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  number: {role: plain, type: int}
  pid: {role: subject, type: int}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  diag: {role: sensitive, type: str}
views:
  ward: {show: [number, diag]}
  research:
    show: [number, age, diag]
    promises: [{use: k-anonymity, k: 5}, {use: l-diversity, l: 2, column: diag}]
    method: {use: batches, delay: 100}
"""


def patients(count: int, start: int = 0):
    for number in range(start, start + count):
        yield msgspec.json.encode({"number": number, "name": f"P{number}", "diag": "E10"}), None


class Background:
    """A service in a thread of its own."""

    def __init__(self, stage) -> None:
        self.said: list[str] = []
        self.failed: list[Exception] = []
        self.workers: list[Worker] = []
        self._asked = threading.Event()
        self._service = Service(stage.file, self._make, say=self.said.append)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _make(self, policy) -> Worker:
        self.workers.append(Worker(policy, KEYS, commit_every=0.2, say=self.said.append))
        return self.workers[-1]

    def _run(self) -> None:
        try:
            self._service.run(self._asked.is_set)
        except Exception as error:
            self.failed.append(error)

    @property
    def read(self) -> int:
        return sum(w.counters.read for w in self.workers)

    def join(self, seconds: float = 60) -> None:
        self._thread.join(seconds)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        self._asked.set()
        self.join()


def test_pause_resume_and_reload(stage):
    here = stage(WARD)
    login = here.cluster.login()
    here.send(patients(100))
    service = Background(here)
    try:
        here.until(lambda: service.read == 100)
        send(login, here.topic, "pause")
        wait_for_rest(login, f"shoal-{here.topic}")
        here.send(patients(50, 100))
        time.sleep(2)
        assert service.read == 100
        assert here.committed() == 100
        # whoever starts now obeys, too
        assert Control(login, here.topic).order.paused
        send(login, here.topic, "resume")
        here.until(lambda: service.read == 150)
        starts = len(service.workers)
        send(login, here.topic, "reload")
        here.until(lambda: len(service.workers) == starts + 1)
        here.send(patients(10, 150))
        here.until(lambda: service.read == 160)
    finally:
        service.stop()
    numbers = [msgspec.json.decode(m.value())["number"] for m in here.drain(f"{here.topic}.ward")]
    assert sorted(numbers) == list(range(160))
    assert not service.failed


def test_a_worker_that_was_fenced_starts_again_and_repeats_nothing(stage):
    here = stage(WARD)
    here.send(patients(200))
    service = Background(here)
    try:
        here.until(lambda: here.committed() == 200)
        service.workers[-1]._lost = True  # as if the group had thrown it out
        here.until(lambda: len(service.workers) >= 2)
        here.send(patients(100, 200))
        here.until(lambda: here.committed() == 300)
    finally:
        service.stop()
    assert any("a new start" in text for text in service.said)
    numbers = [msgspec.json.decode(m.value())["number"] for m in here.drain(f"{here.topic}.ward")]
    assert sorted(numbers) == list(range(300))


def test_a_wrong_password_and_a_missing_topic_end_it_with_a_clear_word(stage):
    here = stage(WARD)
    wrong = here.folder / "admin.properties"
    right = wrong.read_text()
    wrong.write_text(right.replace("admin-secret", "no"))
    service = Background(here)
    service.join(90)
    wrong.write_text(right)
    assert "wrong user or password" in str(service.failed[0])
    Provisioner(load(here.file)).cluster.delete_topics([f"{here.topic}.ward"])
    service = Background(here)
    service.join(90)
    assert "is not there" in str(service.failed[0])
    assert "serve apply" in str(service.failed[0])
    here.apply()


def test_the_source_deleted_while_running_ends_it(stage, monkeypatch):
    monkeypatch.setattr(worker, "SILENT", 1.0)
    here = stage(WARD)
    here.send(patients(100))
    service = Background(here)
    here.until(lambda: service.read == 100)
    for future in here.admin.delete_topics([here.topic]).values():
        future.result(30)
    service.join(60)
    assert isinstance(service.failed[0], KafkaError)
    assert here.topic in str(service.failed[0]) or "does the topic exist?" in str(service.failed[0])


def test_poison_and_giants_become_pointers_and_the_rest_goes_on(stage):
    here = stage(WARD)
    giant = msgspec.json.encode({"number": 1, "name": "x" * 950_000, "diag": "E10"})
    here.send([(b"\xff\x00", None, 0), (b"[1]", None, 0), (giant, None, 1), (b'{"number": 1', None, 1)])
    here.send(patients(50))
    counters = here.serve()
    assert counters.dead == 4
    letters = [msgspec.json.decode(m.value()) for m in here.drain(f"{here.topic}.shoal.dead")]
    assert sorted((x["partition"], x["offset"]) for x in letters) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len(here.drain(f"{here.topic}.ward")) == 50


def test_no_broker_at_the_start_is_told_and_tried_again(stage, monkeypatch):
    """The broker comes later; the service waits for it."""
    for room in (control, transactions):
        monkeypatch.setattr(room, "topics_of", partial(topics_of, timeout=1.0))
    here = stage(WARD)
    file = here.folder / "admin.properties"
    right = file.read_text()
    file.write_text(right.replace(here.cluster.bootstrap, "127.0.0.1:9"))
    here.send(patients(10))
    service = Background(here)
    try:
        here.until(lambda: any("is the broker running" in text for text in service.said))
        file.write_text(right)
        here.until(lambda: service.read == 10)
    finally:
        file.write_text(right)
        service.stop()


def test_orders_from_the_command_line(stage):
    here = stage(WARD)
    for word in ("pause", "resume", "reload"):
        done = subprocess.run(
            [sys.executable, "-m", "shoal", "serve", word, str(here.file)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert Control(here.cluster.login(), here.topic).order.reloads == 3


def test_clocks_that_jump_stop_nothing(stage):
    """Records of the year 2200 and of 1970 by their sender's clock: the views have them, dated today."""
    here = stage(
        WARD, 1, **{"message.timestamp.after.max.ms": str(2**62), "message.timestamp.before.max.ms": str(2**62)}
    )
    writer = Producer(here.cluster.login())
    moments = [7_258_118_400_000, 1, int(time.time() * 1000)]
    for number, moment in enumerate(moments * 20):
        writer.produce(here.topic, msgspec.json.encode({"number": number, "diag": "E10"}), timestamp=moment)
    writer.flush(20)
    here.serve()
    ward = here.drain(f"{here.topic}.ward")
    assert sorted(msgspec.json.decode(m.value())["number"] for m in ward) == list(range(60))
    assert all(m.timestamp()[1] <= time.time() * 1000 for m in ward)


@pytest.mark.parametrize("workers", [2, 4])
def test_several_workers_share_the_partitions_and_keep_the_promise_together(stage, workers):
    here = stage(SHARED, 4)
    people = 400
    sent = [
        (msgspec.json.encode({"number": n, "pid": n * 7919 % people, "age": n * 7919 % 97, "diag": f"E{n % 5}"}), None)
        for n in range(8000)
    ]
    here.send([(v, k, n * 7919 % people % 4) for n, (v, k) in enumerate(sent)])
    team = [Background(here) for _ in range(workers)]
    try:
        here.until(lambda: here.committed() == 8000)
    finally:
        for one in team:
            one.stop()
    assert not any(one.failed for one in team)
    assert sorted(msgspec.json.decode(m.value())["number"] for m in here.drain(f"{here.topic}.ward")) == list(
        range(8000)
    )
    rows = [msgspec.json.decode(m.value()) for m in here.drain(f"{here.topic}.research")]
    frame = pl.DataFrame(rows)
    policy = load(here.file)
    whose = pl.Series([n * 7919 % people for n in frame["number"]])
    verdict = verify(frame, policy.schema.quasi, policy.views["research"].promises, people=whose)
    assert verdict.kept, str(verdict)
    assert frame["number"].n_unique() == frame.height > 7000
