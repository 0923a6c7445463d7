"""Offsets that mean something else than they did, and other keys: nothing lost, nothing twice, or a loud stop."""

from __future__ import annotations

import msgspec
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from stage import KEYS

from shoal.connect.kafka import UnboundError, internal
from shoal.core.errors import InputError, PromiseError, UsageError
from shoal.core.keys import KeyRing
from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.provision.status import status
from shoal.runtime.kafka.serve.service import HOPELESS
from shoal.runtime.kafka.serve.worker import Worker
from shoal.runtime.kafka.state import changelog as log_of_state
from shoal.runtime.kafka.tools.replay import Replay

pytestmark = pytest.mark.system

POLICY = """
dataset: patients
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  number: {role: plain, type: int}
  name: {role: identifier, type: str}
views:
  ward: {show: [number]}
"""
OTHER = KeyRing({"default": {1: bytes(32)}})


def patients(count: int, start: int = 0):
    return [(msgspec.json.encode({"number": n, "name": f"P{n}"}), None, 0) for n in range(start, start + count)]


def numbers(here, topic: str) -> list[int]:
    return sorted(msgspec.json.decode(m.value())["number"] for m in here.drain(topic))


def test_a_source_deleted_and_made_again_stops_the_worker_and_apply_begins_anew(stage):
    here = stage(POLICY, 1)
    here.send(patients(30))
    here.serve()
    here.delete(here.topic)
    here.make(here.topic)
    here.send(patients(30, 100))
    with pytest.raises(UnboundError, match="deleted and made again"):
        here.worker().run()
    here.apply(keys=KEYS)
    here.serve()
    assert numbers(here, f"{here.topic}.ward.v2") == list(range(100, 130))


def test_offsets_that_are_gone_or_moved_publish_nothing_twice(stage):
    here = stage(POLICY, 1)
    here.send(patients(40))
    here.serve()
    Provisioner(load(here.file)).cluster.delete_group(f"shoal-{here.topic}", idle=True)
    here.send(patients(10, 40))
    said: list[str] = []
    here.serve(say=said.append)
    assert any("offset is gone" in text for text in said)
    assert numbers(here, f"{here.topic}.ward") == list(range(50))
    moved = ConsumerGroupTopicPartitions(f"shoal-{here.topic}", [TopicPartition(here.topic, 0, 5)])
    for future in here.admin.alter_consumer_group_offsets([moved]).values():
        future.result(30)
    with pytest.raises(UnboundError, match="someone moved it") as told:
        here.worker().run()
    assert "set it back to 50" in str(told.value)
    assert numbers(here, f"{here.topic}.ward") == list(range(50))


def test_a_changelog_that_was_deleted_stops_apply_and_the_worker(stage, monkeypatch):
    here = stage(POLICY, 1)
    here.send(patients(30))
    here.serve()
    changelog = internal(here.topic, "changelog")
    here.delete(changelog)
    service = Provisioner(load(here.file))
    with pytest.raises(PromiseError, match="changelog is gone"):
        service.apply(service.plan())
    assert not status(service).well
    # somebody makes it by hand: nothing on it says what was published
    here.make(changelog)
    monkeypatch.setattr(log_of_state, "PATIENCE", 0.5)
    with pytest.raises(UnboundError, match="deleted and made again") as told:
        here.worker().run()
    assert "serve destroy" in str(told.value)
    assert told.value.name in HOPELESS  # a new start mends nothing
    assert numbers(here, f"{here.topic}.ward") == list(range(30))
    service.destroy()
    here.apply(keys=KEYS)
    here.serve()
    assert numbers(here, f"{here.topic}.ward") == list(range(30))


def test_a_wrong_key_is_refused_at_apply_and_at_start(stage):
    here = stage(POLICY, 1)
    here.send(patients(10))
    here.apply(keys=KEYS)
    with pytest.raises(UsageError, match="made with"):
        here.apply(keys=OTHER)
    with pytest.raises(UsageError, match="made with"):
        Worker(load(here.file), OTHER).run()
    here.serve()
    # also where nobody had the keys at apply: the changelog is sealed with them
    there = stage(POLICY, 1)
    there.send(patients(10))
    there.serve()
    with pytest.raises(InputError, match="key"):
        Worker(load(there.file), OTHER).run()
    assert numbers(there, f"{there.topic}.ward") == list(range(10))


def test_an_oversized_record_is_never_queued_again(stage):
    here = stage(POLICY, 1)
    here.send([(msgspec.json.encode({"number": 1, "name": "x" * 950_000}), None, 0), *patients(5)])
    here.serve()
    for _ in range(2):
        found = Replay(load(here.file), KEYS).run()
        assert (found.pointers, found.ready, found.still) == (1, 0, 1)
    assert here.written() == 6


def test_a_view_changed_while_the_groups_offsets_are_gone_is_filled_as_far_as_views_were_published(stage):
    """The worker goes on by the changelog: whatever no apply has filled before that would be missing without a word."""
    here = stage(POLICY, 2)
    here.send([(value, None, number % 2) for number, (value, _, _) in enumerate(patients(40))])
    here.serve()
    service = Provisioner(load(here.file))
    service.cluster.delete_group(f"shoal-{here.topic}", idle=True)
    here.send([(value, None, number % 2) for number, (value, _, _) in enumerate(patients(10, 40))])
    found = status(service)
    assert found.gone == (0, 1)
    assert not found.well
    assert "offsets are gone of partitions 0, 1" in str(found)
    here.write_policy(POLICY.replace("[number]", "[number, name]"))
    with pytest.raises(UsageError, match="needs the keys"):
        here.apply(allow_wider=True)
    here.apply(allow_wider=True, keys=KEYS)
    here.serve()
    assert numbers(here, f"{here.topic}.ward.v2") == list(range(50))


def test_records_that_no_worker_reads_need_a_hand(stage):
    here = stage(POLICY, 1)
    assert status(Provisioner(load(here.file))).well
    here.send(patients(5))
    found = status(Provisioner(load(here.file)))
    assert not found.well
    assert "! nobody reads partition 0" in str(found)
    here.serve()
    assert status(Provisioner(load(here.file))).well
