"""Tables on a real Spark: every release passes the ordinary verifier, and is one whatever happens to executors."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.core.errors import InputError, PromiseError, UsageError
from shoal.datasets.hospital import hospital
from shoal.policy.load import parse
from shoal.runtime.spark import table, work
from shoal.runtime.spark.looks import sampled
from tests.cli.in_process import call

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore")]

ASKED: dict[str, Any] = {
    "quasi": {"zip": {"use": "prefix", "length": 5}, "sex": None, "age": "range"},
    "sensitive": ["diag"],
    "plain": ["gluc"],
    "k": 4,
    "effort": "low",
    "seed": 5,
}
ROWS = 600  # of the release with an executor killed: two regions
POLICY = """
dataset: hospital
columns:
  pid: subject
  name: identifier
  zip: {role: quasi, type: str, hierarchy: {use: prefix, length: 5}}
  sex: quasi
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  ins_no: identifier
  diag: sensitive
  gluc: plain
views:
  research:
    show: [zip, sex, age, diag, gluc, ins_no]
    masks: {gluc: {use: round, to: 10}, ins_no: suppress}
    promises: [{use: k-anonymity, k: 4}, {use: l-diversity, l: 2, column: diag}]
    method: {use: local, effort: low}
"""


@pytest.fixture(autouse=True)
def small_regions(monkeypatch):
    monkeypatch.setattr("shoal.release.regional.plan.FEWEST", 40)


def frame_of(data) -> pl.DataFrame:
    return pl.from_arrow(data.toArrow())


def made(spark, frame: pl.DataFrame, **asked: Any):
    import shoal.spark

    return shoal.spark.anonymize(spark.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest())), **asked)


def test_a_table_that_is_one_region_is_the_release_in_memory(spark):
    frame = hospital(600, seed=2)
    release = made(spark, frame, **ASKED)
    memory = shoal.anonymize(frame, **ASKED)
    assert frame_of(release.data).equals(memory.data)
    for figure in ("released", "withheld", "findings", "risk_before", "risk_after", "size_counts"):
        assert getattr(release.report, figure) == getattr(memory.report, figure), figure
    assert release.report.loss.entropy == pytest.approx(memory.report.loss.entropy, rel=1e-9)


def test_a_release_in_regions_passes_the_ordinary_verifier_and_does_not_hang_on_the_order(spark):
    frame = hospital(2500, seed=2)
    asked = {**ASKED, "t": 0.5, "method": "mondrian", "effort": None, "rows_per_region": 400}
    release = made(spark, frame, **asked)
    data = frame_of(release.data)
    verdict = shoal.verify(data, quasi=["zip", "sex", "age"], sensitive=["diag"], k=4, t=0.5)
    assert verdict.kept
    # t is judged against everybody, not against the region: the same figure as of the whole release at once
    assert [f.reached for f in verdict.findings] == pytest.approx([f.reached for f in release.report.findings])
    assert data.height == 2500
    again = frame_of(made(spark, frame.sample(fraction=1.0, shuffle=True, seed=3), **asked).data)
    assert again.sort(pl.all()).equals(data.sort(pl.all()))


def test_a_policy_counts_people_masks_and_hides(spark):
    frame = hospital(1500, seed=2, visits=1.3)
    release = made(spark, frame, policy=parse(POLICY), seed=3, rows_per_region=400)
    data = frame_of(release.data)
    assert data.columns == shoal.anonymize(frame, policy=parse(POLICY), seed=3).data.columns
    assert set(data["ins_no"].unique()) == {"*"}
    assert set(data["gluc"] % 10) == {0}
    assert all(f.kept and f.unit == "people" for f in release.report.findings)


def test_rows_that_cannot_be_released_are_counted_as_in_memory(spark):
    """Where values may be withheld, codes are counted row by row: columns counted alone would know too much."""
    policy = parse(POLICY.replace("age: {role: quasi, type: int,", "age: {role: quasi, type: int, missing: suppress,"))
    frame = hospital(500, seed=2).with_columns(
        pl.when(pl.int_range(pl.len()) % 9 == 0).then(None).otherwise("age").alias("age")
    )
    release = made(spark, frame, policy=policy, seed=3)
    memory = shoal.anonymize(frame, policy=policy, seed=3)
    assert frame_of(release.data).equals(memory.data)
    assert release.report.withheld == memory.report.withheld
    assert release.report.withheld["missing age"] == 56
    assert release.report.loss.entropy == pytest.approx(memory.report.loss.entropy, rel=1e-9)


def test_wrong_calls_and_promises_out_of_reach_are_errors_of_ours(spark):
    frame = hospital(200, seed=2)
    with pytest.raises(PromiseError, match="cannot be reached"):
        made(spark, frame, **{**ASKED, "k": 500})
    with pytest.raises(InputError, match="there is no column 'height'"):
        made(spark, frame, quasi=["height"], k=3)
    with pytest.raises(UsageError, match="--method"):
        made(spark, frame, quasi=["age"], k=3, method="datafly")
    with pytest.raises(PromiseError, match="have a value of their own in the column 'ins_no'"):
        made(spark, frame, **{**ASKED, "plain": ["ins_no"]})


def test_the_command_gives_the_file_that_it_gives_without_spark(spark, tmp_path):
    """One region: the same bytes. ``--engine spark`` finds the session that is running."""
    hospital(700, seed=2).write_csv(tmp_path / "t.csv")
    words = ["anonymize", "t.csv", "--quasi", "zip,sex,age", "--hierarchy", "zip=prefix:5", "--sensitive", "diag"]
    words += ["--k", "4", "--seed", "5", "--effort", "low"]
    place = Path(spark.sparkContext.getCheckpointDir().removeprefix("file:")).parent
    done = call([*words, "--engine", "spark", "-o", "spark.csv"], tmp_path, None, {})
    assert done.returncode == 0, done.stderr
    # the session goes on, and keeps what it checkpoints where it did before
    assert Path(spark.sparkContext.getCheckpointDir().removeprefix("file:")).parent == place
    assert "VERIFIED" in done.stderr
    here = call([*words, "-o", "here.csv"], tmp_path, None, {})
    assert here.returncode == 0, here.stderr
    assert (tmp_path / "spark.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    assert {f.name for f in tmp_path.iterdir()} == {"t.csv", "spark.csv", "here.csv"}
    again = call([*words, "--engine", "spark", "-o", "spark.csv", "--k", "9000"], tmp_path, None, {})
    assert again.returncode in (1, 2), again.stderr
    assert "hint:" in again.stderr
    assert (tmp_path / "spark.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_the_example_runs_as_its_page_says(spark, tmp_path, monkeypatch, capsys):
    folder = Path(__file__).parents[2] / "examples" / "spark"
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(folder / "make.py"), run_name="__main__")
    # the session was started in another folder, and Spark reads what is named from there
    named = [str(tmp_path / "visits.parquet"), str(folder / "policy.yaml"), str(tmp_path / "released")]
    monkeypatch.setattr(sys, "argv", ["release.py", *named])
    runpy.run_path(str(folder / "release.py"), run_name="__main__")
    assert "VERIFIED" in capsys.readouterr().out
    made = pl.read_parquet(tmp_path / "released" / "*.parquet")
    assert shoal.verify(made, quasi=["zip", "sex", "age"], sensitive=["diag"], k=5, l=2).kept


def one_too_few(solving):
    """A defective method: where executors release regions, one row of a group of k says what another group says."""

    def defective(plan, empty):
        honest = solving(plan, empty)

        def solve(key, table):
            from shoal.runtime.spark.work import arrow_of, frame_of

            rows = frame_of(honest(key, table))
            alike = pl.struct("zip", "sex", "age")
            size = rows.select(n=pl.len().over(alike))["n"]
            shown = rows["zip"].is_not_null()
            moved = int((shown & (size == 4)).arg_max())
            taken = int((shown & (size > 4)).arg_max())
            texts = [pl.when(pl.int_range(pl.len()) == moved).then(pl.lit(rows[n][taken])).otherwise(n).alias(n)
                     for n in ("zip", "sex", "age")]  # fmt: skip
            return arrow_of(rows.with_columns(texts))

        return solve

    return defective


def test_a_group_of_one_too_few_is_found_by_the_verdict_and_nothing_leaves(spark, tmp_path, monkeypatch):
    frame = hospital(300, seed=2)
    assert made(spark, frame, **ASKED).report.verified
    monkeypatch.setattr(work, "solving", one_too_few(work.solving))
    with pytest.raises(PromiseError, match="4-anonymity"):
        made(spark, frame, **ASKED)
    frame.write_csv(tmp_path / "t.csv")
    words = ["anonymize", "t.csv", "--quasi", "zip,sex,age", "--hierarchy", "zip=prefix:5", "--k", "4", "--seed", "5"]
    done = call([*words, "--engine", "spark", "-o", "r.csv", "--report", "r.html"], tmp_path, None, {})
    assert done.returncode == 1, done.stderr
    assert "4-anonymity" in done.stderr
    assert {f.name for f in tmp_path.iterdir()} == {"t.csv"}


def test_few_combinations_are_cut_as_evenly_as_many(spark, monkeypatch):
    """Twelve combinations of 400 rows, one of them half of all, and a sample of 300: each is in it by its rows."""
    chance = np.random.default_rng(3)
    half = np.where(np.arange(4800) < 2400, 0, chance.integers(0, 12, 4800))
    frame = pl.DataFrame({"age": 20 + half, "sex": np.where(half % 2, "f", "m")})
    rows = spark.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
    found = sampled(rows.repartition(3), 4800, 300)
    assert 280 <= found.height <= 320
    counts = found["age"].value_counts().join(frame["age"].value_counts(name="rows"), on="age")
    assert counts.height == 12
    assert ((counts["count"] - counts["rows"] / 16).abs() < 1).all()
    again = sampled(rows.repartition(7), 4800, 300)
    assert again.sort(pl.all()).equals(found.sort(pl.all()))

    sizes = []
    monkeypatch.setattr("shoal.runtime.spark.table.SAMPLE", 300)
    original = table._Run._parted

    def parted(self, tagged, *given):
        sizes.extend(row["count"] for row in tagged.groupBy(work.REGION).count().collect())
        return original(self, tagged, *given)

    monkeypatch.setattr(table._Run, "_parted", parted)
    release = made(spark, frame, quasi={"age": "range", "sex": None}, k=4, effort="low", seed=5, rows_per_region=600)
    assert frame_of(release.data).height == 4800
    # equal rows are never parted: the half is a region, the others have about what was asked
    assert len(sizes) >= 5
    assert sorted(sizes)[-1] <= 2400 + 600
    assert sorted(sizes)[-2] <= 900
    assert min(sizes) >= 100


def started(folder: Path, *words: str) -> dict[str, Any]:
    """What executors in processes of their own did: see ``cluster_release``."""
    said = [sys.executable, "-m", "tests.spark.cluster_release", str(folder), *words]
    done = subprocess.run(said, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_an_executor_killed_while_it_solves_a_region_changes_nothing(spark, tmp_path):
    told = started(tmp_path, "task")
    assert len(told["killed"]) == 1
    assert told["killed"][0] not in told["left"]
    assert told["tried"] > told["regions"] >= 2, "a region was solved again, as it was lost in the middle"
    disturbed = pl.read_parquet(tmp_path / "disturbed.parquet")
    still = made(spark, hospital(ROWS, seed=2), **ASKED, rows_per_region=ROWS // 2)
    assert frame_of(still.data).sort(pl.all()).equals(disturbed.sort(pl.all()))
    assert shoal.verify(disturbed, quasi=["zip", "sex", "age"], sensitive=["diag"], k=4).kept


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("SHOAL_LONG") != "1", reason="a minute and more of CPU; SHOAL_LONG=1 runs it")
def test_an_executor_killed_in_the_middle_changes_nothing(tmp_path):
    told = started(tmp_path)
    assert len(told["killed"]) == 1
    assert told["killed"][0] not in told["left"]
    still, disturbed = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("undisturbed", "disturbed"))
    assert still.sort(pl.all()).equals(disturbed.sort(pl.all()))
    assert shoal.verify(disturbed, quasi=["zip", "sex", "age"], sensitive=["diag"], k=4).kept
