"""A worker that dies is followed without delay: its name, its transactions and its partitions are known."""

from __future__ import annotations

import threading
import uuid

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from shoal.connect.kafka import KafkaError
from shoal.runtime.kafka.provision.status import members
from shoal.runtime.kafka.serve import restore
from shoal.runtime.kafka.serve.membership import Membership, transactional_id
from shoal.runtime.kafka.state.changelog import Reader

pytestmark = pytest.mark.system

POLICY = """
dataset: visits
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  pid: {role: subject, type: int}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  diag: {role: plain, type: str}
views:
  ward: {show: [age, diag]}
  research:
    show: [age, diag]
    promises: [{use: k-anonymity, k: 2}]
    method: {use: batches, delay: 10}
"""


def records(first: int, count: int, partitions: int):
    people = [{"pid": n, "age": n % 90, "diag": str(n)} for n in range(first, first + count)]
    return [(msgspec.json.encode(p), None, p["pid"] % partitions) for p in people]


def published(here, role: str = "ward") -> list[int]:
    return sorted(int(msgspec.json.decode(m.value())["diag"]) for m in here.drain(f"{here.topic}.{role}"))


class KilledError(Exception):
    pass


def killed_after(here, count: int, **how) -> None:
    """A worker that commits so many records and is gone without a last word."""
    worker = here.worker(**how)

    def stop() -> bool:
        if here.committed() >= count:
            raise KilledError
        return False

    with pytest.raises(KilledError):
        worker.run(stop)


def test_a_worker_that_takes_over_ends_what_a_dead_one_left_open(stage):
    here, said = stage(POLICY, 1), []
    here.send(records(0, 40, 1))
    name = uuid.uuid4().hex
    here.serve(membership=Membership(name=name))
    # the same worker, killed in the middle of a commit; its transaction stays open for a quarter of an hour
    ours = {"transactional.id": transactional_id(here.topic, name), "transaction.timeout.ms": 900_000}
    writer = Producer({**here.cluster.login(), **ours, "log_level": 0})
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(f"{here.topic}.ward", b"{}", partition=0)
    reader = Consumer({**here.cluster.login(), "group.id": f"shoal-{here.topic}", "log_level": 0})
    writer.send_offsets_to_transaction([TopicPartition(here.topic, 0, 40)], reader.consumer_group_metadata(), 30)
    reader.close()
    here.send(records(40, 40, 1))
    here.serve(say=said.append)
    assert "ending the open transactions of 1 former owners" in said
    assert published(here) == list(range(80))


def test_of_two_workers_of_one_name_the_older_stops_for_good(stage):
    here, failed = stage(POLICY, 2), []
    older, newer = (here.worker(membership=Membership(name="twin")) for _ in range(2))

    def run() -> None:
        try:
            older.run(lambda: False)
        except KafkaError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    here.until(lambda: not older.counters.restoring)
    newer.run(lambda: bool(failed))
    thread.join()
    assert failed[0].name == "taken"
    assert "'twin'" in failed[0].message


def test_all_partitions_are_restored_together(stage, monkeypatch):
    partitions, made = 12, []

    class Counted(Reader):
        def __init__(self, properties, topic):
            made.append(topic)
            super().__init__(properties, topic)

    here = stage(POLICY, partitions)
    here.send(records(0, 600, partitions))
    killed_after(here, 600)
    here.send(records(600, 60, partitions))
    killed_after(here, 660)  # its snapshots are older than what it published
    monkeypatch.setattr(restore, "Reader", Counted)
    here.send(records(660, 60, partitions))
    counters = here.serve()
    assert counters.replayed > 0
    assert len(made) <= 3, "a reader per partition"  # warming up, where the log begins, the records
    assert published(here) == list(range(720))


def test_a_named_worker_gets_its_own_partitions_back(stage):
    here = stage(POLICY, 4)
    named = [("--name", name, "--session", "120") for name in "ab"]  # however slow this machine is
    here.start(*named[0])
    here.start(*named[1])
    who = lambda: {m.name: m.partitions for m in members(here.cluster.login(), f"shoal-{here.topic}")}  # noqa: E731
    here.until(lambda: len(who()) == 2 and all(len(mine) == 2 for mine in who().values()))
    before = who()
    here.processes[0].kill()
    here.processes[0].wait()
    here.start(*named[0])
    here.send(records(0, 100, 4))
    here.until(lambda: here.committed() == 100)
    assert who() == before
    assert published(here) == list(range(100))
