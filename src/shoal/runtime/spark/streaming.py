"""Views of a stream on Spark: masks row by row, z-anonymity with its state in Spark's own.

A micro-batch that Spark repeats after a failure begins from the same state with the same events, and a method draws
from keys alone: it gives the same records. That they are the same is what keeps copies harmless; see the page on Spark.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from shoal.core.errors import UsageError
from shoal.core.sealed_state import opened
from shoal.release.roles import MasksJob
from shoal.release.stream import LocalRunner, StreamJob
from shoal.runtime.spark.session import require_spark
from shoal.runtime.spark.work import arrow_of, frame_of, spark_schema
from shoal.views.frames import FrameGate

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PLACE, ROWS = "__shoal_place", "__shoal_rows"  # where events are counted together, and many of them as one value


def masked(job: MasksJob, data: DataFrame) -> DataFrame:
    """Every row as a role sees it, by masks alone: nothing is remembered."""
    require_spark()
    view, keys = job.view, job.keys
    assert view is not None
    if view.windows or view.sample is not None:
        raise UsageError(
            "Spark masks row by row: no windows, no samples", where=f"views.{view.role}", hint="shoal serve has both"
        )
    empty = frame_of(data.limit(0).toArrow()) if not data.isStreaming else _empty(data)
    gate = FrameGate(view, empty.schema, keys)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = FrameGate(view, empty.schema, keys)
        for batch in batches:
            yield from arrow_of(mine.apply(frame_of(batch)).data).to_batches()

    return data.mapInArrow(work, spark_schema(arrow_of(gate.apply(empty).data)))


def counted(job: StreamJob, data: DataFrame) -> DataFrame:
    """The records a method without delay releases. All events are counted in one place, by one task at a time."""
    require_spark()
    if job.method.groups:
        raise UsageError(
            "a method that holds events back needs a clock between micro-batches, which Spark has not",
            where=f"method: {job.method.use}",
            hint="z-anonymity answers at once; groups are served on Kafka",
        )
    job.lasting_key()  # state outlives this process, so its key must: an error without a ring, before anything runs
    released = _released_like(job, _empty(data))
    # transformWithState keeps state in RocksDB only; a checkpoint that is there goes on with what it was made with
    data.sparkSession.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    packed = data.mapInArrow(_packing, f"{PLACE} int, {ROWS} binary")
    states = packed.groupBy(PLACE).transformWithStateInPandas(_counting(job), f"{ROWS} binary", "append", "none")
    return states.mapInArrow(_unpacking(released), spark_schema(arrow_of(released)))


def _empty(data: DataFrame) -> pl.DataFrame:
    """No rows, of the types that Spark will hand over; a stream cannot be asked for any."""
    session = data.sparkSession
    return frame_of(session.createDataFrame([], data.schema).toArrow())


def _released_like(job: StreamJob, empty: pl.DataFrame) -> pl.DataFrame:
    found = LocalRunner(job, job.lasting_key(), lambda frame: None).nothing(empty)
    return found.with_columns(pl.col(n).cast(pl.String) for n in job.schema.quasi if n in found.columns)


def _packing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Many events as one value: a state function is handed pandas frames, in which whole numbers do not stay whole."""
    for batch in batches:
        yield from arrow_of(_packed(frame_of(batch)).select(pl.lit(0, pl.Int32).alias(PLACE), ROWS)).to_batches()


def _packed(rows: pl.DataFrame) -> pl.DataFrame:
    out = io.BytesIO()
    rows.write_ipc(out)
    return pl.DataFrame({ROWS: [out.getvalue()]}, schema={ROWS: pl.Binary})


def _counting(job: StreamJob) -> StatefulProcessor:
    """Events of a micro-batch, in the order of what they say, through the method; its state stays with Spark."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Counting(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.state = handle.getValueState("method", "snapshot binary")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802 - Spark calls it so
            # by place: some versions of Spark hand columns over without their names
            parts = [pl.read_ipc(io.BytesIO(value)) for frame in rows for value in frame.iloc[:, -1]]
            found = self.state.get() if self.state.exists() else None
            snapshot = None if found is None else bytes(found[0])
            out: list[pl.DataFrame] = []
            runner = opened(lambda by: LocalRunner(job, by, out.append, snapshot=snapshot), job.lasting_keys())
            events = pl.concat(parts)
            # Spark hands over the rows of a micro-batch in any order: a repetition must decide alike
            by = [*job.schema.of("time"), *(n for n in events.columns if n not in job.schema.of("time"))]
            runner.feed(events.sort(by, nulls_last=True))
            self.state.update((runner.snapshot(),))
            for frame in out:
                yield _packed(frame).to_pandas()

    return Counting()


def _unpacking(like: pl.DataFrame) -> Any:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for value in frame_of(batch)[ROWS]:
                yield from arrow_of(pl.read_ipc(io.BytesIO(value)).select(like.columns).cast(like.schema)).to_batches()

    return work
