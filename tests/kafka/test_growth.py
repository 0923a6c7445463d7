"""A source that gets more partitions: the worker goes on and says so, an apply makes room, nothing is lost."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import NewPartitions
from stage import KEYS
from test_interrupted_apply import POLICY, numbers, patients
from test_service import Background

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
