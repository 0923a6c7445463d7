"""Doubts about a stream's events, said before the first of them is released."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Iterator

import polars as pl

from shoal.core.errors import InputError
from shoal.core.time import duration, micros
from shoal.measures.plausibility import Doubt, time_doubts, unit_doubt, who_doubts
from shoal.promises.base import those_about
from shoal.release.stream import StreamJob


def doubts(job: StreamJob, frame: pl.DataFrame, now: float | None = None) -> list[Doubt]:
    """What looks wrong in these events, by the declared columns. O(n log n).

    >>> from shoal.release.job import job_of
    >>> from shoal.release.wishes import Wishes
    >>> job = job_of(Wishes({"z": 2, "window": "1h"}))
    >>> events = pl.DataFrame({"time": [0, 1], "subject": ["ada", "bob"], "value": ["x", "x"]})
    >>> doubts(job, events)
    []
    """
    schema = (job.view or job).schema
    now = clock.time() if now is None else now
    time = next((n for n in schema.of("time") if n in frame.columns), None)
    out: list[Doubt] = []
    if time is not None:
        column = schema[time]
        doubt = unit_doubt(frame[time], column.unit, now)
        if doubt is not None:
            return [doubt]  # in a wrong unit nothing else can be said of the times
        window = next((getattr(p, "micros", None) for p in job.promises if p.about == "events"), None)
        out += time_doubts(micros(frame[time], column.unit), duration(column.late), window, now)
    subject = schema.subject
    people = frame[subject] if subject is not None and subject in frame.columns else None
    shared = [] if those_about(job.promises, "curves") else job.schema.quasi  # nobody's curve is shared as it stands
    return out + who_doubts(people, {n: frame[n] for n in shared if n in frame.columns})


def examined(
    source: Iterable[pl.DataFrame], job: StreamJob, tell: Callable[[str], None], *, trust: bool, where: str
) -> Iterator[pl.DataFrame]:
    """The same frames; of the first that has events, doubts are told, and a grave one ends it before any release.

    >>> from shoal.release.job import job_of
    >>> from shoal.release.wishes import Wishes
    >>> job, said = job_of(Wishes({"z": 2, "window": "1h"})), []
    >>> events = pl.DataFrame({"time": [0], "subject": ["ada"], "value": ["x"]})
    >>> len(list(examined([events], job, said.append, trust=True, where="--unit")))
    1
    """
    first = True
    for frame in source:
        if first and frame.height:
            first = False
            for doubt in doubts(job, frame):
                if doubt.grave and not trust:
                    raise InputError(
                        f"nothing was released: {doubt.words}",
                        where=where,
                        hint=f"{doubt.hint} If the times count from another moment than 1970, add --trust-times",
                    )
                tell(f"doubt: {doubt}")
        yield frame
