"""What a recorded stream would release under another z: measured on its events, beside what the model says."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from shoal.core.errors import UsageError
from shoal.core.time import duration, micros
from shoal.measures.stream_profile import exposed
from shoal.measures.zk_model import Model
from shoal.release.stream import LocalRunner, StreamJob
from shoal.streams.texts import number
from shoal.streams.z_anonymity import RunningZ
from shoal.web.project import Project
from shoal.web.work import Tell

MARKS = 40  # looks at the stream over its time
TRIED = 200_000  # events of a trial: the first ones
SAMPLES = 4_000  # of the model


class Trial(msgspec.Struct, frozen=True):
    """One z, tried."""

    z: int
    window: str
    events: int
    counters: dict[str, int]
    rows: list[dict[str, Any]]  # figures over time
    measured: float | None  # people hidden among 2, the mean over time
    model: float | None  # the same by the model


def tried(project: Project, tell: Tell) -> Trial:
    """Run the stream as it would be released, and watch it. O(events)."""
    job = project.job()
    if not isinstance(job, StreamJob):
        raise UsageError("this is no stream", where=project.name, hint="say on the first page that it is one")
    frame = project.rows_for(job).head(TRIED)
    runner = LocalRunner(job, job.key(), lambda part: None, seed=0)
    time = job.schema.of("time")[0]
    times = micros(frame[time], job.schema[time].unit)
    good = times[times >= 0]
    span = int(good.max() - good.min()) if len(good) else 0
    assert isinstance(runner.method, RunningZ)
    watch = runner.method.engine.watch(max(span // MARKS, 1_000_000))
    size = max(1, frame.height // 50)
    for at in range(0, frame.height, size):
        tell(0.9 * at / frame.height, f"{at:,} of {frame.height:,} events")
        runner.feed(frame.slice(at, size))
    runner.finish()
    rows = watch.finish()
    hidden = [row["p_k"] for row in rows if row["p_k"] is not None]
    chosen = project.chosen.settings
    tell(0.92, "asking the model")
    return Trial(
        chosen.z,
        chosen.window,
        frame.height,
        {name: int(n) for name, n in runner.method.counters.items()},
        rows,
        sum(hidden) / len(hidden) if hidden else None,
        modelled(project, frame, job, chosen.z),
    )


def modelled(project: Project, frame: pl.DataFrame, job: StreamJob, z: int) -> float | None:
    """The share of people the model expects to be hidden, with the values as they were shown here."""
    subject, value = job.schema.subject, job.schema.quasi[0]
    time = job.schema.of("time")[0]
    if subject is None:
        return None
    known = frame.drop_nulls([subject, value, time])
    if not known.height:
        return None
    people, first = number(known[subject].cast(pl.String).hash().to_numpy().view("int64"))
    values, _ = number(known[value].cast(pl.String).hash().to_numpy().view("int64"))
    window = duration(project.chosen.settings.window)
    shares = exposed(
        micros(known[time], job.schema[time].unit), people.astype(np.int64), values.astype(np.int64), window
    )
    if not len(shares) or len(first) < 2:
        return None
    return float(Model(users=len(first), exposed=shares, seed=0).p_k(z, 2, "exact", SAMPLES).value)
