"""Structured Streaming: masks row by row, z-anonymity with its state in Spark's, through a restart."""

from __future__ import annotations

import os
import random

import polars as pl
import pytest

from shoal.core.errors import ShoalError, UsageError
from shoal.core.keys import KeyRing
from shoal.policy.load import parse
from shoal.release.stream import LocalRunner, stream_job

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore")]
KEYS = KeyRing({"default": {1: bytes(range(32))}})
POLICY = parse("""
dataset: visits
columns:
  time: {role: time, unit: s}
  client: {role: subject, type: str}
  age: {role: plain, type: int}
  site: {role: quasi, type: str, hierarchy: {use: path, depth: 2}}
views:
  market:
    show: [time, site, age]
    promises: [{use: z-anonymity, z: 5, window: 20s}]
    method: z-anonymity
  ward:
    show: [age, site, client]
    masks: {client: {use: pseudonym}}
  groups:
    show: [site]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: batches, delay: 10}
  table:
    show: [site]
    promises: [{use: k-anonymity, k: 3}]
""")


def visits(first: int, count: int) -> pl.DataFrame:
    chance = random.Random(first)
    people = [chance.randrange(30) for _ in range(count)]
    return pl.DataFrame(
        {
            "time": [1000 + (first + at) // 4 for at in range(count)],
            "client": [f"p{p}" for p in people],
            "age": [None if p == 7 else p for p in people],  # a whole number that may be missing stays one
            "site": [f"domain{chance.randrange(3)}.site{chance.randrange(5)}" for _ in people],
        }
    )


def alone(*batches: pl.DataFrame) -> pl.DataFrame:
    """What one machine releases of the same micro-batches, each in the order of what it says."""
    job, out = stream_job(POLICY, "market", KEYS), []
    runner = LocalRunner(job, job.lasting_key(), out.append)
    for batch in batches:
        runner.feed(batch.sort(["time", *(c for c in batch.columns if c != "time")], nulls_last=True))
    return pl.concat(out)


def test_a_stream_is_counted_on_through_a_restart_as_on_one_machine(spark, tmp_path):
    import shoal.spark

    source, sink = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    batches = [visits(0, 200), visits(200, 200), visits(400, 150)]

    def run() -> None:
        events = spark.readStream.schema("time long, client string, age long, site string")
        events = events.option("maxFilesPerTrigger", 1).parquet(str(source))
        seen = shoal.spark.view(events, POLICY, "market", keys=KEYS)
        writer = seen.writeStream.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
        writer.format("parquet").start(str(sink)).awaitTermination()

    for number, batch in enumerate(batches):
        batch.write_parquet(source / f"{number}.parquet")
        os.utime(source / f"{number}.parquet", (1000 + number, 1000 + number))  # Spark reads the oldest file first
        if number:  # the second run has state to go on from, and a file more
            run()
    found = pl.read_parquet(sink / "*.parquet")
    whole = alone(*batches)
    assert found.schema["age"] == pl.Int64
    assert 400 < found.height < 550  # else it would say nothing: some are withheld,
    assert 10 < found["site"].str.contains(".", literal=True).sum() < 500  # some generalized, some neither
    assert found.sort(pl.all()).equals(whole.select(found.columns).cast(dict(found.schema)).sort(pl.all()))
    state = b"".join(f.read_bytes() for f in (tmp_path / "state").rglob("*") if f.is_file())
    assert b"domain1.site" not in state  # nobody reads a visit in the state


def test_a_micro_batch_that_is_repeated_gives_the_same_records(spark, tmp_path):
    """A sink that has written and then fails: Spark begins the micro-batch again, from the state before it."""
    import shoal.spark

    source = tmp_path / "in"
    source.mkdir()
    batches = [visits(0, 200), visits(200, 200), visits(400, 150)]
    for number, batch in enumerate(batches):
        batch.write_parquet(source / f"{number}.parquet")
        os.utime(source / f"{number}.parquet", (1000 + number, 1000 + number))
    seen: list[tuple[int, pl.DataFrame]] = []

    def written(rows, number: int) -> None:
        seen.append((number, pl.from_arrow(rows.toArrow())))
        if len(seen) == 2:
            raise RuntimeError("the sink broke after it had written")

    def run() -> None:
        events = spark.readStream.schema("time long, client string, age long, site string")
        events = events.option("maxFilesPerTrigger", 1).parquet(str(source))
        view = shoal.spark.view(events, POLICY, "market", keys=KEYS)
        writer = view.writeStream.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
        writer.foreachBatch(written).start().awaitTermination()

    with pytest.raises(Exception, match="the sink broke"):
        run()
    run()
    assert [number for number, _ in seen] == [0, 1, 1, 2]
    first, again = seen[1][1], seen[2][1]
    assert first.height > 50
    assert again.sort(pl.all()).equals(first.sort(pl.all()))
    whole = alone(*batches)
    found = pl.concat([seen[0][1], again, seen[3][1]])
    assert found.sort(pl.all()).equals(whole.select(found.columns).cast(dict(found.schema)).sort(pl.all()))


def test_masks_are_those_of_a_table(spark):
    import shoal
    import shoal.spark

    frame = visits(0, 50)
    data = spark.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
    found = pl.from_arrow(shoal.spark.view(data, POLICY, "ward", keys=KEYS).toArrow())
    here = shoal.view(frame, POLICY, "ward", keys=KEYS).data
    assert found.sort(pl.all()).equals(here.cast(dict(found.schema)).sort(pl.all()))


def test_what_spark_cannot_do_is_refused_before_anything_runs(spark):
    import shoal.spark

    data = spark.createDataFrame(visits(0, 5).to_arrow(compat_level=pl.CompatLevel.oldest()))
    with pytest.raises(UsageError, match="holds events back"):
        shoal.spark.view(data, POLICY, "groups", keys=KEYS)
    with pytest.raises(UsageError, match="groups of a table"):
        shoal.spark.view(data, POLICY, "table", keys=KEYS)
    with pytest.raises(ShoalError, match="key"):
        shoal.spark.view(data, POLICY, "market", keys=KeyRing())
