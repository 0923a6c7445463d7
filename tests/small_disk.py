"""A small file system, and filling it: how a full disk behaves is asked of a disk that is full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of this size in a new folder; a skip where none can be mounted, unless it is required."""
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
        if os.environ.get("SHOAL_REQUIRE_SYSTEM") == "1":
            pytest.fail("a small file system cannot be mounted here")
        pytest.skip("a small file system can be mounted by root only")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, left: int = 4096) -> None:
    """Take all room on this disk except for a few bytes, in the file ``ballast``."""
    found = os.statvfs(place)
    with (place / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize - left)
