"""What all tests share: where the real data is, and that nothing is random by accident."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("fuzz", settings.get_profile("house"), derandomize=False, print_blob=True)
settings.load_profile("fuzz" if os.environ.get("SHOAL_FUZZ") else "house")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the repository; tests that want it skip cleanly without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the shared data is not beside the repository")
    return SHARED
