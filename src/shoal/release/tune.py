"""Find parameters: the same job with other k, z, windows, delays and methods, each released, verified and measured.

A policy's promise is the floor: only stronger values of k and z, and shorter windows, are tried, because an option may
never weaken a policy. A point is what :func:`shoal.release.job.job_of` makes of the same wishes and a few more, so
taking it gives the release that was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import msgspec
import numpy as np
import polars as pl

from shoal.core.errors import PromiseError, ShoalError, UsageError
from shoal.core.frames import from_any
from shoal.core.spec import Family, Spec
from shoal.core.time import duration, micros
from shoal.core.time import words as spelled
from shoal.measures.events import event_loss, window_risk
from shoal.promises.base import Promise
from shoal.release.base import Job
from shoal.release.curves import CurvesJob
from shoal.release.job import job_of
from shoal.release.stream import StreamJob
from shoal.release.table import TableJob
from shoal.release.tuned import Goal, Point, Tuning, marked
from shoal.release.wishes import Wishes
from shoal.report.measured import table_risk
from shoal.series import SERIES_METHODS
from shoal.streams import STREAM_METHODS
from shoal.tables import TABLE_METHODS
from shoal.tables.base import Progress, silent
from shoal.views.derived import with_derived

STEPS = (2, 5, 10, 20, 50, 100)  # values of k and z that are tried above the floor
TRIED = 4  # of them at most, if nobody said which
PARTS = (1, 2, 4)  # a window and its parts
DELAYS = (1, 2, 4)  # a delay and its parts

Settings = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Varied:
    """The values to try; what is empty is chosen by the job.

    >>> Varied(k=(5, 10)).stated
    ['k']
    """

    methods: Sequence[str] = ()
    k: Sequence[int] = ()
    z: Sequence[int] = ()
    window: Sequence[str] = ()
    delay: Sequence[int] = ()

    @property
    def stated(self) -> list[str]:
        """What somebody asked to vary."""
        return [f.name for f in fields(self) if getattr(self, f.name)]


ANYTHING, NO_GOAL = Varied(), Goal()


def tune(
    data: Any,
    asked: Mapping[str, Any],
    varied: Varied = ANYTHING,
    goal: Goal = NO_GOAL,
    *,
    rows: int = 10_000,
    spell: Callable[[str], str] = str,
    command: Callable[[Job, Settings], Mapping[str, str]] = lambda job, settings: {},
    progress: Progress = silent,
) -> Tuning:
    """Try the points around what was ``asked`` (the wishes of a job) on at most ``rows`` rows of the data.

    ``command`` gives the ``command`` and ``options`` of a point, where it can be taken by one.

    >>> people = pl.DataFrame({"age": [20, 21, 22, 50, 52, 53]})
    >>> tune(people, {"quasi": ["age"]}, Varied(methods=["mondrian"], k=[2, 3])).best.settings
    {'k': 3}
    """
    base = _base(asked, varied, spell)
    frame = from_any(data)[0]
    # one sample for all points: they must differ by their settings only
    few = _sample(base, frame, rows)
    candidates = list(_candidates(base, few.height, varied, goal, spell))
    points: list[Point] = []
    failed: ShoalError | None = None
    for at, settings in enumerate(candidates):
        job = job_of(Wishes({**asked, **settings}, spell=spell))
        method = _current(job)
        point = msgspec.structs.replace(
            Point(settings, method="" if method is None else method.use), **command(job, settings)
        )
        progress(at / len(candidates), point.words)
        try:
            made = _measured(point, job, few, base)
        except (PromiseError, UsageError) as error:  # of this point; bad data end it all
            failed = failed or error
            made = msgspec.structs.replace(point, note=error.message)
        points.append(made)
    # none could be made: the first reason is the answer
    if failed is not None and all(p.note for p in points):
        raise failed
    progress(1.0, "done")
    return Tuning(marked(points), goal, few.height, frame.height, isinstance(base, StreamJob))


def _base(asked: Mapping[str, Any], varied: Varied, spell: Callable[[str], str]) -> Job:
    """The job as asked, with the weakest of the values to try where nothing else says them."""
    first: Settings = {}
    # a policy's promise is the floor; without one the weakest value to try is
    if "policy" not in asked:
        first |= {name: min(found) for name in ("k", "z") if (found := getattr(varied, name))}
        if not {"z", "window", "series"} & {*first, *asked}:
            first.setdefault("k", STEPS[0])
        if varied.window:
            first["window"] = max(varied.window, key=duration)
        if varied.methods:
            first["method"] = varied.methods[0]
    for name in ("method", "set"):
        if asked.get(name):
            raise UsageError("methods are what is tried", where=spell(name), hint=f"name them with {spell('methods')}")
    job = job_of(Wishes({**first, **asked}, spell=spell))
    if not isinstance(job, TableJob | CurvesJob | StreamJob):
        raise UsageError(
            "there is nothing to tune: the view promises nothing, or the table grows",
            where=spell("view"),
            hint="choose a view with promises",
        )
    return job


def _sample(job: Job, frame: pl.DataFrame, rows: int) -> pl.DataFrame:
    """At most so many rows: of a stream the first, because neighbours matter; else whole people, spread over all."""
    if frame.height <= rows:
        return frame
    if isinstance(job, StreamJob):
        return frame.head(rows)
    whose = job.reading.get("id") if isinstance(job, CurvesJob) else job.schema.subject
    names = pl.Series(np.arange(frame.height)) if whose is None or whose not in frame.columns else frame[whose]
    people = names.unique(maintain_order=True)
    # a fixed seed: the same call twice must not propose two things because of who is in the sample
    chosen = people.sample(max(1, len(people) * rows // frame.height), seed=0)
    return frame.filter(names.is_in(chosen.implode()))


def _candidates(job: Job, height: int, varied: Varied, goal: Goal, spell: Callable[[str], str]) -> Iterator[Settings]:
    """Every combination to try, the policy's own first."""
    axes = _axes(job, height, varied, goal)
    useless = next((name for name in varied.stated if name not in axes), None)
    if useless is not None:
        raise UsageError(
            "has no effect on what is promised here", where=spell(useless), hint=f"vary: {', '.join(axes)}"
        )
    if goal.delay is not None and "delay" not in axes:
        raise UsageError("nothing is delayed here", where=spell("max_delay"), hint="leave it out")
    for values in product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        settings = {name: value for name, value in chosen.items() if name in ("k", "z", "window")}
        method = _method(job, chosen.get("methods"), chosen.get("delay"))
        yield settings if method is None else {**settings, "method": method}


def _axes(job: Job, height: int, varied: Varied, goal: Goal) -> dict[str, Sequence[Any]]:
    if isinstance(job, StreamJob) and not job.method.groups:
        promise = _with(job.promises, "z")
        window = duration(promise.window)  # type: ignore[attr-defined]
        return {
            "z": varied.z or _steps(promise.z, height),  # type: ignore[attr-defined]
            "window": varied.window or [spelled(window // part) for part in PARTS],
        }
    promise = _with(job.promises, "k")
    known = _needed(goal)
    ks = varied.k or _steps(promise.k, height, known)  # type: ignore[attr-defined]
    if not isinstance(job, StreamJob):
        return {"methods": varied.methods or _methods(_family(job)), "k": ks}
    if not hasattr(job.method, "delay"):
        raise UsageError(f"{job.method.use} has no delay to tune", where="method", hint="tune a recorded table instead")
    most = job.method.delay if goal.delay is None else goal.delay
    # fewer events than k never hold a group
    delays = varied.delay or sorted({most // part for part in DELAYS if most // part >= ks[0]}, reverse=True)
    return {"methods": varied.methods or _methods(STREAM_METHODS, "delay"), "k": ks, "delay": delays or [most]}


def _with(promises: Sequence[Promise], field: str) -> Promise:
    found = next((p for p in promises if hasattr(p, field)), None)
    if found is None:
        raise UsageError("there is nothing to tune", where="promises", hint=f"promise something that has {field}")
    return found


def _needed(goal: Goal) -> int | None:
    """The k that meets a bound on risk for certain: the mean chance in groups of k is at most 1/k."""
    return None if not goal.risk else int(np.ceil(1 / goal.risk))


def _steps(floor: int, height: int, more: int | None = None) -> list[int]:
    """The floor and a few values above it that the data could reach."""
    # with more than half of all rows in a group there is one group
    above = [n for n in STEPS if floor < n <= max(floor, height // 2)][: TRIED - 1]
    return sorted({floor, *above, *([more] if more is not None and floor < more <= height else [])})


def _family(job: Job) -> Family[Any]:
    return SERIES_METHODS if isinstance(job, CurvesJob) else TABLE_METHODS


def _methods(family: Family[Any], *having: str) -> list[str]:
    """The methods that need no parameter nobody gave, and have these."""
    found = []
    for name in family.names():
        own = msgspec.structs.fields(family.get(name))
        if not any(f.required for f in own) and {f.name for f in own} >= set(having):
            found.append(name)
    return found


def _method(job: Job, name: str | None, delay: int | None) -> Any:
    """The method as a wish; none where the job has it already. What the policy says of it stays."""
    had = _current(job)
    if name is None or (delay is None and had is not None and had.use == name):
        return None
    if delay is None:
        return name
    kind = STREAM_METHODS.get(name)
    defaults = {f.name: f.default for f in msgspec.structs.fields(kind)}
    own = {} if had is None else {n: v for n, v in msgspec.structs.asdict(had).items() if n in defaults}
    kept = {n: v for n, v in own.items() if had is not None and v != _default(had, n)}
    if had is not None and had.use == name and delay == getattr(had, "delay", None):
        return None
    return {"use": name, **kept, "delay": delay}


def _current(job: Job) -> Spec | None:
    """The method of a job; of curves it stands among the words of how they are read, if somebody named one."""
    return job.reading.get("method") if isinstance(job, CurvesJob) else getattr(job, "method", None)


def _default(spec: Spec, name: str) -> Any:
    return next(f.default for f in msgspec.structs.fields(spec) if f.name == name)


def _measured(point: Point, job: Job, frame: pl.DataFrame, base: Job) -> Point:
    release = job.run(frame)
    report = release.report
    share = report.released / max(1, report.rows)
    if isinstance(job, TableJob):
        found = {"loss": report.loss.gcp, "risk": report.risk_after.average}
    elif isinstance(job, CurvesJob):
        figures = report.figures
        # the mean over records of 1 by the size of their group
        found = {"loss": figures["ncp"], "risk": figures["groups"] / max(1, report.released)}
    else:
        assert isinstance(job, StreamJob)
        found = _of_events(job, frame, release.data, release.positions, base)
    return msgspec.structs.replace(point, released=share, **found)


def _of_events(job: StreamJob, frame: pl.DataFrame, released: pl.DataFrame, events: Any, base: Job) -> dict[str, Any]:
    schema = job.schema
    original = with_derived(frame, job.view.schema if job.view is not None else schema)
    columns = [name for name in schema.quasi if name in released.columns]
    # below 0: invented, nobody's
    real = events[events >= 0]
    subject = schema.subject
    people = pl.Series(np.arange(frame.height)) if subject is None else original[subject]
    whose, cells = people[real], released.filter(pl.Series(events >= 0)).select(columns)
    lost = event_loss(original, released, events, columns)
    if job.method.groups:
        return {
            "loss": lost,
            "risk": table_risk(cells, columns, whose).average,
            "delay": int(getattr(job.method, "delay", 0)),
        }
    time = next(iter(schema.of("time")))
    # one span for all points: within a shorter one less is seen of everybody, which would look like less risk
    span = duration(_with(base.promises, "window").window)  # type: ignore[attr-defined]
    windows = micros(original[time], schema[time].unit)[real] // span
    return {"loss": lost, "risk": window_risk(whose, cells, windows)}
