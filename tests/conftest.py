"""What all tests share: where the real data is, and that nothing is random by accident."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler.loadscope import LoadScopeScheduling

settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    max_examples=60,  # the same ones in every run: more of them would find nothing new; `make fuzz` draws others
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("fuzz", settings.get_profile("house"), derandomize=False, max_examples=100, print_blob=True)
settings.load_profile("fuzz" if os.environ.get("SHOAL_FUZZ") else "house")

UNTIL = float(os.environ.get("SHOAL_FUZZ_UNTIL", "inf"))  # seconds since 1970, as scripts/fuzz.py says


def pytest_runtest_setup() -> None:
    """A fuzz run ends between two laws when its time is up."""
    if time.time() > UNTIL:
        pytest.skip("time is up")


SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the repository; tests that want it skip cleanly without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the shared data is not beside the repository")
    return SHARED


class ByFile(LoadScopeScheduling):
    """A file's tests stay on one worker, and those that need a broker share two: each worker starts its own broker, and
    a test that waits for one leaves its core to the others."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if "/kafka/" not in file:
            return file
        return "kafka, a to p" if file.rpartition("/")[2] < "test_q" else "kafka, q to z"  # about the same time each


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """In place of the choices of `--dist`: none of them knows which tests wait."""
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a broker come first, because they take longest. A fuzz run begins with other laws every time."""
    if os.environ.get("SHOAL_FUZZ_SEED"):
        random.Random(int(os.environ["SHOAL_FUZZ_SEED"])).shuffle(items)
    items.sort(key=lambda item: item.path.parent.name != "kafka")  # stable: the order of collection otherwise
