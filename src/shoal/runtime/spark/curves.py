"""Curves on Spark: regions of curves of like height on the executors, and one verdict before anything is handed out.

A curve is a row of a wide table. Which curves share an envelope is decided inside a region, so regions are cut where
envelopes part them anyway: by the mean of a curve. What is promised of a group or of a pattern inside it is then a
matter of its region alone; the whole is judged all the same, as it was written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import polars as pl

from shoal.core import errors
from shoal.core.errors import InputError, PromiseError, ShoalError, UsageError
from shoal.core.groups import Finding
from shoal.core.release import Release
from shoal.core.schema import Schema
from shoal.measures.series import SeriesLoss
from shoal.release.curves import CurvesJob, about_curves
from shoal.release.judge import Judge
from shoal.release.regional.plan import SAMPLE, fewest
from shoal.report.series_report import SeriesReport
from shoal.runtime.spark import work
from shoal.runtime.spark.looks import quoted, sampled
from shoal.runtime.spark.session import checkpoints, require_spark, told_plainly
from shoal.runtime.spark.work import FIGURES, REGION, Grouped, spark_schema
from shoal.series.publish import GROUP, LEVEL, PATTERN
from shoal.tables.improve import draws

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

MEAN, COURT = "__shoal_mean", "__shoal_court"
IN_REGIONS = "the curves were released on Spark in {} regions, each by itself, and judged as a whole"
UNMEASURED = "on Spark the certainty penalty and the errors of queries are not measured"
LEARNT = ("auto", "shapelets")  # patterns that are learnt from all curves: regions would publish different ones


def released(job: CurvesJob, data: DataFrame, *, most: int) -> Release:
    """The verified release of a wide Spark DataFrame of curves, whose ``data`` is one, too.

    ``most`` curves are about what one region has.
    """
    require_spark()
    _refuse(job)
    checkpoints(data.sparkSession)
    with told_plainly():
        return _Run(job, data, most).release()


def _refuse(job: CurvesJob) -> None:
    """What needs all curves in one place, or another form than a wide table."""
    reading = job.reading
    if reading.get("time") is not None or reading.get("value") is not None:
        hint = "df.groupBy(id).pivot(time).agg(first(value)) makes one"
        raise UsageError("curves on Spark are the rows of a wide table", where="series", hint=hint)
    named: Any = reading.get("pattern", "sax")
    pattern = named.get("use") if isinstance(named, Mapping) else getattr(named, "use", named)
    wishes = {
        "cells": job.cells != "text",
        "compact": job.compact,
        "representatives": job.representatives,
        "perturb": reading.get("perturb") is not None,
        "weights": reading.get("weights") is not None,
        "pattern": pattern in LEARNT,
    }
    if job.view is not None and job.view.windows:
        raise UsageError(
            "a mask over windows of rows needs the whole table in memory",
            where=f"views.{job.view.role}.masks",
            hint="mask value by value",
        )
    for wish, asked in wishes.items():
        if asked:
            raise UsageError("curves on Spark are released without it", where=wish, hint="leave it out")
    compared = next((p for p in about_curves(job.promises)[1] if p.compares_with_all), None)
    if compared is not None:
        raise UsageError(
            f"{compared.use} compares a group with all curves, and a region does not see them",
            where="promises",
            hint="promise l-diversity, or release the curves on one machine",
        )


class _Run:
    def __init__(self, job: CurvesJob, data: DataFrame, most: int) -> None:
        self.job, self.data, self.most, self.seed = job, data, most, job.draw()
        reading = job.reading
        self.id: str | None = reading.get("id")
        named = reading.get("sensitive", ())
        self.sensitive = [named] if isinstance(named, str) else list(named)
        beside = (self.id, *self.sensitive)
        instants = reading.get("instants")
        self.instants = list(instants) if instants is not None else [c for c in data.columns if c not in beside]
        lacking = [c for c in (*beside, *self.instants) if c is not None and c not in data.columns]
        if lacking:
            raise InputError(f"there is no column {lacking[0]!r}", where="series")

    def release(self) -> Release:
        job = self.job
        self._refuse_repeats()
        tagged, count = self._tagged()
        tagged = tagged.persist()
        sizes = {row[REGION]: int(row["count"]) for row in tagged.groupBy(REGION).count().collect()}
        promise, _ = about_curves(job.promises)
        parts = joined([[n] for n in range(count)], lambda part: sum(sizes.get(n, 0) for n in part) < fewest(promise.k))
        made, told, parts = self._solved(tagged, parts)
        findings = self._judged(made, len(parts))
        tagged.unpersist()
        notes = [*job.notes, *dict.fromkeys(note for one in told.values() for note in one["notes"])]
        if len(parts) > 1:
            notes += [IN_REGIONS.format(f"{len(parts):,}"), UNMEASURED]
        withheld = _added(one["withheld"] for one in told.values())
        report = SeriesReport(
            title=job.title,
            method=next(iter(told.values()))["method"],
            rows=sum(sizes.values()),
            released=sum(sizes.values()) - sum(withheld.values()),
            withheld=withheld,
            altered={},
            findings=findings,
            verified=True,
            figures=_figures([one["figures"] for one in told.values()]),
            notes=notes,
            seed=job.seed,
        )
        return Release(data=made.drop(REGION), withheld=withheld, report=report, notes=notes)

    def _refuse_repeats(self) -> None:
        """Two rows of one person would be two people; regions cannot see it, as they may be in two of them."""
        if self.id is None:
            return
        repeated = self.data.groupBy(quoted(self.id)).count().filter("count > 1").limit(1).count()
        if repeated:
            raise InputError("a curve stands twice", where=f"column {self.id!r}", hint="one row per curve is expected")

    def _tagged(self) -> tuple[DataFrame, int]:
        """Every curve with its region, numbered by height, and how many there are."""
        from pyspark.sql import functions as sql

        rows = self.data.count()
        regions = max(1, -(-rows // self.most))
        if regions == 1:
            return self.data.withColumn(REGION, sql.lit(0)), 1
        height = self._mean()
        means = self.data.select(height.alias(MEAN)).filter(sql.col(MEAN).isNotNull() & ~sql.isnan(MEAN))
        heights = np.sort(np.asarray(sampled(means, rows, SAMPLE)[MEAN], np.float64))
        if not len(heights):
            return self.data.withColumn(REGION, sql.lit(0)), 1
        at = np.arange(1, regions) * len(heights) // regions
        cuts = np.unique(heights[at]).tolist()
        below = sql.array(*[sql.lit(float(cut)) for cut in cuts])
        number = sql.size(sql.filter(below, lambda cut: height >= cut))
        # a curve without values has no height; what becomes of it the method says
        return self.data.withColumn(REGION, sql.when(height.isNull(), 0).otherwise(number)), len(cuts) + 1

    def _mean(self) -> Column:
        from pyspark.sql import functions as sql

        columns = [sql.col(quoted(name)).cast("double") for name in self.instants]
        known = [sql.when(c.isNull() | sql.isnan(c), 0.0).otherwise(c) for c in columns]
        counted = [sql.when(c.isNull() | sql.isnan(c), 0).otherwise(1) for c in columns]
        total, count = known[0], counted[0]
        for value, one in zip(known[1:], counted[1:], strict=True):
            total, count = total + value, count + one
        return sql.when(count > 0, total / count)

    def _solved(
        self, tagged: DataFrame, parts: list[list[int]]
    ) -> tuple[DataFrame, dict[int, dict[str, Any]], list[list[int]]]:
        """Every region released on some executor. One that cannot keep the promises joins the one beside it."""
        from pyspark.sql import functions as sql

        like = self._like()
        kinds = spark_schema(work.arrow_of(like))
        while True:
            part_of = {n: at for at, numbers in enumerate(parts) for n in numbers}
            numbers = sql.array(*[sql.lit(part_of[n]) for n in sorted(part_of)])
            out = (
                tagged.withColumn(REGION, sql.element_at(numbers, sql.col(REGION) + sql.lit(1)).cast("int"))
                .groupBy(REGION)
                .applyInArrow(solving(self.job, self.seed, self._order(), like, len(parts)), kinds)
                .checkpoint()
            )
            rows = out.filter(sql.col(FIGURES).isNotNull()).select(REGION, FIGURES).collect()
            told = {int(row[0]): msgspec.json.decode(row[1]) for row in sorted(rows)}
            failed = {at: one["error"] for at, one in told.items() if "error" in one}
            if not failed:
                break
            kind, message, where, hint = next(iter(failed.values()))
            if len(parts) == 1 or any(error[0] != PromiseError.__name__ for error in failed.values()):
                raise getattr(errors, kind)(message, where=where, hint=hint)
            poor = [parts[at] for at in failed]
            parts = joined(parts, poor.__contains__)
        groups = np.cumsum([0, *[told[at]["groups"] for at in sorted(told)]])
        first = sql.array(*[sql.lit(int(n)) for n in groups])
        made = out.filter(sql.col(FIGURES).isNull()).drop(FIGURES)
        numbered = (sql.col(GROUP) + sql.element_at(first, sql.col(REGION) + sql.lit(1))).cast("long")
        return made.withColumn(GROUP, numbered), told, parts

    def _order(self) -> list[str]:
        """What rows of a region are sorted by: Spark hands them over in any order."""
        return [self.id] if self.id is not None else [*self.instants, *self.sensitive]

    def _like(self) -> pl.DataFrame:
        """The columns of what a region makes."""
        empty = work.frame_of(self.data.limit(0).toArrow())
        shown = empty if self.job.policy is None or self.job.view is None else self.job._shown(empty)
        return pl.DataFrame(
            schema={
                GROUP: pl.Int64,
                **dict.fromkeys(self.instants, pl.String),
                PATTERN: pl.String,
                LEVEL: pl.Int16,
                **{name: shown.schema[name] for name in self.sensitive},
                REGION: pl.Int32,
                FIGURES: pl.String,
            }
        )

    def _judged(self, made: DataFrame, buckets: int) -> list[Finding]:
        """The verdict over all groups, each judged whole, as they stand in the checkpoint."""
        from pyspark.sql import functions as sql

        parted = made.drop(REGION).withColumn(COURT, sql.pmod(sql.col(GROUP), sql.lit(buckets)).cast("int"))
        judge = judging(self.job, self.instants, self.sensitive)
        found = parted.groupBy(COURT).applyInArrow(judge, f"{FIGURES} string").collect()
        findings = together([msgspec.json.decode(row[0], type=list[Finding]) for row in found])
        broken = next((f for f in findings if not f.kept), None)
        if broken is not None or not findings:
            raise PromiseError(f"the release was not made: {broken or 'nothing was judged'}", where="spark")
        return findings


def joined(parts: Sequence[list[int]], poor: Callable[[list[int]], bool]) -> list[list[int]]:
    """Regions in their order, those that are ``poor`` joined with the ones after them, the last with the one before.

    >>> joined([[0], [1], [2]], lambda part: part == [1])
    [[0], [1, 2]]
    >>> joined([[0], [1], [2]], lambda part: len(part) < 2)
    [[0, 1, 2]]
    """
    out: list[list[int]] = []
    for part in parts:
        if out and poor(out[-1]):
            out[-1] += part
        else:
            out.append(list(part))
    if len(out) > 1 and poor(out[-1]):
        out[-2:] = [out[-2] + out[-1]]
    return out


def solving(job: CurvesJob, seed: int, order: Sequence[str], like: pl.DataFrame, regions: int) -> Grouped:
    """A region of curves released by the ordinary job: its rows, and one more with what the report needs."""

    def solve(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        region = int(key[0].as_py())
        own = seed if regions == 1 else int(draws(seed, 0xC0 + region, 1)[0] >> np.uint64(1))
        rows = work.frame_of(table).drop(REGION).sort(order)
        try:
            made = dataclasses.replace(job, seed=own, engine="here").run(rows)
        except ShoalError as error:
            return work.arrow_of(
                _told(like, region, {"error": [type(error).__name__, error.message, error.where, error.hint]})
            )
        report: Any = made.report
        figures = {
            "groups": made.data[GROUP].n_unique(),
            "withheld": dict(made.withheld),
            "figures": report.figures,
            "method": report.method,
            "notes": [note for note in report.notes if note not in job.notes],
        }
        added = made.data.with_columns(pl.lit(region).alias(REGION), pl.lit(None, dtype=pl.String).alias(FIGURES))
        shown = added.select(like.columns).cast(dict(like.schema))
        return work.arrow_of(pl.concat([shown, _told(like, region, figures)]))

    return solve


def _told(like: pl.DataFrame, region: int, figures: Mapping[str, Any]) -> pl.DataFrame:
    told = {REGION: [region], FIGURES: [msgspec.json.encode(figures).decode()]}
    return pl.DataFrame({name: told.get(name, [None]) for name in like.columns}, schema=dict(like.schema))


def judging(job: CurvesJob, instants: Sequence[str], sensitive: Sequence[str]) -> Grouped:
    """What the judge finds in some of the groups, as one row."""

    def judge(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        rows = work.frame_of(table).drop(COURT)
        schema = Schema.build(quasi={}, sensitive=list(sensitive))
        verdict = Judge(schema, job.promises, instants=tuple(instants)).judge(rows)
        return work.arrow_of(pl.DataFrame({FIGURES: [msgspec.json.encode(list(verdict.findings)).decode()]}))

    return judge


def together(found: Sequence[Sequence[Finding]]) -> list[Finding]:
    """What was found of some groups and of others, as found of all. More is better in every promise that curves keep.

    >>> few, many = (Finding("4-anonymity", True, 4, n, 1, 0) for n in (5, 9))
    >>> str(together([[many], [few]])[0])
    '4-anonymity: kept; asked 4, reached 5 (rows counted)'
    """
    return [
        Finding(
            same[0].promise,
            all(f.kept for f in same),
            same[0].asked,
            min(f.reached for f in same),
            sum(f.groups for f in same),
            sum(f.broken for f in same),
            same[0].unit,
            next((f.note for f in same if f.note), ""),
        )
        for same in zip(*found, strict=True)
    ]


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for one in counts:
        for why, count in one.items():
            out[why] = out.get(why, 0) + count
    return out


def _figures(many: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The figures of all regions together; those that only a whole release has are of one region alone."""
    if len(many) == 1:
        return dict(many[0])
    totals = {name: sum(one[name] for one in many) for name in SeriesLoss.__struct_fields__}
    loss = msgspec.convert(totals, SeriesLoss)
    counted = {name: float(sum(one[name] for one in many)) for name in ("groups", "subgroups")}
    least = {name: float(min(one[name] for one in many)) for name in ("smallest_group", "smallest_subgroup")}
    return {name: value for name, value in loss.figures().items() if "ncp" not in name} | counted | least
