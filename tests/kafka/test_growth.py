"""A source that gets more partitions: the worker goes on and says so, an apply makes room, nothing is lost."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions
from stage import GUARD, KEYS
from test_interrupted_apply import POLICY, numbers, patients
from test_service import Background

from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.provision.status import status

pytestmark = pytest.mark.system


def test_records_of_new_partitions_wait_for_an_apply_and_nobody_stops(stage):
    here = stage(POLICY, 1)
    here.send(patients(30))
    for future in here.admin.create_partitions([NewPartitions(here.topic, 3)]).values():
        future.result(30)
    here.partitions = 3
    here.until(lambda: len(here.admin.list_topics(here.topic, timeout=30).topics[here.topic].partitions) == 3)
    here.send([(value, None, 1 + at % 2) for at, (value, _) in enumerate(patients(20, 30))])
    service = Background(here)
    try:
        here.until(lambda: here.committed() == 30)
        assert any("2 partitions more than were applied: 20 records wait" in text for text in service.said)
        assert numbers(here, f"{here.topic}.ward") == list(range(30))
        here.apply(keys=KEYS)
        here.until(lambda: bool(service.failed) or here.committed() == 50)
    finally:
        service.stop()
    assert not service.failed
    for view in ("ward", "office"):
        assert numbers(here, f"{here.topic}.{view}") == list(range(50))


def test_copies_and_partitions_that_no_apply_can_change_are_said(stage):
    here = stage(POLICY, 1)
    assert not [note for note in Provisioner(load(here.file)).plan().notes if "are said" in note]
    ward = f"{here.topic}.ward"
    for future in here.admin.create_partitions([NewPartitions(ward, 3)]).values():
        future.result(30)
    here.until(lambda: len(here.admin.list_topics(ward, timeout=30).topics[ward].partitions) == 3)
    here.write_policy(POLICY.replace("{show: [number]}", "{show: [number], service: {replication: 2}}"))
    found = status(Provisioner(load(here.file)))
    assert f"{ward} has 3 partitions, 1 are said: none is taken away" in str(found)
    assert f"{here.topic}.office has 1 copies, 2 are said" in str(found)


def test_what_a_transaction_of_the_source_leaves_in_its_log_is_not_unread(stage):
    """Each of them ends with a mark that takes an offset, and that no worker ever gets to read."""
    here = stage(POLICY, 1)
    writer = Producer({**here.cluster.login(), "transactional.id": f"{here.topic}-writer", "log_level": 0})
    writer.init_transactions(30)
    for number in range(3):
        writer.begin_transaction()
        for value, key in patients(5, 5 * number):
            writer.produce(here.topic, value, key)
        writer.commit_transaction(30)
    worker, lags = here.worker(), []
    end = time.monotonic() + GUARD

    def stop() -> bool:
        lags.append(dict(worker.counters.lag))
        return (lags[-1] == {0: 0} and here.committed() == 18) or time.monotonic() > end

    assert worker.run(stop).written["ward"] == 15
    assert lags[-1] == {0: 0}
    assert status(Provisioner(load(here.file))).unread == {0: 0}
    assert numbers(here, f"{here.topic}.ward") == list(range(15))
