"""A real broker, once per session; every test gets topics of its own."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.kafka import broker

THREADS = 16  # of a worker of the tests without any client, and some more
sys.path.insert(0, str(Path(__file__).parent))  # `stage`, what these tests share


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """One broker with SCRAM and deny by default; certificates and tokens are logins, too."""
    why = broker.available()
    if why is not None:
        if os.environ.get("SHOAL_REQUIRE_SYSTEM") == "1":
            pytest.fail(f"Kafka is required here: {why}")
        pytest.skip(why)
    running = broker.Cluster(tmp_path_factory.mktemp("kafka"), doors=True)
    try:
        yield running.start()
    finally:
        hang_up()
        running.stop()


def hang_up() -> None:
    """End the clients of tests that are over. What `pytest.raises` saw holds its test's frame, and that its clients,
    until somebody collects them: in a worker of this suite hundreds of threads asked for brokers that were gone, and
    their complaints stood in the standard error of other tests."""
    gc.collect()


@pytest.fixture(autouse=True)
def _no_clients_left() -> Iterator[None]:
    from stage import threads

    yield
    if threads() > THREADS:
        hang_up()


@pytest.fixture
def stage(cluster: object, tmp_path: Path) -> Iterator[Callable[..., object]]:
    """Makes stages: a policy over a fresh source topic each, gone afterwards."""
    from stage import Stage

    made: list[Stage] = []

    def make(policy: str, partitions: int = 2, **configs: str) -> Stage:
        made.append(Stage(cluster, tmp_path, policy, partitions, **configs))
        return made[-1]

    yield make
    for one in made:
        one.close()
