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


def linked(frame: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> int:
    """The attack by a measurement that both releases show: the fewest rows of a new group that can be somebody's."""
    before = dict(first.select("level", "age").rows())
    fewest = frame.height
    for age in frame["age"]:
        group = next(c for c in second["age"] if covers(c, age))
        fits = [level for level, cell in second.select("level", "age").rows() if cell == group]
        fewest = min([fewest, *([n] if (n := sum(covers(before[level], age) for level in fits)) else [])])
    return fewest


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_a_measurement_that_both_releases_show_links_their_rows(seed, k):
    """Nothing else does: everybody has the same sensitive value."""
    frame = patients(40, seed).with_columns(diag=pl.lit("flu"), level=np.random.default_rng(seed).normal(9, 2, 40))
    asked = {"quasi": ["age"], "sensitive": ["diag"], "plain": ["level"], "k": k, "seed": 5, "method": "mondrian"}
    first = shoal.anonymize(frame, **{**asked, "k": 7}).data
    second = shoal.anonymize(frame, **asked).data
    if linked(frame, first, second) < k:
        with pytest.raises(shoal.PromiseError, match="by level reaches"):
            shoal.anonymize(frame, **asked, previous=first)
    else:
        assert shoal.anonymize(frame, **asked, previous=first).report.verified


def test_columns_that_are_a_name_only_together_link_two_releases():
    rng = np.random.default_rng(4)
    frame = patients(80, 4).with_columns(diag=pl.lit("flu"), bed=rng.integers(0, 20, 80), dose=rng.integers(0, 20, 80))
    asked = {"quasi": ["age"], "sensitive": ["diag"], "plain": ["bed", "dose"], "k": 4, "method": "mondrian"}
    first = shoal.anonymize(frame, **{**asked, "k": 9, "method": "local"}, waive=["unique-plain"]).data
    with pytest.raises(shoal.PromiseError, match="by bed and dose and diag reaches"):
        shoal.anonymize(frame, **asked, previous=first)


@pytest.mark.parametrize("promise", [{"use": "k-map", "k": 4}, {"use": "delta-presence", "most": 0.5}])
def test_a_promise_about_a_register_is_not_said_to_hold_beside_an_earlier_release(promise):
    from shoal.policy.load import parse

    policy = parse(
        f"{{columns: {{age: {{role: quasi, type: int}}, diag: sensitive}}, views: {{lab: {{show: [age, diag], "
        f"promises: [{str(promise).replace(chr(39), '')}]}}}}}}"
    )
    frame, register = patients(40), pl.concat([patients(40), patients(200, 8)]).select("age")
    first = shoal.anonymize(frame, policy=policy, register=register).data
    with pytest.raises(shoal.PromiseError, match="speaks of single rows, and not of rows that stand in earlier"):
        shoal.anonymize(frame, policy=policy, register=register, previous=first)
    waived = shoal.anonymize(frame, policy=policy, register=register, previous=first, waive=["earlier-release"])
    assert any("waived: not judged" in finding.note for finding in waived.report.findings)
