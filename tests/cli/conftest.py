"""The command line as a person runs it: a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shoal(tmp_path: Path) -> Run:
    """``shoal("verify", "x.csv")`` in an empty folder."""

    def run(*words: str, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "shoal", *words],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environment},
        )

    return run
