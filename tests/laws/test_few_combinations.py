"""Tables in which few combinations of quasi values have all rows: in regions of these, within the memory given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.connect import files
from shoal.core.errors import PromiseError
from shoal.release.job import job_of
from shoal.release.regional import files as roads
from shoal.release.regional import sample
from shoal.release.regional.choose import LargeTable
from shoal.release.regional.sample import Sampler
from shoal.release.wishes import Wishes

ASKED: dict[str, Any] = {"quasi": ["age", "sex"], "sensitive": ["diag"], "k": 4, "effort": "low", "seed": 5}


def table(rows: int, seed: int = 1) -> pl.DataFrame:
    """Twelve combinations."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {"age": rng.integers(30, 36, rows), "sex": rng.choice(["f", "m"], rows), "diag": rng.choice(list("abc"), rows)}
    )


def regional(frame: pl.DataFrame, folder: Path, most: int, ending: str = "csv", fits: int = 0, **asked: Any) -> Any:
    """The release in regions, and its file."""
    folder.mkdir(exist_ok=True)
    source, target = folder / f"table.{ending}", folder / "release.csv"
    files.write(frame, str(source))
    job = job_of(Wishes({**ASKED, **asked}))
    large = LargeTable(job, str(source), frame.height, most, 1, types=job.types, at_once=2, fits=fits)
    return large.release(str(target)), target


@pytest.fixture
def small_samples(monkeypatch):
    """A sample of a few rows, regions of a few rows, and rows in many batches."""
    monkeypatch.setattr("shoal.release.regional.plan.FEWEST", 40)
    monkeypatch.setattr("shoal.release.regional.parting.TOO_LARGE", 1)
    monkeypatch.setattr("shoal.release.regional.survey.BATCH", 700)
    monkeypatch.setattr(sample, "SAMPLE", 200)


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 3)), min_size=1, max_size=200),
    often=st.integers(1, 40),
    wanted=st.integers(1, 300),
    seed=st.integers(0, 9),
)
def test_a_sample_has_each_combination_in_proportion_whatever_the_order_and_the_chunks(rows, often, wanted, seed):
    matrix = np.array(rows + [rows[0]] * often, np.int32)
    shuffled = np.random.default_rng(seed).permutation(matrix)
    found = []
    for order, chunk, buckets, held in ((matrix, len(matrix), 4, 2), (shuffled, 7, 1 << 16, 10**6)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sample, "SAMPLE", wanted)
            patch.setattr(sample, "BUCKETS", buckets)
            patch.setattr(sample, "HELD", held)
            sampler = Sampler(len(matrix))
            for look in (sampler.count, sampler.take):
                for at in range(0, len(order), chunk):
                    look(order[at : at + chunk])
            found.append(sampler.sample().tolist())
    assert found[0] == found[1] == sorted(found[0])
    share = min(1.0, wanted / len(matrix))
    for values, count in zip(*np.unique(matrix, axis=0, return_counts=True), strict=True):
        there = found[0].count(values.tolist())
        assert np.floor(count * share - 1e-9) <= there <= np.ceil(count * share + 1e-9)


def test_a_sample_of_different_rows_has_about_as_many_as_wanted(monkeypatch):
    monkeypatch.setattr(sample, "SAMPLE", 2000)
    matrix = np.arange(40_000, dtype=np.int32).reshape(-1, 2)
    sampler = Sampler(len(matrix))
    sampler.count(matrix)
    sampler.take(matrix)
    assert abs(len(sampler.sample()) - 2000) < 6 * np.sqrt(2000)


def test_twelve_combinations_are_twelve_regions_that_lose_nothing(tmp_path, small_samples):
    frame = table(6000)
    release, target = regional(frame, tmp_path, 300)
    assert "the table was released in 12 regions, each by itself, and judged as a whole" in release.report.notes
    names = ["age", "sex", "diag"]
    assert pl.read_csv(target).sort(names).equals(frame.sort(names))
    memory = shoal.anonymize(frame, **ASKED).report
    for figure in ("rows", "released", "withheld", "findings", "risk_before", "risk_after", "size_counts"):
        assert getattr(release.report, figure) == getattr(memory, figure), figure
    assert release.report.loss.gcp == memory.loss.gcp == 0


def test_neither_order_nor_format_nor_chunks_nor_the_road_of_equal_rows_change_a_byte(
    tmp_path, small_samples, monkeypatch
):
    frame = table(4000)
    made = [regional(frame, tmp_path / "a", 300)[1].read_bytes()]
    other = frame.sample(fraction=1.0, shuffle=True, seed=2)
    made.append(regional(other, tmp_path / "b", 300, "parquet")[1].read_bytes())
    monkeypatch.setattr("shoal.release.regional.survey.BATCH", 90)
    made.append(regional(other, tmp_path / "c", 300, "ndjson")[1].read_bytes())
    monkeypatch.setattr(roads, "is_alike", lambda *_: False)  # by the method
    made.append(regional(frame, tmp_path / "d", 300)[1].read_bytes())
    assert len(set(made)) == 1


def test_rows_of_one_person_that_are_all_alike_do_not_leave_as_they_are(tmp_path, small_samples):
    crowd = table(4000).with_columns(pid=pl.int_range(4000) % 900)
    lonely = crowd[:900].with_columns(pid=pl.lit(-1, pl.Int64), age=pl.lit(90, pl.Int64))
    frame = pl.concat([crowd, lonely], how="vertical_relaxed")
    more = {"subject": "pid", "waive": ["linked-rows"]}
    release, target = regional(frame, tmp_path, 300, fits=4000, **more)
    ages = pl.read_csv(target)["age"].cast(pl.String)
    assert release.report.verified
    assert release.report.findings[0].unit == "people"
    assert not (ages == "90").any()
    assert (ages == "31").any()
    memory = shoal.anonymize(frame, **ASKED, **more).report
    assert release.report.risk_before == memory.risk_before


def test_alike_rows_beyond_what_fits_are_an_error_that_says_so(tmp_path, small_samples):
    with pytest.raises(PromiseError, match=r"\d,\d\d\d rows have the same quasi values, .*\n\nhint: give more memory"):
        regional(table(12_600), tmp_path, 60)
    assert [f.name for f in tmp_path.iterdir()] == ["table.csv"]


def test_a_region_of_few_combinations_that_had_to_join_is_checked_too(tmp_path, small_samples):
    """Three rows that nobody is like must be released with a combination of many."""
    few = table(3).with_columns(age=pl.lit(80, pl.Int64))
    frame = pl.concat([table(5000), few])
    release, _ = regional(frame, tmp_path / "joined", 200)
    assert release.report.verified
    ages = np.arange(1000) % 50  # of each age everybody has the same diagnosis, and few have one age
    frame = pl.DataFrame({"age": ages, "sex": ["f"] * 1000, "diag": [f"d{age // 10}" for age in ages]})
    with pytest.raises(PromiseError, match="1,000 rows must be released as one region to keep the promises, which do"):
        regional(frame, tmp_path / "refused", 300, t=0.05, method="mondrian", effort=None)


def test_a_table_of_one_person_is_refused_as_in_memory(tmp_path, small_samples):
    frame = table(3000).with_columns(pid=pl.lit(1))
    said = []
    asked = {**ASKED, "subject": "pid"}
    for road in (lambda: regional(frame, tmp_path, 300, **asked), lambda: shoal.anonymize(frame, **asked)):
        with pytest.raises(PromiseError, match=r"(?s)4-anonymity cannot be reached: .* bring more people") as error:
            road()
        said.append(str(error.value))
    assert said[0] == said[1]


def test_one_region_is_not_said_to_be_many(tmp_path):
    release, _ = regional(table(500), tmp_path, 1000)
    assert "the table was released in one region" in release.report.notes
