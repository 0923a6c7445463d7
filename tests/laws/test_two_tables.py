"""Two tables of the same people: what is known of a person in both of them still fits k people."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import InputError, PolicyError, PromiseError, UsageError
from shoal.core.keys import KeyRing
from shoal.policy.load import parse

KEYS = KeyRing({"default": {1: bytes(range(32))}})
POLICY = """
columns:
  pid: {role: subject}
  age: {role: quasi, type: int}
  sex: {role: quasi}
  week: {role: quasi, type: int}
  diag: {role: sensitive}
views:
  research:
    show: [pid, age, sex, week, diag]
    masks: {pid: {use: pseudonym}}
    promises: [PROMISES]
"""
TWO = "{use: trajectory-anonymity, k: 2}"
person = st.tuples(
    st.integers(20, 29),
    st.sampled_from("fm"),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["flu", "hip", "cut"])), max_size=3),
)


def policy(promises: str = TWO):
    return parse(POLICY.replace("PROMISES", promises))


def tables(of: list) -> tuple[pl.DataFrame, pl.DataFrame]:
    people = [(f"p{n}", age, sex) for n, (age, sex, _) in enumerate(of)]
    visits = [(f"p{n}", *visit) for n, (_, _, mine) in enumerate(of) for visit in mine]
    kinds = {"pid": pl.String, "week": pl.Int64, "diag": pl.String}
    return pl.DataFrame(people, ["pid", "age", "sex"], orient="row"), pl.DataFrame(visits, kinds, orient="row")


@settings(max_examples=40)
@given(st.lists(person, min_size=4, max_size=16), st.sampled_from(["local", "mondrian"]), st.booleans())
def test_whoever_joins_both_tables_finds_k_people_and_no_visit_that_never_was(of, method: str, diverse: bool) -> None:
    people, visits = tables(of)
    assume(visits["pid"].n_unique() >= 2)
    asked = TWO + (", {use: l-diversity, l: 2, column: diag}" if diverse else "")
    made, where = None, None
    try:
        made = shoal.anonymize_two(people, visits, policy=policy(asked), method=method, keys=KEYS, seed=2)
    except PromiseError as error:
        where = error.where
    assert where not in ("adversary", "verify"), "the method must keep what it is asked for, or say that nobody can"
    assert made is not None or diverse
    assume(made is not None)
    assert made.people["pid"].n_unique() == made.people.height
    assert min(Counter(made.people.select("age", "sex").rows()).values()) >= 2
    joined = made.rows.join(made.people, on="pid", how="left")
    assert joined["age"].null_count() == 0, "whoever has a visit is among the people"
    paths: dict[str, list] = {}
    for row in joined.select("pid", "age", "sex", "week").iter_rows():
        paths.setdefault(row[0], []).append(row[1:])
    assert min(Counter(tuple(sorted(path)) for path in paths.values()).values()) >= 2
    # people without visits stay without, and nobody else loses all of them
    assert len(paths) == visits["pid"].n_unique()
    few = made.people.height < people.height
    assert few == (0 < people.height - visits["pid"].n_unique() < 2)
    lost = (people.height - made.people.height) + (visits.height - made.rows.height)
    assert lost == sum(made.withheld.values())
    assert Counter(made.rows["diag"]) <= Counter(visits["diag"])


def test_tables_come_back_as_they_came_and_in_no_order() -> None:
    people, visits = tables([(20 + n % 5, "fm"[n % 2], [(n % 4, "flu"), (n % 3, "hip")] * (n % 2)) for n in range(24)])
    asked = {"policy": policy(), "keys": KEYS, "seed": 2}
    made = shoal.anonymize_two(people.to_pandas(), visits.to_pandas(), **asked)
    assert isinstance(made.people, pd.DataFrame)
    assert sorted(made.rows.columns) == ["diag", "pid", "week"]
    again = shoal.anonymize_two(people.reverse(), visits.reverse(), **asked)
    assert again.people.equals(pl.from_pandas(made.people))
    assert again.rows.equals(pl.from_pandas(made.rows))
    assert made.report.verified
    assert made.alone.verified
    assert all(finding.kept for finding in made.findings)


def test_people_without_rows_who_are_too_few_are_withheld() -> None:
    people, visits = tables([(20, "f", [(1, "flu")]), (21, "m", [(2, "hip")]), (22, "f", [])])
    made = shoal.anonymize_two(people, visits, policy=policy(), keys=KEYS, seed=2)
    assert made.people.height == 2
    assert made.withheld["people without rows, too few for a group of their own"] == 1


@pytest.mark.parametrize(
    ("promises", "change", "error", "why"),
    [
        ("{use: k-anonymity, k: 2}", None, PolicyError, "must fit others, too"),
        (TWO, "masks: {}", PolicyError, "nothing would join"),
        (TWO, "stranger", InputError, "1 rows belong to nobody"),
        (TWO, "twice", InputError, "1 rows are of people who have one already"),
        (TWO, "nobody", InputError, "1 rows say not whose they are"),
        (TWO, "both", InputError, "'age' is in both tables"),
    ],
)
def test_what_does_not_go_together_is_told_and_quotes_nobody(promises, change, error, why) -> None:
    people, visits = tables([(20 + n, "f", [(n, "flu")]) for n in range(6)])
    said = policy(promises)
    if change == "masks: {}":
        said = parse(POLICY.replace("PROMISES", promises).replace("    masks: {pid: {use: pseudonym}}\n", ""))
    if change == "stranger":
        visits = pl.concat([visits, pl.DataFrame({"pid": ["Ott"], "week": [1], "diag": ["flu"]})])
    if change == "twice":
        people = pl.concat([people, people.head(1)])
    if change == "nobody":
        visits = visits.with_columns(pid=pl.when(pl.col("week") == 3).then(None).otherwise("pid"))
    if change == "both":
        visits = visits.with_columns(age=pl.lit(3))
    with pytest.raises(error, match=why) as told:
        shoal.anonymize_two(people, visits, policy=said, keys=KEYS)
    assert "Ott" not in str(told.value)


@pytest.mark.parametrize(
    "asked", [{"keep_order": True}, {"cells": "bounds"}, {"waive": "order"}, {"previous": "x.csv"}]
)
def test_what_could_not_be_kept_is_refused_and_not_ignored(asked) -> None:
    people, visits = tables([(20 + n, "f", [(n, "flu")]) for n in range(6)])
    with pytest.raises(UsageError, match=r"no effect|order of their own"):
        shoal.anonymize_two(people, visits, policy=policy(), keys=KEYS, **asked)


def test_a_stronger_promise_holds_of_both_tables_and_of_people_without_rows() -> None:
    of = [(20 + n % 7, "fm"[n % 2], [(n % 9, "flu"), (n % 4, "hip")][: n % 3]) for n in range(45)]
    people, visits = tables(of)
    made = shoal.anonymize_two(people, visits, policy=policy(), keys=KEYS, seed=2, k=6, l=1)
    assert [finding.asked for finding in made.findings] == [6]
    there = made.people.with_columns(visited=pl.col("pid").is_in(made.rows["pid"].to_list()))
    for part in there.partition_by("visited"):
        assert min(Counter(part.select("age", "sex").rows()).values()) >= 6
