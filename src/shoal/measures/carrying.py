"""What a stream can carry: how many people stand together in a cell within a window, level by level."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
SHARE = 0.9  # of the events must have their company


class LevelCarries(msgspec.Struct, frozen=True):
    """One level: the most people that :data:`SHARE` of the events stand with, and the share that stands with enough.

    >>> LevelCarries(level=0, people=3, share=0.95).people
    3
    """

    level: int
    people: int
    share: float


def windows_of(times: Ints, events: int, micros: int) -> Ints:
    """The number of each event's window: of so many ``events`` (0: any), no longer than ``micros`` (0: any).

    >>> windows_of(np.array([0, 1, 2, 9]), 2, 5).tolist(), windows_of(np.array([0, 1, 2, 9]), 0, 5).tolist()
    ([0, 0, 1, 2], [0, 0, 0, 1])
    """
    out = np.zeros(len(times), np.int64)
    # late events belong to the window that is open when they come
    latest = np.maximum.accumulate(times) if len(times) else times
    start = number = 0
    while start < len(times):
        stop = len(times) if not events else min(len(times), start + events)
        if micros:
            # at least one event, or a window that ends where it begins would never move on
            stop = max(start + 1, min(stop, int(np.searchsorted(latest, latest[start] + micros))))
        out[start:stop] = number
        start, number = stop, number + 1
    return out


def company(windows: Ints, people: Ints, cells: Ints) -> Ints:
    """Per event, how many different people show its cell in its window. O(n log n).

    >>> company(np.zeros(4, np.int64), np.array([1, 2, 2, 3]), np.array([7, 7, 7, 8])).tolist()
    [2, 2, 2, 1]
    """
    if not len(windows):
        return np.zeros(0, np.int64)
    _, place = np.unique(np.column_stack([windows, cells]), axis=0, return_inverse=True)
    pairs = np.unique(np.column_stack([place.reshape(-1), people]), axis=0)
    counts: Ints = np.bincount(pairs[:, 0], minlength=int(place.max()) + 1)
    return counts[place.reshape(-1)]


def carried(windows: Ints, people: Ints, levels: Sequence[Ints], wanted: int) -> list[LevelCarries]:
    """What every level carries, the most specific first; ``levels`` has the cell of each event.

    >>> who, cells = np.array([1, 2, 3]), [np.array([7, 7, 8]), np.array([9, 9, 9])]
    >>> [(one.people, round(one.share, 2)) for one in carried(np.zeros(3, np.int64), who, cells, 2)]
    [(1, 0.67), (3, 1.0)]
    """
    out = []
    for level, cells in enumerate(levels):
        beside = np.sort(company(windows, people, cells))
        # 100 * (1 - 0.9) is a little below 10 in floats: a tenth of 100 events are ten
        least = int(beside[int(len(beside) * (1 - SHARE) + 1e-9)]) if len(beside) else 0
        out.append(LevelCarries(level, least, float((beside >= wanted).mean()) if len(beside) else 0.0))
    return out
