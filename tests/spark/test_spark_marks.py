"""The law of ``tests/attacks/test_marks.py`` on Spark: releases, reports, talk, checkpoints, state and errors."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from shoal.core.errors import ShoalError
from shoal.policy.load import load
from tests.attacks.test_marks import KEYS, Marks, clean, clear, inputs, left, rows, run, uncompressed

__all__ = ["run"]  # a fixture
pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore")]
RESEARCH = ("anonymize", "inputs/in.parquet", "--policy", "policy.yaml", "--view", "research", "--engine", "spark")


def test_a_table_and_a_stream_on_spark(spark, run, tmp_path: Path, monkeypatch):
    import shoal.spark

    monkeypatch.setattr("shoal.release.regional.plan.FEWEST", 6)
    marks = Marks()
    table = rows(marks)
    inputs(tmp_path, table)
    run(*RESEARCH, "-o", "out.csv", "--report", "r.html", "--json")
    run(*RESEARCH, "-o", "no.csv", "--k", "1000", code=1)
    policy = load(tmp_path / "policy.yaml")
    events = tmp_path / "inputs" / "events"
    events.mkdir()
    odd = {**clear(table[0]), "zip": marks.text(), "diag": marks.text()}  # shown by one person, so never
    for number, batch in enumerate(([clear(row) for row in table], [odd, *map(clear, table)])):
        (events / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in batch))
    types = ", ".join(f"{name} {'long' if name in ('age', 'pay', 'time') else 'string'}" for name in table[0])
    for view in ("market", "desk"):
        source = spark.readStream.schema(types).option("maxFilesPerTrigger", 1).json(str(events))
        if view == "desk":
            source = source.where(f"diag != '{odd['diag']}'")  # this view shows what is in clear there
        writer = shoal.spark.view(source, policy, view, keys=KEYS).writeStream
        # Spark's own plans and offsets name the folder it reads, and no row
        writer = writer.option("checkpointLocation", str(tmp_path / f"state-{view}")).trigger(availableNow=True)
        writer.format("parquet").start(str(tmp_path / f"out-{view}")).awaitTermination()
        seen = pl.read_parquet(tmp_path / f"out-{view}" / "*.parquet")
        assert seen.height > 20
        clean({view: uncompressed(seen), **left(tmp_path)}, view)


def test_what_is_refused_on_spark_is_said_without_a_value(spark):
    import shoal.spark

    marks = Marks()
    frame = pl.DataFrame({"age": [20, 21, 20, 21] * 6, "name": [marks.text() for _ in range(24)]})
    data = spark.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
    for asked in ({"plain": ["name"], "k": 2}, {"quasi": ["name"], "k": 40}):
        with pytest.raises(ShoalError) as told:
            shoal.spark.anonymize(data, **{"quasi": ["age"], **asked})
        clean({"error": str(told.value).encode()}, asked)
