"""Generated data without end: one round after another, each as the generator of that name makes it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from shoal.core.errors import UsageError
from shoal.datasets.hospital import hospital
from shoal.datasets.streams import SHAPES, stream

NAMES = ("hospital", *SHAPES)
PATIENTS = 10_000  # of one round


def rounds(name: str, *, seed: int = 0, scale: float = 0.01, visits: float = 1.0) -> Iterator[pl.DataFrame]:
    """Frames without end; the same seed gives the same rows, however many of them are taken.

    ``hospital`` brings new patients in every round, who come back ``visits`` times on average inside it. The event
    streams bring the same people again in every round, days later.

    >>> frames = rounds("hospital", seed=3)
    >>> next(frames)["pid"].max(), next(frames)["pid"].min()
    (10000, 10001)
    """
    subject_of(name)  # an unknown name is an error now, not at the first row
    return _patients(seed, visits) if name == "hospital" else _events(name, seed, scale)


def subject_of(name: str) -> str:
    """The column that says whose record it is.

    >>> subject_of("hospital"), subject_of("domains")
    ('pid', 'subject')
    """
    if name not in NAMES:
        raise UsageError(f"there is no data set called {name!r}", where="datasets", hint=f"one of: {', '.join(NAMES)}")
    return "pid" if name == "hospital" else "subject"


def _patients(seed: int, visits: float) -> Iterator[pl.DataFrame]:
    number = 0
    while True:
        frame = hospital(PATIENTS, seed=seed + number, visits=visits)
        yield frame.with_columns(pl.col("pid") + number * PATIENTS)
        number += 1


def _events(name: str, seed: int, scale: float) -> Iterator[pl.DataFrame]:
    number = 0
    while True:
        later = number * SHAPES[name].days * 86_400
        yield stream(name, scale, seed + number).with_columns(pl.col("time") + later)
        number += 1
