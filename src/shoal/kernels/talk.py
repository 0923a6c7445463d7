"""A word before the first wait: kernels are compiled once per machine, and that takes a while."""

from __future__ import annotations

import sys
from functools import cache


@cache
def compiling() -> None:
    """Say it once per process, where somebody looks; with a full cache nothing is compiled, and nothing is said."""
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        sys.stderr.write("compiling for this machine, once: the first run of a method takes up to half a minute\n")
        sys.stderr.flush()
