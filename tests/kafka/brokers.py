"""The script that starts real brokers, as a module: for the fixture and for tests that need brokers of their own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def broker_module() -> ModuleType:
    """``scripts/kafka/broker.py``."""
    spec = importlib.util.spec_from_file_location("shoal_broker", ROOT / "scripts" / "kafka" / "broker.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["shoal_broker"] = module
    spec.loader.exec_module(module)
    return module
