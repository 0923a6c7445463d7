"""A real full disk under the broker: it stops, comes back with room, and no acknowledged record is lost or repeated."""

from __future__ import annotations

import os
import subprocess
from collections import Counter

import msgspec
import pytest
from confluent_kafka import Producer
from stage import WARD, Stage
from test_service import Background

from scripts.kafka.broker import Cluster

LONG = os.environ.get("SHOAL_LONG") == "1"
pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.skipif(not LONG, reason="two minutes; SHOAL_LONG=1 runs it"),
]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 48 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


def fill(cluster, topic: str) -> list[int]:
    """Send until the broker takes no more; answers what it acknowledged."""
    taken: list[int] = []
    refused: list[str] = []
    writer = Producer({**cluster.login(), "message.timeout.ms": 15_000, "linger.ms": 20, "log_level": 0})
    for number in range(20_000):
        value = msgspec.json.encode({"number": number, "name": os.urandom(2000).hex(), "diag": "E10"})

        def heard(error, _, number=number) -> None:
            (taken if error is None else refused).append(number)

        while True:
            try:
                writer.produce(topic, value, on_delivery=heard)
                break
            except BufferError:
                writer.poll(0.2)
        if number % 50 == 0:
            writer.poll(0)
        if refused:
            break
    writer.flush(20)
    assert refused, "the disk did not fill"
    return taken


def test_a_full_disk_loses_nothing_that_was_acknowledged(cluster, small_disk, tmp_path):
    """``cluster`` says whether brokers can run here; this one is the test's own."""
    broker = Cluster(small_disk / "kafka").start()
    service = None
    try:
        here = Stage(broker, tmp_path, WARD, 1)
        service = Background(here)
        here.until(lambda: bool(service.workers))
        taken = fill(broker, here.topic)
        assert taken
        here.until(lambda: bool(service.failed) or any("a new start" in text for text in service.said))
        assert not service.failed, service.failed
        broker.kill(1)
        subprocess.run(["mount", "-o", "remount,size=400m", str(small_disk)], check=True)
        broker.launch(1)
        broker._wait(1)
        here.until(lambda: here.committed() >= len(taken))
        assert not service.failed
        service.stop()
        seen = Counter(msgspec.json.decode(m.value())["number"] for m in here.drain(f"{here.topic}.ward"))
        assert set(taken) <= set(seen)
        assert set(seen.values()) == {1}
        assert not any("Traceback" in text for text in service.said)
    finally:
        if service is not None:
            service._asked.set()
        broker.stop()
        if service is not None:
            service.join()
