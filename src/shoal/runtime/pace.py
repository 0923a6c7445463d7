"""Rows at a rate: slices of frames, each given out when its time has come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import polars as pl

from shoal.core.errors import UsageError

BEAT = 0.02  # seconds between two slices
LARGEST = 10_000


def paced(
    frames: Iterable[pl.DataFrame],
    *,
    rate: float | None = None,
    rows: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[pl.DataFrame]:
    """Slices of ``frames``: ``rate`` rows a second, ``rows`` in all; without them as fast as they are taken, all.

    Whoever falls behind catches up: the rate is that since the start, not that of the last slice.

    >>> frames = [pl.DataFrame({"n": range(100)})]
    >>> [part.height for part in paced(frames, rows=70)]
    [70]
    """
    if rate is not None and not rate > 0:
        raise UsageError(f"expected a rate above 0, found {rate}", where="rate")
    if rows is not None and rows < 0:
        raise UsageError(f"expected no fewer than 0 rows, found {rows}", where="rows")
    start, sent = clock(), 0
    size = LARGEST if rate is None else max(1, min(LARGEST, int(rate * BEAT)))
    for frame in frames:
        for part in frame.iter_slices(size):
            if rows is not None and sent >= rows:
                return
            if rate is not None and (ahead := start + sent / rate - clock()) > 0:
                sleep(ahead)
            taken = part if rows is None else part.head(rows - sent)
            yield taken
            sent += taken.height
        if rows is not None and sent >= rows:
            return
