"""The command line as a person runs it, in a folder of its own. Most tests call the command in this process: starting
Python and loading compiled code costs a second or two each time. What needs a process asks for `shoal_process`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.in_process import call

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shoal(tmp_path: Path) -> Run:
    """``shoal("verify", "x.csv")`` in an empty folder, in this process."""

    def run(*words: str, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        return call(list(words), tmp_path, stdin, environment)

    return run


@pytest.fixture
def shoal_process(tmp_path: Path) -> Run:
    """The same in a process of its own: what is loaded, signals, terminals, how it ends."""

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
