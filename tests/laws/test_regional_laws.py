"""A table that does not fit in memory: the same release where it is one region, a verified one where it is many."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.connect import files
from shoal.core.errors import PromiseError, ShoalError
from shoal.datasets.hospital import hospital
from shoal.policy.load import parse
from shoal.release.job import job_of
from shoal.release.regional import survey
from shoal.release.regional.choose import LargeTable
from shoal.release.regional.scattered import Room
from shoal.release.wishes import Wishes

ASKED: dict[str, Any] = {
    "quasi": {"zip": {"use": "prefix", "length": 5}, "sex": None, "age": "range"},
    "sensitive": ["diag"],
    "plain": ["gluc"],
    "k": 4,
    "effort": "low",
    "seed": 5,
}
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


def regional(frame: pl.DataFrame, folder: Path, most: int, ending: str = "csv", at_once: int = 1, **asked: Any) -> Any:
    """The release in regions, and its file."""
    source, target = folder / f"table.{ending}", folder / f"release.{ending}"
    files.write(frame, str(source))
    job = job_of(Wishes({**ASKED, **asked} if "policy" not in asked else asked))
    table = LargeTable(job, str(source), frame.height, most, 1, types=job.types, at_once=at_once)
    release = table.release(str(target))
    assert {f.name for f in folder.iterdir()} == {source.name, target.name}, "something was left behind"
    return release, target


def in_memory(folder: Path, ending: str = "csv", **asked: Any) -> bytes:
    job = job_of(Wishes({**ASKED, **asked} if "policy" not in asked else asked))
    data = files.read(str(folder / f"table.{ending}"), types=job.types, exact=job.exact)
    files.write(job.run(data).data, str(folder / f"memory.{ending}"))
    return (folder / f"memory.{ending}").read_bytes()


@pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"l": 2, "subject": "pid", "plain": []},
        {"t": 0.4, "method": "mondrian", "effort": None},
        {"cells": "bounds"},
        {"policy": parse(POLICY), "seed": 3},
    ],
    ids=["k", "people", "t", "bounds", "policy"],
)
def test_a_table_that_is_one_region_is_released_as_in_memory_byte_for_byte(more, ending, tmp_path):
    frame = hospital(600, seed=2, visits=1.4)
    release, target = regional(frame, tmp_path, 10_000, ending, **more)
    assert target.read_bytes() == in_memory(tmp_path, ending, **more)
    assert release.report.verified


def test_the_figures_of_one_region_are_those_of_the_table_in_memory(tmp_path):
    frame = hospital(600, seed=2)
    release, _ = regional(frame, tmp_path, 10_000)
    whole = shoal.anonymize(frame, **ASKED).report
    for figure in ("rows", "released", "withheld", "left_out", "findings", "risk_before", "risk_after", "size_counts"):
        assert getattr(release.report, figure) == getattr(whole, figure), figure
    assert [c.name for c in release.report.columns] == [c.name for c in whole.columns]
    assert [(c.distinct, c.alone) for c in release.report.columns] == [(c.distinct, c.alone) for c in whole.columns]
    assert release.report.loss.gcp == pytest.approx(whole.loss.gcp, rel=1e-12)
    assert release.report.loss.entropy == pytest.approx(whole.loss.entropy, rel=1e-9)
    assert release.report.loss.discernibility == whole.loss.discernibility


@pytest.fixture
def small_regions(monkeypatch):
    """Regions of a few rows, so that a small table has many."""
    monkeypatch.setattr("shoal.release.regional.plan.FEWEST", 40)
    monkeypatch.setattr("shoal.release.regional.parting.TOO_LARGE", 10)
    monkeypatch.setattr("shoal.release.regional.survey.BATCH", 300)
    monkeypatch.setattr("shoal.release.regional.survey.AT_ONCE", 200)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"l": 2, "subject": "pid", "plain": []},
        {"t": 0.5, "method": "mondrian", "effort": None},
        {"t": 0.4, "subject": "pid", "plain": [], "method": "mondrian", "effort": None},
        {"cells": "bounds"},
        {"method": "microaggregation", "effort": None},
    ],
    ids=["k", "people", "t", "t of people", "bounds", "microaggregation"],
)
def test_a_release_in_regions_passes_the_ordinary_verifier(more, tmp_path, small_regions):
    frame = hospital(3000, seed=2, visits=1.4 if "subject" in more else 1.0)
    release, target = regional(frame, tmp_path, 300, "parquet", **more)
    data = pl.read_parquet(target)
    assert "regions" in " ".join(release.report.notes)
    assert data.height == release.report.released == 3000 - sum(release.report.withheld.values())
    quasi = [c for c in data.columns if c not in ("diag", "gluc")]
    promised = {n: more[n] for n in ("l", "t") if n in more}
    # the release does not say whose its rows are: rows are counted, and people are by the findings of the report
    verdict = shoal.verify(data, quasi=quasi, sensitive=["diag"], k=4, **({} if "subject" in more else promised))
    assert verdict.kept
    assert [f.reached for f in verdict.findings if "subject" not in more] == [
        f.reached for f in release.report.findings if "subject" not in more
    ]
    assert release.report.verified
    assert sum(size * count for size, count in release.report.size_counts) == data.height


def test_people_are_counted_across_regions_not_rows(tmp_path, small_regions):
    """Everybody has rows in many regions: a group of four rows may be one person."""
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "pid": [f"p{i}" for i in rng.integers(0, 150, 3000)],
            "age": rng.integers(0, 100, 3000),
            "diag": rng.choice(["a", "b", "c"], 3000),
        }
    )
    asked = {"quasi": ["age"], "sensitive": ["diag"], "subject": "pid", "plain": [], "k": 6}
    release, target = regional(frame, tmp_path, 250, "parquet", **asked)
    # the people behind a cell, from the original: an independent count
    held = {
        cell: frame.filter(pl.col("age").is_between(*_ends(cell)))["pid"].n_unique()
        for cell in pl.read_parquet(target)["age"].unique().to_list()
    }
    assert min(held.values()) >= 6
    assert all(f.kept and f.unit == "people" for f in release.report.findings)


def _ends(cell: str) -> tuple[int, int]:
    if cell == "*":
        return 0, 100
    low, _, high = cell.strip("[]").partition(", ")
    return int(low), int(high or low)


@settings(max_examples=4)
@given(seed=st.integers(0, 1000), k=st.integers(2, 6))
def test_the_order_of_the_input_changes_nothing_and_tells_nothing(seed, k, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shoal.release.regional.plan.FEWEST", 40)
        patch.setattr("shoal.release.regional.parting.TOO_LARGE", 10)
        patch.setattr("shoal.release.regional.survey.BATCH", 200)
        frame = hospital(800, seed=seed)
        one, two = (tmp_path_factory.mktemp("order") for _ in range(2))
        _, first = regional(frame, one, 150, k=k)
        _, second = regional(frame.sample(fraction=1.0, shuffle=True, seed=1), two, 150, k=k)
        assert first.read_bytes() == second.read_bytes()


def test_regions_worked_on_together_give_the_release_of_one_after_the_other(tmp_path, small_regions, monkeypatch):
    """Neither the number of threads nor when rows are written to disk changes a byte."""
    frame = hospital(2000, seed=3)
    made = []
    for at_once in (1, 3):
        (tmp_path / f"{at_once}").mkdir()
        made.append(regional(frame, tmp_path / f"{at_once}", 200, at_once=at_once)[1].read_bytes())
        monkeypatch.setattr(LargeTable, "room", property(lambda table: Room(table.most, table.at_once, 10**6)))
    assert made[0] == made[1]


@settings(max_examples=30)
@given(
    rows=st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abc"), st.integers(0, 9)), min_size=1, max_size=60),
    at_once=st.integers(1, 12),
    people=st.booleans(),
)
def test_what_is_counted_in_parts_is_what_is_counted_at_once(rows, at_once, people):
    scan = pl.LazyFrame(rows, schema={"x": pl.Int64, "y": pl.String, "who": pl.Int64}, orient="row")
    person = "who" if people else None
    found = []
    for limit in (at_once, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(survey, "AT_ONCE", limit)
            looks = survey.OnDisk(scan, person)
            asked = [looks.links(["x", "y"]), looks.singles(["x", "y"]), looks.singles(["y"]), looks.distinct("x")]
            shares = survey.shares_of(scan, "y", pl.Series(["a", "b", "c"]), person).tolist()
            found.append([*asked, looks.stable(["x", "y"], 0.9), shares])
    assert found[0] == found[1]
    together = Counter((x, y) for x, y, _ in rows)
    assert found[0][3] == (len({x for x, _, _ in rows}), sum(n == 1 for n in Counter(x for x, _, _ in rows).values()))
    if not people:
        assert found[0][1] == (len(rows), sum(n == 1 for n in together.values()))


def test_rows_of_a_region_do_not_stand_together_in_the_order_of_the_input(tmp_path, small_regions):
    """The plain column numbers the rows of the input: neighbours in the release must not be neighbours there."""
    frame = hospital(2000, seed=1).with_columns(gluc=pl.int_range(2000))
    _, target = regional(frame, tmp_path, 200, waive=["unique-plain"])
    place = pl.read_csv(target)["gluc"].to_numpy()
    near = np.mean(np.abs(np.diff(place)) <= 3)
    assert near < 0.02  # of a random order 0.003 are expected, and 1 of the input's
    assert abs(np.corrcoef(place, np.arange(len(place)))[0, 1]) < 0.1


def test_a_region_of_one_person_joins_the_one_beside_it(tmp_path, small_regions):
    """One person has all rows of an age that nobody shares: alone they could not be released."""
    others = hospital(1500, seed=4).with_columns(pl.col("age").cast(pl.Int64) % 40)
    lonely = hospital(400, seed=5).with_columns(pid=pl.lit("only one"), age=pl.lit(99, dtype=pl.Int64))
    frame = pl.concat([others, lonely], how="vertical_relaxed")
    release, target = regional(frame, tmp_path, 150, subject="pid", plain=[], waive=["linked-rows"])
    cells = pl.read_csv(target)["age"].cast(pl.String)
    assert release.report.verified
    assert not (cells == "99").any()


def test_a_column_that_links_the_rows_of_a_person_is_refused_in_regions_unless_waived(tmp_path, small_regions):
    frame = hospital(1500, seed=2, visits=3.0)
    (tmp_path / "no").mkdir()
    with pytest.raises(PromiseError, match=r"'ins_no' may show which rows belong to one person"):
        regional(frame, tmp_path / "no", 150, subject="pid", plain=["ins_no"])
    assert not (tmp_path / "no" / "release.csv").exists()
    (tmp_path / "yes").mkdir()
    waived = {"subject": "pid", "plain": ["ins_no"], "waive": ["linked-rows", "unique-plain"]}
    release, _ = regional(frame, tmp_path / "yes", 150, **waived)
    assert any("not judged" in f.note for f in release.report.findings)


def test_a_plain_column_that_is_a_name_is_refused_in_regions_as_in_memory(tmp_path, small_regions):
    frame = hospital(1500, seed=2)
    with pytest.raises(PromiseError, match=r"have a value of their own in the column 'ins_no'"):
        regional(frame, tmp_path, 150, plain=["ins_no"])


def test_a_policy_in_regions_masks_hides_and_counts_people(tmp_path, small_regions):
    frame = hospital(1500, seed=2, visits=1.3)
    release, target = regional(frame, tmp_path, 200, policy=parse(POLICY), seed=3)
    data = pl.read_csv(target, infer_schema=False)
    memory = shoal.anonymize(frame, policy=parse(POLICY), seed=3)
    assert data.columns == memory.data.columns
    assert set(data["ins_no"].unique()) == {"*"}
    assert all(float(v) % 10 == 0 for v in data["gluc"].unique())
    assert release.report.findings[0].unit == "people"


def test_what_regions_cannot_promise_is_refused_before_any_work(tmp_path, monkeypatch):
    from shoal.release.regional import choose

    monkeypatch.setattr(choose, "PER_ROW", 10**9)
    files.write(hospital(50), str(tmp_path / "t.csv"))
    for more, option in (({"method": "datafly"}, "--method"), ({"keep_order": True}, "--keep-order")):
        job = job_of(Wishes({**ASKED, "effort": None, **more}))
        with pytest.raises(ShoalError, match=option):
            choose.large_table(job, str(tmp_path / "t.csv"))


def test_promises_that_only_large_regions_can_keep_are_refused(tmp_path, monkeypatch):
    """Of each age everybody has the same diagnosis: no region by age is close to the whole."""
    monkeypatch.setattr("shoal.release.regional.plan.FEWEST", 40)
    ages = np.arange(4000) % 100
    frame = pl.DataFrame({"age": ages, "diag": [f"d{age // 10}" for age in ages]})
    with pytest.raises(PromiseError, match="4,000 rows must be released as one region"):
        regional(frame, tmp_path, 250, quasi=["age"], plain=[], t=0.05, method="mondrian", effort=None)
    assert not list(tmp_path.glob("release*"))
