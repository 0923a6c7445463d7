"""Curves: read them, group them, verify what would be published, and say what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl

from shoal.core.columns import CARRIED
from shoal.core.errors import PolicyError, PromiseError, UsageError
from shoal.core.frames import from_any
from shoal.core.release import Release
from shoal.core.schema import Schema
from shoal.policy.document import Policy
from shoal.promises.base import Promise, those_about
from shoal.promises.compact import compact
from shoal.promises.kp_anonymity import KPAnonymity, judge_means
from shoal.release.base import Job
from shoal.release.judge import Judge
from shoal.report.series_report import SeriesReport
from shoal.series.release import SeriesRelease
from shoal.series.release import anonymize_series as group_series
from shoal.tables.base import Progress, silent
from shoal.views.masked_table import masked_table
from shoal.views.role_view import RoleView


@dataclass(frozen=True, kw_only=True)
class CurvesJob(Job):
    """Curves to be grouped; with a policy, every value passes the view's gate first.

    ``reading`` are the words of :func:`shoal.series.release.anonymize_series` about how curves are read and grouped.

    >>> from shoal.release.job import job_of
    >>> from shoal.release.wishes import Wishes
    >>> job_of(Wishes({"series": True, "k": 6, "p": 3})).promises
    (KPAnonymity(k=6, p=3),)
    """

    noun: ClassVar[str] = "curves"

    policy: Policy | None = None
    cells: str = "text"
    compact: bool = False  # a row per group instead of one per record
    representatives: bool = False  # the mean of each P-subgroup is published, too
    reading: Mapping[str, Any] = field(default_factory=dict)
    engine: str = "here"  # or spark, which is for curves that are read from files: see runtime.spark

    def run(self, data: Any, *, progress: Progress = silent) -> Release:
        """See :class:`Job`. Costs what the series method costs."""
        if self.engine != "here":
            raise UsageError(
                "has no effect on curves that are in memory",
                where="engine",
                hint="leave it out; `shoal anonymize` on the command line reads curves from files",
            )
        source = data if self.policy is None or self.view is None else self._shown(from_any(data)[0])
        promise, others = about_curves(self.promises)
        reading = dict(self.reading)
        beside: dict[str, Any] = {"promises": others}
        if reading.get("perturb") is not None:  # it changes values until none is too frequent
            beside = {"l": max((p.asked for p in others), default=None)}
        if "weights" in reading:
            reading["weights"] = _per_instant(reading, from_any(source)[0])
        made = group_series(source, k=promise.k, p=promise.p, **beside, seed=self.draw(), progress=progress, **reading)
        frame = made.frame()
        notes = [*self.notes, f"pattern: {made.pattern!r}", *self._means(made, promise)]
        schema = Schema.build(quasi={}, sensitive=list(made.published.sensitive.columns))
        # by how the release reads: nothing that the method knows goes into it
        judge = Judge(schema, self.promises, instants=tuple(made.instants))
        verdict = judge.demand(frame)
        report = SeriesReport(
            title=self.title,
            method=made.method.use,
            rows=len(made.curves.values) + made.curves.dropped,
            released=frame.height,
            withheld=dict(made.withheld),
            altered=dict(made.altered),
            findings=list(verdict.findings),
            verified=True,
            figures=made.figures(),
            notes=notes,
            seed=self.seed,
        )
        return Release(
            data=self._data(made),
            withheld=dict(made.withheld),
            report=report,
            notes=notes,
            positions=made.rows,
            curves=made,
        )

    def _data(self, made: SeriesRelease) -> Any:
        """The release in the form that was asked for; a compact one is judged as it will be read."""
        if self.compact:
            shown = compact(made.frame(), made.instants)
            schema = Schema.build(quasi={}, sensitive=list(made.published.sensitive.columns))
            # a row per group is another text than a row per record
            Judge(schema, self.promises, instants=tuple(made.instants)).demand(shown)
            return shown
        return made.frame(typed=True) if self.cells == "struct" else made.data

    def _means(self, made: SeriesRelease, promise: KPAnonymity) -> list[str]:
        """What is said if means are published; an error, if one is of fewer curves than was promised."""
        if not self.representatives:
            return []
        broken = next((f for f in judge_means(made.representative_frame(), promise) if not f.kept), None)
        if broken is not None:
            raise PromiseError(f"the release was not made: {broken}", where="representatives")
        return [f"representatives are published: who knows values of a curve finds {promise.p}, not {promise.k}"]

    def _shown(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The columns of the view, masked, with the true subject in the place of its column."""
        assert self.policy is not None
        assert self.view is not None
        masked = masked_table(self.policy, self.view.role, frame, self.keys)
        subject = masked.schema.subject
        out = masked.frame
        if subject is not None:
            names = [c for c in out.columns if c != subject]
            # curves are told apart by who they are, not by what a mask makes of the name
            out = out.select(pl.col(subject).alias(self.reading["id"]), *[c for c in names if c != self.reading["id"]])
        return out


def about_curves(promises: tuple[Promise, ...]) -> tuple[KPAnonymity, list[Promise]]:
    """The promise about curves, and those about sensitive columns that are kept beside it.

    >>> about_curves((KPAnonymity(4, 2),))
    (KPAnonymity(k=4, p=2), [])
    """
    promise = those_about(promises, "curves")[0]
    others = [p for p in promises if p is not promise]
    # series methods know k and P, and of sensitive columns what compiled checks can say whole
    rules = [(p, p.rule()) for p in others]
    foreign = [p for p, r in rules if p.about != "groups" or not r.check or not r.complete or r.tables_only]
    if foreign or not isinstance(promise, KPAnonymity):
        raise UsageError(
            f"curves keep kP-anonymity, l-diversity and t-closeness, and not {(foreign or [promise])[0].use}",
            where="promises",
            hint="k and p of kP-anonymity say how many curves share an envelope and a pattern",
        )
    return promise, others


def view_reading(policy: Policy, view: RoleView) -> dict[str, Any]:
    """How a view's curves are read: the subject names the curve, and quasi columns are the instants of a wide table.

    With a time column the table is long, and quasi columns are its values.
    """
    counted = [name for name, column in policy.schema.columns.items() if column.role in ("quasi", "time")]
    masked = [name for name in counted if name in view.masks]
    if masked:
        raise PolicyError(
            f"the instant {masked[0]!r} is masked: curves are generalized by the method",
            where=f"views.{view.role}.masks.{masked[0]}",
            hint="leave the mask out, or do not show the column",
        )
    names = policy.schema.subject
    # what only travels with a record is never published
    seen = [n for n in (*view.shown, *view.masks) if n != names and not n.startswith(CARRIED)]
    times = [n for n in seen if policy.schema[n].role == "time"]
    foreign = [n for n in seen if policy.schema[n].role not in ("quasi", "sensitive") and times != [n]]
    if foreign:
        raise PolicyError(
            f"the column {foreign[0]!r} cannot be shown beside curves: they are released with sensitive columns only",
            where=f"views.{view.role}.show",
            hint="make it sensitive, or do not show it",
        )
    if names is not None and names in (*view.shown, *view.masks):
        raise PolicyError(
            f"the column {names!r} names the curves and cannot be shown",
            where=f"views.{view.role}.show",
            hint="do not show it",
        )
    # in the order of the policy: instants are in time, whatever order `show` lists them in
    seen_in_order = [n for n in policy.schema.columns if n in seen]
    quasi = [n for n in seen_in_order if policy.schema[n].role == "quasi"]
    return {
        "id": names,
        "sensitive": [n for n in seen_in_order if policy.schema[n].role == "sensitive"],
        **({"time": times[0], "value": quasi} if times else {"instants": quasi}),
    }


def _per_instant(reading: Mapping[str, Any], frame: pl.DataFrame) -> list[float]:
    weights: Mapping[str, float] = reading["weights"]
    known = reading.get("instants")
    beside = (reading.get("id"), *reading.get("sensitive", ()))
    instants = list(known) if known is not None else [c for c in frame.columns if c not in beside]
    unknown = [name for name in weights if name not in instants]
    if unknown or reading.get("time") is not None:
        raise UsageError(
            f"{unknown[0]!r} is not an instant" if unknown else "a long table has no instant columns",
            where="weights",
            hint="weights are given per instant of a wide table, for example W0=2",
        )
    return [weights.get(name, 1.0) for name in instants]


def released(release: Release) -> tuple[SeriesRelease, SeriesReport]:
    """The series behind a release of curves, and its report."""
    return release.curves, release.report
