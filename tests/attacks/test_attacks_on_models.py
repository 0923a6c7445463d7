"""Saved models: new rows that join a release pass the guards that the release passed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.core.keys import KeyRing

RING = KeyRing({"default": {1: bytes(32)}})
ASKED = {"quasi": ["age"], "sensitive": ["diag"], "plain": ["ward"], "k": 3, "keys": RING}
POLICY = """
columns:
  pid: subject
  name: identifier
  age: {role: quasi, type: int}
  diag: sensitive
  ward: {role: plain, type: int}
  note: plain
views:
  lab: {show: [age, diag, ward], promises: [{use: k-anonymity, k: 3}]}
  desk:
    show: [name, age, diag]
    masks: {name: {use: hash}, diag: {use: suppress}}
    waive: [linked-rows, unique-plain]
    promises: [{use: k-anonymity, k: 3}]
"""


def staff(n: int = 90, seed: int = 2) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "pid": [f"p{seed}-{at}" for at in range(n)],
            "name": [f"F. Ott {at}" for at in range(n)],
            "age": rng.integers(20, 60, n),
            "diag": rng.choice(["flu", "cold"], n),
            "ward": rng.integers(0, 3, n),
            "note": [f"seen by Dr. Sommerfeld, bed {at}" for at in range(n)],
        }
    )


def kept(path: Path, **asked) -> dict:
    shoal.anonymize(staff(), save_model=str(path), **asked)
    return {"model": str(path), "keys": RING}


def test_new_rows_bring_no_names_in_a_column_that_had_none(tmp_path):
    joining = kept(tmp_path / "m", **ASKED)
    named = staff(60, 3).with_columns(ward=pl.col("note"))
    with pytest.raises(shoal.InputError, match="'ward' had values of the type int") as refused:
        shoal.anonymize(named, **joining)
    assert "Sommerfeld" not in str(refused.value)
    numbers = staff(60, 3).with_columns(ward=pl.int_range(60) + 10_000)
    with pytest.raises(shoal.PromiseError, match="have a value of their own in the column 'ward'"):
        shoal.anonymize(numbers, **joining)
    waived = shoal.anonymize(numbers, waive=["unique-plain"], **joining)
    assert "waiver: unique-plain" in waived.report.notes
    assert shoal.anonymize(staff(60, 3), **joining).report.verified


def test_what_links_new_rows_is_refused_because_the_rows_before_cannot_be_looked_at(tmp_path):
    joining = kept(tmp_path / "m", subject="pid", **ASKED)
    twice = staff(12, 3).with_columns(ward=pl.int_range(12) + 10_000)
    twice = pl.concat([twice, twice.with_columns(age=pl.col("age") + 1)])
    with pytest.raises(shoal.PromiseError, match="'ward' may show which rows belong to one person"):
        shoal.anonymize(twice, **joining)
    made = shoal.anonymize(twice, waive=["linked-rows"], **joining)
    assert any("waived" in finding.note for finding in made.report.findings)


def test_a_model_of_a_view_shows_what_the_view_shows_and_counts_its_people(tmp_path):
    from shoal.policy.load import parse

    policy = parse(POLICY)
    joining = kept(tmp_path / "m", policy=policy, view="lab", keys=RING)
    made = shoal.anonymize(staff(60, 3), **joining)
    assert made.data.columns == ["age", "diag", "ward"]
    assert "people" in str(made.report.findings[0])


def test_a_view_that_masks_has_no_model_that_would_show_what_it_masks(tmp_path):
    from shoal.policy.load import parse

    policy = parse(POLICY)
    made = shoal.anonymize(staff(), policy=policy, view="desk", keys=RING)
    assert made.model is None
    with pytest.raises(shoal.UsageError, match="without masks"):
        shoal.anonymize(staff(), policy=policy, view="desk", keys=RING, save_model=str(tmp_path / "m"))
