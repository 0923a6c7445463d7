"""Who has an earlier release, too: the composition attack is run before a release, and refuses it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal

ASKED = {"quasi": ["age"], "sensitive": ["diag"], "k": 3, "l": 2, "seed": 5, "method": "mondrian"}


def patients(n: int = 60, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"age": rng.integers(20, 80, n), "diag": rng.choice(["flu", "cold", "HIV", "asthma"], n)})


def covers(cell: str, age: int) -> bool:
    low, _, high = cell.strip("[]").partition(", ")
    return int(low) <= age <= int(high or low)


def attack(frame: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> list[tuple[int, int]]:
    """The attack itself, name by name: how many people, with how many values, are left of everyone's new group."""
    left = []
    cells = {age: next(c for c in second["age"] if covers(c, age)) for age in set(frame["age"])}
    for age in frame["age"]:
        had = {d for c, d in first.rows() if covers(c, age)}
        fits = [d for c, d in second.rows() if c == cells[age] and d in had]
        if fits:
            left.append((len(fits), len(set(fits))))
    return left


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_a_release_is_refused_exactly_if_the_attack_works(seed, k):
    frame = patients(40, seed)
    first = shoal.anonymize(frame, **{**ASKED, "k": 6}).data
    asked = {**ASKED, "k": k}
    second = shoal.anonymize(frame, **asked).data
    works = any(people < k or values < 2 for people, values in attack(frame, first, second))
    if works:
        with pytest.raises(shoal.PromiseError, match="for who has both releases"):
            shoal.anonymize(frame, **asked, previous=first)
    else:
        assert shoal.anonymize(frame, **asked, previous=first).report.verified
    waived = shoal.anonymize(frame, **asked, previous=[first], waive=["earlier-release"])
    assert waived.report.verified
    assert works == any("waived" in finding.note for finding in waived.report.findings)


def test_the_same_release_again_tells_nothing_new():
    frame = patients()
    first = shoal.anonymize(frame, **ASKED).data
    made = shoal.anonymize(frame, **ASKED, previous=first)
    assert any("beside earlier release 1" in finding.promise for finding in made.report.findings)


def test_a_file_that_has_nothing_to_do_with_it_is_refused():
    with pytest.raises(shoal.UsageError, match="nothing else in common"):
        shoal.anonymize(patients(), **ASKED, previous=pl.DataFrame({"town": ["x"]}))
    with pytest.raises(shoal.UsageError, match="no effect"):
        shoal.anonymize(patients(), series=True, k=4, p=2, previous=patients())  # type: ignore[call-arg]


def test_a_group_that_shares_a_value_is_said_where_nothing_is_promised_about_it():
    frame = patients(30).with_columns(diag=pl.lit("HIV"))
    made = shoal.anonymize(frame, quasi=["age"], sensitive=["diag"], k=3, method="mondrian")
    note = next(note for note in made.report.notes if "everyone has the same value" in note)
    assert "HIV" not in note
    assert "30 rows" in note
    mixed = shoal.anonymize(patients(30), quasi=["age"], sensitive=["diag"], k=15, method="mondrian")
    assert not any("everyone has the same value" in note for note in mixed.report.notes)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "tells nothing about sensitive values"),
        ({"l": 2}, "made blindly"),
        ({"l": 2, "seed": 3}, "not bounded"),
        ({"l": 2, "method": "datafly"}, "draws nothing"),
    ],
)
def test_the_report_says_what_a_rerun_tells(more, words):
    made = shoal.anonymize(
        patients(), **{"quasi": ["age"], "sensitive": ["diag"], "k": 3, "method": "mondrian", **more}
    )
    assert any(words in note for note in made.report.notes)
