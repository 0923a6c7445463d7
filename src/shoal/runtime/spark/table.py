"""A table on Spark: cuts on the driver, regions on the executors, and one verdict before anything is handed out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import polars as pl

from shoal.core import errors
from shoal.core.errors import InputError, UsageError
from shoal.core.release import Release
from shoal.core.schema import Schema
from shoal.core.table import code, coded
from shoal.measures.loss import Loss
from shoal.promises.rules import least_people
from shoal.release.adversary import Adversary
from shoal.release.judge import Judge
from shoal.release.regional import figures
from shoal.release.regional.choose import LARGEST, refuse_in_regions
from shoal.release.regional.judging import Court, Judged, added
from shoal.release.regional.plan import BUCKET, PERSON, SAMPLE, Plan, fewest, regions_of, sensitive_levels
from shoal.release.regional.prepared import SHOWN, as_it_is
from shoal.release.remarks import unmet
from shoal.release.table import TableJob
from shoal.report.columns import masked as with_masks
from shoal.runtime.spark import work
from shoal.runtime.spark.looks import OnSpark, domain_of, quoted, sampled, shares_of
from shoal.runtime.spark.session import checkpoints, kept, require_spark, told_plainly
from shoal.runtime.spark.work import FIGURES, NAMES, REGION, spark_schema
from shoal.tables.base import Progress, reachable, silent
from shoal.tables.regions import Regions
from shoal.views.masked_table import masked_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

IN_REGIONS = "the table was released on Spark in {} regions, each by itself, and judged as a whole"


def released(
    job: TableJob, data: DataFrame, *, most: int = LARGEST, progress: Progress = silent, steady: bool = False
) -> Release:
    """The verified release of a Spark DataFrame, whose ``data`` is one, too; nothing unverified is ever returned.

    ``most`` rows are about what one region has: an executor needs some 1,200 bytes for each. ``steady``: the rows are
    cheap to read again and will be the same; otherwise Spark keeps them.
    """
    require_spark()
    refuse_in_regions(job)
    if job.cells != "text":
        raise UsageError("a release on Spark has text cells", where="cells", hint="leave it out")
    checkpoints(data.sparkSession)
    with told_plainly():
        return _Run(job, data, most, progress, steady).release()


class _Run:
    def __init__(self, job: TableJob, data: DataFrame, most: int, progress: Progress, steady: bool) -> None:
        self.job, self.data, self.most, self.progress, self.steady = job, data, most, progress, steady

    def release(self) -> Release:
        start = time.perf_counter()
        job = self.job
        rows, schema, finish, notes = self._prepared()
        if not self.steady:
            rows = rows.persist()
        self.progress(0.0, "counting values")
        domain = domain_of(rows, schema)
        given = int(domain.rows[schema.quasi[0]].sum())
        empty = work.frame_of(rows.limit(0).toArrow())
        table = code(empty, schema, domain=domain)
        known = {name: domain.known(name) for name in schema.quasi}
        doubtful = unmet(known, job.promises, domain.values)
        frequency = {n: np.zeros(domain.compiled[n][0].size) for n in schema.quasi}
        plan = Plan(
            schema, job.promises, job.method, domain, Regions(*np.zeros((4, 0), np.int64)), frequency, job.draw(), 1
        )
        withheld = self._counted(rows, plan)
        kept = given - sum(withheld.values())
        if not kept:
            reachable(table, job.promises)
        k = least_people(job.promises)
        plan.method, plan.buckets = job.method_for(kept), -(-kept // self.most)
        self.progress(0.05, f"looking where to cut {given:,} rows")
        plan.regions = regions_of(self._sample(rows, plan, given), table, self.most, kept, k)
        tagged = rows.mapInArrow(work.tagging(plan), _tagged_schema(rows)).persist(_on_disk())
        self.progress(0.1, f"parting {given:,} rows into {plan.regions.count:,} regions")
        parts = self._parted(tagged, plan, k)
        plan.parts = len(parts)
        self.progress(0.2, f"{len(parts):,} regions")
        made, solved, judged, court = self._made(tagged, plan, parts, empty)
        verdict = court.verdict(judged)
        subject = None if schema.subject is None else NAMES[PERSON]
        shown = [c for c in made.columns if c not in NAMES.values()]
        self.progress(0.9, "looking for what links rows")
        adversary = Adversary(schema, job.promises, job.view, job.waived)
        looks = OnSpark(made, shown, subject)
        readable = [n for n in adversary.beside(empty.select(shown)) if adversary.readable(self._floats(made, n), n)]
        found = figures.look_for_links(adversary, looks, readable)
        losses = [(s["loss"], s["bits"]) for s in solved]
        counted = figures.Made(given, verdict.rows, withheld, losses, added([s["before"] for s in solved]), judged)
        all_notes = [
            *job.told_before(),
            IN_REGIONS.format(f"{len(parts):,}"),
            figures.UNMEASURED,
            *notes,
            *court.shared(judged),
            *figures.combined_names(adversary, looks, readable),
            *doubtful,
        ]
        report = figures.report(plan, counted, [*verdict.findings, *found], job.title, all_notes)
        report = msgspec.structs.replace(
            report,
            seed=job.seed,
            left_out=[c for c in self.data.columns if c not in job.schema.columns],
            columns=with_masks(figures.published(plan, looks, report.loss), job.mask_names()),
            seconds=time.perf_counter() - start,
        )
        data = made.select(*map(quoted, shown))
        if job.view is not None:
            texts = empty.select(shown).with_columns(pl.col(n).cast(pl.String) for n in schema.quasi)
            data = data.mapInArrow(work.finishing(finish), spark_schema(work.arrow_of(finish(texts))))
        tagged.unpersist()
        rows.unpersist()
        return Release(
            data=data, withheld=dict(report.withheld), schema=schema, left_out=list(report.left_out), report=report,
            notes=list(report.notes), warnings=doubtful,
        )  # fmt: skip

    def _prepared(self) -> tuple[DataFrame, Schema, Any, tuple[str, ...]]:
        """The rows a method gets, their schema, how they leave, and what masks could not do."""
        job = self.job
        if job.view is None or job.policy is None:
            if job.schema.derived:
                raise UsageError("derived columns need a policy on Spark", where="derive")
            wanted = [c for c in self.data.columns if c in job.schema.columns and job.schema[c].role in SHOWN]
            lacking = [n for n in job.schema.columns if n not in self.data.columns]
            if lacking:
                raise InputError(
                    f"there is no column {lacking[0]!r}", where="table", hint=f"columns: {', '.join(self.data.columns)}"
                )
            return self.data.select(*map(quoted, wanted)), job.schema, lambda rows: as_it_is(rows, {}), ()
        if job.view.windows:
            raise UsageError(
                "a mask over windows of rows needs the whole table in memory",
                where=f"views.{job.view.role}.masks",
                hint="mask value by value",
            )
        sample = work.frame_of(self.data.limit(0).toArrow())
        first = masked_table(job.policy, job.view.role, sample, job.keys)
        like = spark_schema(work.arrow_of(first.frame))
        rows = self.data.mapInArrow(work.masking(job.policy, job.view.role, job.keys), like)
        return rows, first.schema, _finish(job), first.notes

    def _counted(self, rows: DataFrame, plan: Plan) -> Counter[str]:
        """How often each code stands in the table, and how many rows cannot be released, by reason."""
        withheld: Counter[str] = Counter()
        if not any(_may_withhold(plan, name) for name in plan.schema.quasi):  # values were counted: that says it all
            for name in plan.schema.quasi:
                _, codes = plan.domain.compiled[name]
                plan.frequency[name][:] = np.bincount(codes, plan.domain.rows[name], len(plan.frequency[name]))
            return withheld
        found = rows.mapInArrow(work.counting(plan.schema, plan), "kind string, name string, code int, rows long")
        for row in found.groupBy("kind", "name", "code").sum("rows").collect():
            if row["kind"] == "withheld":
                withheld[row["name"]] += int(row["sum(rows)"])
            else:
                plan.frequency[row["name"]][row["code"]] += row["sum(rows)"]
        return withheld

    def _sample(self, rows: DataFrame, plan: Plan, given: int) -> np.ndarray:
        """Rows that show where to cut, chosen by what they say."""
        chosen = sampled(rows.select(*[quoted(n) for n in plan.schema.quasi]), given, SAMPLE)
        matrix, lost, _ = coded(chosen, plan.schema, plan.domain)
        matrix = matrix[~lost]
        return np.ascontiguousarray(matrix[np.lexsort(matrix.T[::-1])])

    def _parted(self, tagged: DataFrame, plan: Plan, k: int) -> list[list[int]]:
        """Which regions are released together: those that cannot keep the promises alone join the one beside them."""
        compared = [p.sensitive for p in plan.promises if p.compares_with_all and p.sensitive is not None]
        subject = plan.schema.subject
        person = None if subject is None else NAMES.get(subject, subject)
        plan.domain.shares = {n: shares_of(tagged, n, plan.domain.values[n], person) for n in compared}
        sizes = {row[REGION]: int(row["count"]) for row in tagged.groupBy(REGION).count().collect()}
        least = fewest(k)
        rule = subject is None and all(p.sensitive is None and p.rule().complete for p in plan.promises)
        own: dict[int, bool] = {}
        if not rule and plan.regions.count > 1:
            check = tagged.groupBy(REGION).applyInArrow(work.standing(plan), f"{REGION} int, alone boolean")
            own = {row[REGION]: bool(row["alone"]) for row in check.collect()}

        def alone(numbers: list[int]) -> bool:
            size = sum(sizes.get(n, 0) for n in numbers)
            if size < least or rule:
                return size >= least
            if len(numbers) == 1:
                return own.get(numbers[0], False)
            from pyspark.sql import functions as sql

            chosen = tagged.filter(sql.col(REGION).isin(numbers)).withColumn(REGION, sql.lit(0))
            return bool(
                chosen.groupBy(REGION)
                .applyInArrow(work.standing(plan), f"{REGION} int, alone boolean")
                .collect()[0]["alone"]
            )

        return plan.regions.parted(alone, lambda numbers: sum(sizes.get(n, 0) for n in numbers))

    def _made(
        self, tagged: DataFrame, plan: Plan, parts: Sequence[Sequence[int]], empty: pl.DataFrame
    ) -> tuple[DataFrame, list[dict[str, Any]], list[Judged], Court]:
        """Every region released on some executor, every bucket judged and put in order; both tell what they found."""
        from pyspark.sql import functions as sql

        part_of = {n: at for at, numbers in enumerate(parts) for n in numbers}
        numbered = sql.element_at(
            sql.array(*[sql.lit(part_of[n]) for n in range(plan.regions.count)]), sql.col(REGION) + sql.lit(1)
        )
        shown = [c for c in empty.columns if plan.schema[c].role != "subject"]
        like = empty.select(
            *[pl.col(c).cast(pl.String) if c in plan.schema.quasi else pl.col(c) for c in shown],
            pl.lit(None, dtype=pl.Int32).alias(BUCKET),
            *([pl.col(plan.schema.subject).alias(PERSON)] if plan.schema.subject else []),
            pl.lit(None, dtype=pl.String).alias(FIGURES),
        )
        kinds = spark_schema(work.arrow_of(like))
        made = (
            tagged.withColumn(REGION, numbered.cast("int"))
            .groupBy(REGION)
            .applyInArrow(work.solving(plan, like), kinds)
        )
        compared = [p.sensitive for p in plan.promises if p.compares_with_all and p.sensitive is not None]
        whole: dict[str, Any] = {}
        if compared:  # what groups are compared with is known only when all are there
            made = kept(made)
            _told(made)
            person = None if plan.schema.subject is None else NAMES[PERSON]
            rows = made.filter(sql.col(FIGURES).isNull())
            whole = {n: (plan.domain.values[n], shares_of(rows, n, plan.domain.values[n], person)) for n in compared}
        role = "" if self.job.view is None else self.job.view.role
        made = kept(made.groupBy(quoted(NAMES[BUCKET])).applyInArrow(work.judging(plan, whole, role, like), kinds))
        solved, judged = _told(made)
        court = Court(Judge(plan.schema, plan.promises), sensitive_levels(plan), whole)
        return made.filter(sql.col(FIGURES).isNull()).drop(FIGURES, NAMES[BUCKET]), solved, judged, court

    def _floats(self, rows: DataFrame, name: str) -> pl.DataFrame:
        """A frame that tells whether all numbers of a column are whole: one that is not, if there is any."""
        from pyspark.sql import functions as sql

        column = sql.col(quoted(name))
        found = (
            rows.select(quoted(name)).filter(column != sql.floor(column)).limit(1) if _is_float(rows, name) else None
        )
        return work.frame_of((rows.select(quoted(name)).limit(0) if found is None else found).toArrow())


def _told(made: DataFrame) -> tuple[list[dict[str, Any]], list[Judged]]:
    """What regions and buckets told beside their rows; raises the error of a region that could not be released."""
    from pyspark.sql import functions as sql

    solved, judged = [], []
    for row in made.filter(sql.col(FIGURES).isNotNull()).select(FIGURES).collect():
        found = msgspec.json.decode(row[0])
        if "error" in found:
            kind, message, where, hint = found["error"]
            raise getattr(errors, kind)(message, where=where, hint=hint)
        if "judged" in found:
            judged.append(msgspec.convert(found["judged"], Judged, str_keys=True))
            continue
        solved.append(
            {
                "loss": msgspec.convert(found["loss"], Loss),
                "bits": tuple(found["bits"]),
                "before": {int(size): count for size, count in found["before"].items()},
            }
        )
    return solved, judged


def _may_withhold(plan: Plan, name: str) -> bool:
    """Whether a value of a column keeps its rows from being released."""
    levels, codes = plan.domain.compiled[name]
    return bool((codes < 0).any()) or (levels.missing >= 0 and plan.schema[name].missing == "suppress")


def _on_disk() -> Any:
    """Where rows with their regions wait: they are read once more, and memory is needed for the regions."""
    from pyspark import StorageLevel

    return StorageLevel.DISK_ONLY


def _is_float(rows: DataFrame, name: str) -> bool:
    return rows.schema[name].dataType.typeName() in ("float", "double")


def _finish(job: TableJob) -> Any:
    """Hidden columns back in their places, on an executor."""
    schema, view = job.schema, job.view
    assert view is not None

    def finish(rows: pl.DataFrame) -> pl.DataFrame:
        from shoal.views.masked_table import MaskedTable

        return MaskedTable(rows, schema, view, pl.Series([], dtype=pl.Int64)).finish(rows, {})

    return finish


def _tagged_schema(rows: DataFrame) -> StructType:
    from pyspark.sql.types import IntegerType, StructType

    return StructType(list(rows.schema.fields)).add(REGION, IntegerType())
