"""What executors do: functions from Arrow to Arrow that know the plan and nothing of Spark.

A function that fails with an error of ours returns it as a row, so that the driver can raise it as it is: what Spark
makes of an exception is a page of two languages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import polars as pl

from shoal.connect.pieces import with_texts
from shoal.core.errors import ShoalError
from shoal.core.keys import KeyRing
from shoal.core.order import publication_order
from shoal.core.schema import Schema
from shoal.core.table import coded
from shoal.policy.document import Policy
from shoal.release.judge import Judge
from shoal.release.regional.judging import Court
from shoal.release.regional.plan import BUCKET, PERSON, Plan, sensitive_levels, solve, stands_alone
from shoal.tables.improve import draws
from shoal.verifier import Whole
from shoal.views.masked_table import BESIDE, masked_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

REGION, FIGURES = "__shoal_region", "__shoal_figures"
# a name with a zero byte is one that no file can have, and one that Spark cannot have either
NAMES = {PERSON: "__shoal_person", BUCKET: "__shoal_bucket", BESIDE: "__shoal_subject"}
Batches = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
Grouped = Callable[["tuple[pa.Scalar, ...]", "pa.Table"], "pa.Table"]


def frame_of(table: Any) -> pl.DataFrame:
    """Rows from Spark, their columns named as everywhere."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.rename({there: here for here, there in NAMES.items() if there in frame.columns})


def arrow_of(frame: pl.DataFrame) -> pa.Table:
    """Rows for Spark."""
    import pyarrow as pa

    named = frame.rename({here: there for here, there in NAMES.items() if here in frame.columns})
    table = named.to_arrow(compat_level=pl.CompatLevel.oldest())
    # Spark knows texts of up to 2 GB a batch only, and holds a function to its very types
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return table.cast(pa.schema([pa.field(f.name, plain.get(f.type, f.type)) for f in table.schema]))


def spark_schema(table: pa.Table) -> StructType:
    """The types of an Arrow table, as Spark calls them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema)


def masking(policy: Policy, role: str, keys: KeyRing) -> Batches:
    """Mask rows as a role sees them, with the true subject beside them."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from arrow_of(masked_table(policy, role, frame_of(batch), keys).frame).to_batches()

    return work


def counting(schema: Schema, plan: Plan) -> Batches:
    """How often each code stands in these rows, and which cannot be released and why: (kind, name, code, rows)."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            matrix, lost, reasons = coded(frame_of(batch), schema, plan.domain)
            rows = [("withheld", reason, 0, count) for reason, count in reasons.items()]
            for j, name in enumerate(schema.quasi):
                counts = np.bincount(matrix[~lost, j], minlength=1)
                rows += [("code", name, int(code), int(counts[code])) for code in np.flatnonzero(counts)]
            kinds = {"kind": pl.String, "name": pl.String, "code": pl.Int32, "rows": pl.Int64}
            yield from arrow_of(pl.DataFrame(rows, schema=kinds, orient="row")).to_batches()

    return work


def tagging(plan: Plan) -> Batches:
    """The region of every row; rows that cannot be released are left out."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = frame_of(batch)
            matrix, lost, _ = coded(rows, plan.schema, plan.domain)
            tagged = rows.with_columns(pl.Series(REGION, plan.regions.of(matrix)))
            yield from arrow_of(tagged.filter(pl.Series(~lost))).to_batches()

    return work


def standing(plan: Plan) -> Grouped:
    """Whether the rows of a region can keep the promises by themselves."""

    def work(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        alone = stands_alone(plan, frame_of(table))
        kinds = {REGION: pl.Int32, "alone": pl.Boolean}
        return arrow_of(pl.DataFrame([(key[0].as_py(), alone)], schema=kinds, orient="row"))

    return work


def solving(plan: Plan, empty: pl.DataFrame) -> Grouped:
    """A region released: its rows, and one more with what the report needs."""

    def work(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        try:
            found = solve(plan, int(key[0].as_py()), frame_of(table).drop(REGION))
        except ShoalError as error:
            return arrow_of(_told(empty, {"error": [type(error).__name__, error.message, error.where, error.hint]}))
        rows = found.rows.with_columns(pl.lit(None, dtype=pl.String).alias(FIGURES)).select(empty.columns)
        figures = {
            "loss": found.loss,
            "bits": found.bits,
            "before": dict(found.before),
            "suppressed": found.suppressed,
        }
        return arrow_of(pl.concat([rows.cast(empty.schema), _told(empty, figures)]))

    return work


def _told(empty: pl.DataFrame, figures: Mapping[str, Any]) -> pl.DataFrame:
    told = msgspec.json.encode(figures).decode()
    return pl.DataFrame({FIGURES: [told]}).select(
        pl.col(FIGURES) if name == FIGURES else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in empty.schema.items()
    )


def judging(plan: Plan, whole: Mapping[str, Whole], role: str, empty: pl.DataFrame) -> Grouped:
    """A bucket in an order that tells nothing, and one more row with what the judge finds in it.

    What regions told stands in no bucket and is passed on.
    """
    # texts that stand for few different cells are sorted and compared faster as categories; the driver finds
    # them, because a plan travels without its compiled hierarchies
    few = plan.columns_of_few_cells()

    def work(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        bucket = key[0].as_py()
        if bucket is None:
            return table
        rows = frame_of(table).drop(FIGURES).with_columns(pl.col(few).cast(pl.Categorical))
        court = Court(Judge(plan.schema, plan.promises), sensitive_levels(plan), whole)
        judged = court.bucket(rows.drop(BUCKET))
        seed = plan.seed if plan.buckets == 1 else int(draws(plan.seed, 0x0DE4 + int(bucket), 1)[0] >> np.uint64(1))
        order = publication_order(rows.drop(BUCKET, PERSON, strict=False), seed, role)
        ordered = with_texts(rows[order]).with_columns(pl.lit(None, dtype=pl.String).alias(FIGURES))
        return arrow_of(pl.concat([ordered.select(empty.columns), _told(empty, {"judged": judged})]))

    return work


def finishing(finish: Callable[[pl.DataFrame], pl.DataFrame]) -> Batches:
    """Rows as they leave: hidden columns in their places."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from arrow_of(finish(frame_of(batch))).to_batches()

    return work
