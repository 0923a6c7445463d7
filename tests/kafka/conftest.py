"""A real broker, once per session; every test gets topics of its own."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `stage`, what these tests share
ROOT = Path(__file__).resolve().parents[2]


def _broker_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shoal_broker", ROOT / "scripts" / "kafka" / "broker.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["shoal_broker"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """One broker with SCRAM and deny by default."""
    broker = _broker_module()
    why = broker.available()
    if why is not None:
        if os.environ.get("SHOAL_REQUIRE_SYSTEM") == "1":
            pytest.fail(f"Kafka is required here: {why}")
        pytest.skip(why)
    running = broker.Cluster(tmp_path_factory.mktemp("kafka"))
    try:
        yield running.start()
    finally:
        running.stop()


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
