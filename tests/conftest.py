"""What all tests share: where the real data is, and that nothing is random by accident."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    max_examples=60,  # the same ones in every run: more of them would find nothing new; `make fuzz` draws others
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("fuzz", settings.get_profile("house"), derandomize=False, max_examples=100, print_blob=True)
settings.load_profile("fuzz" if os.environ.get("SHOAL_FUZZ") else "house")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the repository; tests that want it skip cleanly without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the shared data is not beside the repository")
    return SHARED


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests stay on one worker, and those that need a broker share two: each worker starts its own broker,
    and a test that waits for one leaves its core to the others. They come first, because they take longest."""
    items.sort(key=lambda item: "kafka" not in item.path.parts)  # stable: the order of collection otherwise
    files = list(dict.fromkeys(item.path for item in items))
    for item in items:
        number = files.index(item.path)
        group = f"kafka-{number % 2}" if "kafka" in item.path.parts else f"{number}"
        item.add_marker(pytest.mark.xdist_group(group))
