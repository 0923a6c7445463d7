"""Curves on a real Spark: one region is the release in memory, several keep every promise over the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.core.errors import InputError, PromiseError, UsageError
from shoal.policy.load import parse
from tests.cli.in_process import call

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore")]
ASKED: dict[str, Any] = {"series": True, "id": "who", "sensitive": ["tariff"], "k": 6, "p": 3, "seed": 4}
POLICY = """
dataset: meters
columns:
  who: subject
  street: identifier
  W0: {role: quasi, type: int}
  W1: {role: quasi, type: int}
  W2: {role: quasi, type: int}
  W3: {role: quasi, type: int}
  W4: {role: quasi, type: int}
  W5: {role: quasi, type: int}
  tariff: sensitive
views:
  research:
    show: [W0, W1, W2, W3, W4, W5, tariff]
    masks: {tariff: {use: substitute, map: {day: d, night: n, flat: f}}}
    promises: [{use: kP-anonymity, k: 6, p: 3}, {use: l-diversity, l: 2, column: tariff}]
"""


@pytest.fixture(autouse=True)
def small_regions(monkeypatch):
    monkeypatch.setattr("shoal.release.regional.plan.FEWEST", 40)


def meters(people: int, seed: int = 1) -> pl.DataFrame:
    chance = np.random.default_rng(seed)
    height, turn = chance.gamma(2.0, 40.0, people), chance.uniform(0, 6, people)
    values = height[:, None] * (1.5 + np.sin(np.arange(6)[None, :] + turn[:, None])) + chance.uniform(0, 3, (people, 6))
    return pl.DataFrame(
        {
            "who": np.arange(people),
            **{f"W{at}": values[:, at].astype(np.int64) for at in range(6)},
            "tariff": chance.choice(["day", "night", "flat"], people),
        }
    )


def on_spark(spark, frame: pl.DataFrame, policy: Any = None, **asked: Any):
    import shoal.spark

    rows = spark.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return shoal.spark.anonymize(rows.repartition(3), policy, **asked)


def frame_of(data) -> pl.DataFrame:
    return pl.from_arrow(data.toArrow())


def sorted_rows(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("group").cast(pl.Int64)).sort(frame.columns)


def test_curves_of_one_region_are_the_release_in_memory(spark):
    frame = meters(120)
    release = on_spark(spark, frame, **ASKED)
    memory = shoal.anonymize(frame, **ASKED)
    assert sorted_rows(frame_of(release.data)).equals(sorted_rows(memory.data))
    for figure in ("rows", "released", "withheld", "findings", "figures", "verified", "method"):
        assert getattr(release.report, figure) == getattr(memory.report, figure), figure


def test_curves_of_several_regions_pass_the_ordinary_verifier_and_do_not_hang_on_the_order(spark):
    frame = meters(900)
    asked = {**ASKED, "k": 4, "p": 2, "l": 2, "rows_per_region": 250}
    release = on_spark(spark, frame, **asked)
    rows = frame_of(release.data)
    verdict = shoal.verify(rows, sensitive=["tariff"], k=4, p=2, l=2)
    assert verdict.kept, str(verdict)
    assert any("regions" in note for note in release.report.notes)
    assert rows.height == release.report.released == 900 - sum(release.withheld.values())
    assert rows["group"].n_unique() == release.report.figures["groups"] == rows["group"].max() + 1
    again = on_spark(spark, frame.sample(fraction=1.0, shuffle=True, seed=3), **asked)
    assert sorted_rows(frame_of(again.data)).equals(sorted_rows(rows))
    # cut by height, they lose little more than together
    whole = shoal.anonymize(frame, **{**ASKED, "k": 4, "p": 2, "l": 2}).report.figures
    assert release.report.figures["value_total"] <= 1.25 * whole["value_total"]
    assert "VERIFIED" in release.report.page("report.txt")
    with pytest.raises(UsageError, match="not in memory"):
        release.report.page("report.html")


def test_a_region_that_cannot_keep_a_promise_joins_the_one_beside_it(spark):
    """The highest curves all have one tariff: by themselves they cannot be diverse."""
    frame = meters(600).sort(pl.mean_horizontal(f"W{at}" for at in range(6)))
    frame = frame.with_columns(
        pl.when(pl.int_range(pl.len()) >= 400).then(pl.lit("day")).otherwise("tariff").alias("tariff")
    )
    release = on_spark(spark, frame, **{**ASKED, "k": 4, "p": 2, "l": 1.2, "rows_per_region": 200})
    verdict = shoal.verify(frame_of(release.data), sensitive=["tariff"], k=4, p=2, l=1.2)
    assert verdict.kept, str(verdict)
    assert "in 2 regions" in " ".join(release.report.notes)  # of three, the highest is not one


def test_the_command_releases_curves_of_a_file(spark, tmp_path):
    """One region: the curves that the command releases without Spark, in a file that the ordinary verifier passes."""
    meters(120).write_csv(tmp_path / "t.csv")
    words = ["anonymize", "t.csv", "--series", "--id", "who", "--sensitive", "tariff", "--k", "6", "--p", "3"]
    words += ["--seed", "4"]
    done = call([*words, "--engine", "spark", "-o", "spark.csv", "--report", "spark.json"], tmp_path, None, {})
    assert done.returncode == 0, done.stderr
    assert "VERIFIED" in done.stderr
    here = call([*words, "-o", "here.csv"], tmp_path, None, {})
    assert here.returncode == 0, here.stderr
    rows, expected = (pl.read_csv(tmp_path / f"{name}.csv") for name in ("spark", "here"))
    assert rows.sort(rows.columns).equals(expected.sort(rows.columns))
    verified = call(["verify", "spark.csv", "--k", "6", "--p", "3", "--sensitive", "tariff"], tmp_path, None, {})
    assert verified.returncode == 0, verified.stderr
    assert {f.name for f in tmp_path.iterdir()} == {"t.csv", "spark.csv", "spark.json", "here.csv"}


def test_what_the_command_cannot_do_with_curves_on_spark_is_refused_before_it_writes(spark, tmp_path):
    meters(120).write_csv(tmp_path / "t.csv")
    words = ["anonymize", "t.csv", "--series", "--id", "who", "--k", "6", "--p", "3", "--engine", "spark"]
    for more, word in ((["--report", "r.html"], "not pictured"), (["--compact"], "released without it")):
        done = call([*words, "-o", "out.csv", *more], tmp_path, None, {})
        assert done.returncode == 2
        assert word in done.stderr
        assert "hint:" in done.stderr
        assert {f.name for f in tmp_path.iterdir()} == {"t.csv"}
    with pytest.raises(UsageError, match="in memory"):
        shoal.anonymize(meters(90), **ASKED, engine="spark")


def test_a_policy_hides_and_masks(spark):
    frame = meters(200).with_columns(pl.lit("Marked Lane 7").alias("street"))
    release = on_spark(spark, frame, parse(POLICY), view="research", rows_per_region=80)
    rows = frame_of(release.data)
    assert set(rows["tariff"].unique()) <= {"d", "n", "f"}
    assert set(rows.columns) == {"group", *[f"W{at}" for at in range(6)], "pattern", "level", "tariff"}
    assert not any("Marked" in str(row) for row in rows.rows())


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"t": 0.2}, "compares a group with all curves"),
        ({"pattern": "auto"}, "released without it"),
        ({"id": "nobody"}, "there is no column"),
        ({"k": 400}, "cannot be reached"),
    ],
)
def test_what_spark_cannot_do_is_refused(spark, wishes, words):
    with pytest.raises((UsageError, InputError, PromiseError), match=words):
        on_spark(spark, meters(90), **{**ASKED, **wishes})


def test_a_mask_over_windows_is_refused(spark):
    shuffled = POLICY.replace(
        "{use: substitute, map: {day: d, night: n, flat: f}}", "{use: shuffle, window: {use: tumbling, size: 9}}"
    )
    with pytest.raises(UsageError, match="windows of rows"):
        on_spark(spark, meters(90), parse(shuffled), view="research")


def test_a_curve_that_stands_twice_is_refused(spark):
    frame = meters(90)
    with pytest.raises(InputError, match="stands twice"):
        on_spark(spark, pl.concat([frame, frame[:1]]), **ASKED)
