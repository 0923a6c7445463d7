"""Doubts about events before the first of them is released: times in another unit, out of order, ahead of today;
subjects and values that cannot be what they are said to be. Counts and shares, never a value."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.time import LENGTH, PER_SECOND, SECOND, Unit, words

SINCE = int(datetime.datetime(1990, 1, 1, tzinfo=datetime.UTC).timestamp())  # events of our days are younger
YEAR = 366 * 86_400
ENOUGH = 100  # events below which a share says nothing
MOST_LATE = 0.1  # share of events that come too late, above which that is worth a word


class Doubt(NamedTuple):
    """What looks wrong, what to do, and whether nothing should be released until somebody has looked.

    >>> str(Doubt("every event has a subject of its own", "is it the number of the event?"))
    'every event has a subject of its own (is it the number of the event?)'
    """

    words: str
    hint: str
    grave: bool = False

    def __str__(self) -> str:
        return f"{self.words} ({self.hint})"


def unit_doubt(times: pl.Series, unit: Unit, now: float) -> Doubt | None:
    """Numbers that are times of our days in another unit, and of no day we know in this one.

    Numbers that count from another moment than 1970 are times of our days in no unit: nobody is asked about them.

    >>> unit_doubt(pl.Series([1577836800]), "ms", now=1.7e9).grave
    True
    >>> unit_doubt(pl.Series([17, 18]), "ms", now=1.7e9)
    """
    if times.dtype.is_temporal():
        return None
    # the median: a single absurd time must not decide
    middle = times.cast(pl.Float64, strict=False).drop_nulls().median()
    if not isinstance(middle, float):
        return None

    def is_recent(other: str) -> bool:
        return SINCE <= middle / PER_SECOND[other] <= now + YEAR

    other = next((u for u in PER_SECOND if is_recent(u)), None)
    if other is None or other == unit or is_recent(unit):
        return None
    return Doubt(
        f"times in {unit} would lie {'before 1990' if middle / PER_SECOND[unit] < SINCE else 'in the far future'}, "
        f"in {other} they lie in our days",
        f"is the unit {other}?",
        grave=True,
    )


def time_doubts(times: NDArray[np.int64], late: int, window: int | None, now: float) -> list[Doubt]:
    """Order, gaps and the future of usable times, in microseconds.

    >>> time_doubts(np.array([0, 10, 20]) * 1_000_000, late=0, window=None, now=1e9)
    []
    """
    known = times[times >= 0]
    out: list[Doubt] = []
    if len(known) < 2:
        return out
    behind = np.maximum.accumulate(known) - known
    share = float((behind > late).mean())
    if len(known) >= ENOUGH and share > MOST_LATE:
        told = f"{share:.0%} of the first {len(known):,} events come later than {words(late)} after a younger one"
        out.append(Doubt(told, "sort the events, or allow more lateness"))
    gap = int(np.diff(np.sort(known)).max())
    # a night without events is nothing to doubt
    if window is not None and len(known) >= ENOUGH and gap > max(100 * window, LENGTH["d"]):
        out.append(Doubt(f"no event for {words(gap // SECOND * SECOND)}", "is a part of the data missing?"))
    ahead = int((known > (now + 86_400) * SECOND).sum())
    if ahead and np.median(known) > SINCE * SECOND:
        out.append(Doubt(f"{ahead:,} of the first {len(known):,} events lie in the future", "whose clock is wrong?"))
    return out


def who_doubts(subjects: pl.Series | None, values: dict[str, pl.Series]) -> list[Doubt]:
    """Subjects and values that are the same, or different, in every event.

    >>> [d.words for d in who_doubts(pl.Series([f"p{n}" for n in range(ENOUGH)]), {})]
    ['every event has a subject of its own']
    """
    out: list[Doubt] = []
    if subjects is not None and len(subjects) >= ENOUGH:
        people = subjects.drop_nulls().n_unique()
        if people == len(subjects):
            out.append(Doubt("every event has a subject of its own", "is the subject column the number of the event?"))
        elif people == 1:
            out.append(Doubt("all events have the same subject", "is the subject column another?"))
    for name, column in values.items():
        if len(column) < ENOUGH:
            continue
        different = column.drop_nulls().n_unique()
        if different == len(column):
            out.append(Doubt(f"every event has a value of its own in {name!r}", "nothing is shared: use a hierarchy"))
        if column.null_count() > len(column) / 2:
            out.append(Doubt(f"more than half of the events have no value in {name!r}", "is the column another?"))
    return out
