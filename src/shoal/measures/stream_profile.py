"""The profile of a stream: who shows how much, which values are common by level, when (Bacconi 2021, chapter 3)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.time import minute_of_week

Ints = NDArray[np.int64]
HOUR = 3_600_000_000


class Bin(msgspec.Struct, frozen=True):
    """So many people (or values) with ``low`` to ``high`` events each."""

    low: int
    high: int
    count: int


class Spread(msgspec.Struct, frozen=True):
    """How events are spread over people, or over the values of a level: bins double in width.

    >>> spread(np.array([1, 1, 4])).mean
    2.0
    """

    count: int
    mean: float
    median: float
    most: int
    bins: Sequence[Bin]


class LevelProfile(msgspec.Struct, frozen=True):
    """The values of one level, 0 the most specific; ``lone`` of them were shown by one person only."""

    level: int
    samples: Spread
    lone: int
    lone_events: float  # share of the events on values of one person


class StreamProfile(msgspec.Struct, frozen=True):
    """What is to be known of a stream before choosing z, the window and the hierarchy.

    ``unusable`` events have no time, person or value. ``week`` are events per hour of the week (Monday 00:00 first),
    on average of the weeks seen, NaN for hours never seen. ``exposed`` is p_a^X of every most specific value, common
    ones first: the share of people who show it in one window, as ``shoal plan --exposed`` takes it.

    >>> times, who = np.array([0, 1]), np.array([5, 6])
    >>> profile(times, who, np.array([[7], [7]]), HOUR).levels[0].lone
    0
    """

    events: int
    unusable: int
    people: Spread
    levels: Sequence[LevelProfile]
    hours: float
    week: Sequence[float]
    window: float
    exposed: Sequence[float]


def profile(times: Ints, people: Ints, chains: Ints, window: int, zone: int = 0) -> StreamProfile:
    """The profile of events: microseconds, fingerprints of people, and of values at every level. O(n log n).

    >>> times, who = np.array([0, 1]), np.array([5, 6])
    >>> profile(times, who, np.array([[7], [8]]), HOUR).people.count
    2
    """
    # 0 is the print of nothing
    good = (times >= 0) & (people != 0) & (chains[:, 0] != 0)
    unusable = int((~good).sum())
    times, people, chains = times[good], people[good], chains[good]
    _, who, each = np.unique(people, return_inverse=True, return_counts=True)
    levels = [_level(at, chains[:, at], who) for at in range(chains.shape[1]) if (chains[:, at] != 0).any()]
    hours = float(times.max() - times.min()) / HOUR if len(times) else 0.0
    return StreamProfile(
        len(times),
        unusable,
        spread(each),
        levels,
        hours,
        _week(times, zone).tolist(),
        window / 1e6,
        exposed(times, who, chains[:, 0], window).tolist(),
    )


def spread(counts: NDArray[np.int64]) -> Spread:
    """How many have how much, in bins 1, 2-3, 4-7, …

    >>> import numpy as np
    >>> [(b.low, b.high, b.count) for b in spread(np.array([1, 1, 3, 9])).bins]
    [(1, 1, 2), (2, 3, 1), (4, 7, 0), (8, 15, 1)]
    """
    if not len(counts):
        return Spread(0, 0.0, 0.0, 0, [])
    heights = np.bincount(np.frexp(counts.astype(float))[1] - 1)
    bins = [Bin(2**at, 2 ** (at + 1) - 1, int(count)) for at, count in enumerate(heights)]
    return Spread(len(counts), float(counts.mean()), float(np.median(counts)), int(counts.max()), bins)


def _level(at: int, nodes: Ints, who: Ints) -> LevelProfile:
    """The most general level a value has stands in for the levels above it."""
    use = nodes != 0
    _, value, each = np.unique(nodes[use], return_inverse=True, return_counts=True)
    people = int(who.max()) + 1
    # each pair of value and person once
    shown_by = np.bincount(np.unique(value * people + who[use]) // people, minlength=len(each))
    alone = shown_by == 1
    return LevelProfile(at, spread(each), int(alone.sum()), float(each[alone].sum() / max(1, each.sum())))


def exposed(times: Ints, who: Ints, nodes: Ints, window: int) -> NDArray[np.float64]:
    """p_a^X by value, most common first: distinct people per window over all people, on average of the windows."""
    if not len(times):
        return np.zeros(0)
    number = (times - times.min()) // window
    _, value = np.unique(nodes, return_inverse=True)
    often = (int(number.max()) + 1) * (int(who.max()) + 1)
    shown = np.bincount(np.unique(value * often + number * (int(who.max()) + 1) + who) // often) / often
    return np.sort(shown)[::-1]


def _week(times: Ints, zone: int) -> NDArray[np.float64]:
    """Events per hour of the week, divided by how often that hour lies between the first and the last event."""
    if not len(times):
        return np.full(168, np.nan)
    events = np.bincount(minute_of_week(times, zone) // 60, minlength=168)
    # hours between the first and the last event count, with events or without
    seen = np.arange(times.min() // HOUR, times.max() // HOUR + 1) * HOUR
    often = np.bincount(minute_of_week(seen, zone) // 60, minlength=168)
    return np.where(often > 0, events / np.maximum(often, 1), np.nan)
