"""Benchmarks: every figure beside its peer, as a ratio. ``make bench`` runs them all."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

SHARED = Path(__file__).resolve().parents[2] / "shared"
T = TypeVar("T")


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print one table of results."""
    out = Table(title=title, title_justify="left", show_edge=False)
    for at, name in enumerate(header):
        out.add_column(name, justify="left" if at == 0 else "right", overflow="fold")
    for row in rows:
        out.add_row(*[f"{c:.4g}" if isinstance(c, float) else str(c) for c in row])
    Console(file=sys.stdout, width=140).print(out)
    print(flush=True)


def cpu(work: Callable[[], T], repeat: int = 1) -> tuple[float, T]:
    """The least CPU seconds of ``repeat`` runs, and the last result."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result
