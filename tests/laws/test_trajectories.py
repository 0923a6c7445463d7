"""People with many rows: all of a person's rows, taken together, must read like those of k people."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import PromiseError, UsageError
from shoal.core.groups import Groups
from shoal.core.keys import KeyRing
from shoal.policy.load import parse
from shoal.promises.trajectory_anonymity import TrajectoryAnonymity
from shoal.tables import TABLE_METHODS

LOCAL = [name for name in TABLE_METHODS.names() if TABLE_METHODS.decode(name).local_recoding]
visit = st.tuples(st.integers(20, 29), st.sampled_from(["101", "102", "201"]), st.sampled_from(["flu", "hip", "cut"]))
people = st.lists(st.lists(visit, min_size=1, max_size=4), min_size=4, max_size=14)


def visits(of: list[list[tuple[int, str, str]]]) -> pl.DataFrame:
    rows = [(who, *row) for who, mine in enumerate(of) for row in mine]
    return pl.DataFrame(
        rows, schema={"pid": pl.Int64, "age": pl.Int64, "zip": pl.String, "diag": pl.String}, orient="row"
    )


def slow(boxes: list[tuple], whose: list) -> int:
    """By the definition: the fewest people who share one person's boxes, each as often as they have it."""
    paths = {who: frozenset(Counter(b for b, w in zip(boxes, whose, strict=True) if w == who).items()) for who in whose}
    return min(Counter(paths.values()).values())


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=25))
def test_the_promise_is_its_definition(rows: list[tuple[int, int]]) -> None:
    labels = np.unique([g for g, _ in rows], return_inverse=True)[1].astype(np.int32)
    found = TrajectoryAnonymity(2).judge(Groups(labels, people=np.array([p for _, p in rows], np.int32)))
    least = slow([(g,) for g, _ in rows], [p for _, p in rows])
    assert (found.reached, found.kept) == (least, least >= 2)


@settings(max_examples=40)
@given(people, st.sampled_from(LOCAL), st.integers(2, 3), st.booleans())
def test_every_method_hides_whole_people(of, method: str, k: int, diverse: bool) -> None:
    frame = visits(of)
    assume(frame["diag"].n_unique() > 1)
    asked = {"l": 2} if diverse else {}
    try:
        made = shoal.anonymize(
            frame, quasi=["age", "zip"], sensitive=["diag"], subject="pid", seed=3, method=method,
            promises=[TrajectoryAnonymity(k)], **asked,
        )  # fmt: skip
    except PromiseError:
        assert diverse or len(of) < k  # of k alone, everyone cut to one row is always a way
        return
    whose = frame["pid"].gather(made.positions).to_list()
    assert slow(made.data.select("age", "zip").rows(), whose) >= k
    assert made.data.height + sum(made.withheld.values()) == frame.height
    assert len(set(whose)) == len(of)  # rows are withheld, people are not


def clinic(visits_of_each: int = 2) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    who = np.repeat(np.arange(24), visits_of_each)
    return pl.DataFrame(
        {
            "pid": [f"p{n}" for n in who],
            "age": 20 + who % 12,
            "week": rng.integers(0, 50, len(who)),
            "diag": rng.choice(["flu", "hip", "cut"], len(who)),
        }
    )


POLICY = """
dataset: visits
columns:
  pid: {role: subject}
  age: {role: quasi, type: int}
  week: {role: quasi, type: int}
  diag: {role: sensitive}
views:
  research:
    show: [pid, age, week, diag]
    masks: {pid: {use: pseudonym}}
    promises: [{use: PROMISE, k: 3}]
"""


READER = {"view": "research", "seed": 1, "method": "mondrian", "keys": KeyRing.load(environ={"SHOAL_KEY": "ab" * 32})}


def policy(promise: str):
    return parse(POLICY.replace("PROMISE", promise))


def test_a_pseudonym_may_be_shown_beside_it_and_who_reads_it_verifies_it() -> None:
    with pytest.raises(PromiseError, match="shows which rows belong to one person"):
        shoal.anonymize(clinic(), policy=policy("k-anonymity"), **READER)
    made = shoal.anonymize(clinic(), policy=policy("trajectory-anonymity"), **READER)
    told = made.data
    assert told["pid"].n_unique() == 24
    assert not set(told["pid"]) & set(clinic()["pid"])
    promises = [TrajectoryAnonymity(3)]
    assert shoal.verify(told, quasi=["age", "week"], subject="pid", promises=promises).kept
    torn = told.with_columns(week=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("7")).otherwise("week"))
    assert not shoal.verify(torn, quasi=["age", "week"], subject="pid", promises=promises).kept


def test_a_pseudonym_that_the_promise_covers_singles_nobody_out() -> None:
    """Most people here have one row: each pseudonym stands alone, and its rows still read like those of others."""
    report = shoal.anonymize(clinic(1), policy=policy("trajectory-anonymity"), **READER).report
    pid = next(column for column in report.columns if column.name == "pid")
    assert pid.alone == 24
    assert not pid.singles_out
    assert "have a value of their own" not in report.page("page.txt")
    assert "singles people out" not in report.page("page.html")
    beside = shoal.anonymize(clinic(1), policy=policy("k-anonymity"), **READER).report
    assert next(column for column in beside.columns if column.name == "pid").singles_out


def test_it_cannot_be_judged_where_nothing_says_whose_a_row_is() -> None:
    promises = [TrajectoryAnonymity(2)]
    with pytest.raises(UsageError, match="whose a row is"):
        shoal.anonymize(clinic(), quasi=["age"], promises=promises)
    with pytest.raises(UsageError, match="whose a row is"):
        shoal.verify(pl.DataFrame({"age": ["*", "*"]}), quasi=["age"], promises=promises)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"method": "datafly"}, "whole columns one level"),
        ({"append": "state"}, "later rows would change"),
        ({"save_model": "kept.model"}, "later rows would change"),
    ],
)
def test_what_cannot_hide_whole_people_is_refused(more, why, tmp_path) -> None:
    more = {name: word if name == "method" else str(tmp_path / word) for name, word in more.items()}
    with pytest.raises(UsageError, match=why):
        shoal.anonymize(clinic(), quasi=["age"], subject="pid", promises=[TrajectoryAnonymity(2)], **more)


def test_two_tables_of_the_same_people_are_released_together() -> None:
    """Patients and visits: joined, released, and parted again; a patient's own columns are one row each."""
    patients = clinic().unique("pid").select("pid", "age")
    joined = patients.join(clinic().drop("age"), on="pid", how="left")
    made = shoal.anonymize(joined, policy=policy("trajectory-anonymity"), **READER)
    parted = made.data.select("pid", "age").unique()
    assert parted.height == patients.height
    assert parted["age"].value_counts()["count"].min() >= 3


DIVERSE = POLICY.replace(
    "{use: PROMISE, k: 3}", "{use: trajectory-anonymity, k: 2}, {use: l-diversity, l: 2, column: diag}"
)


@settings(max_examples=30)
@given(people, st.sampled_from(LOCAL))
def test_values_are_diverse_of_whole_people_too(of, method: str) -> None:
    """Two values in each row are not enough where all of some people have one of them in one row or another."""
    frame = visits(of).rename({"zip": "week"}).with_columns(pl.col("week").cast(pl.Int64))
    made, where = None, None
    try:
        made = shoal.anonymize(frame, policy=parse(DIVERSE), **{**READER, "method": method})
    except PromiseError as error:
        where = error.where
    assert where not in ("adversary", "verify"), "the method must keep what it is asked for, or say that nobody can"
    assume(made is not None)
    boxes, values = {}, {}
    for who, age, week, diag in made.data.select("pid", "age", "week", "diag").iter_rows():
        boxes.setdefault(who, []).append((age, week))
        values.setdefault(who, set()).add(diag)
    for path in {tuple(sorted(own)) for own in boxes.values()}:
        alike = [values[who] for who in boxes if tuple(sorted(boxes[who])) == path]
        assert len(alike) >= 2
        assert not set.intersection(*alike), "everyone there has it"


def test_the_verifier_looks_at_what_the_rows_of_a_person_tell_together() -> None:
    """Row by row two values each; of the two people who read alike in both rows, both have flu."""
    rows = [("p1", 2, "flu"), ("p2", 2, "flu"), ("p3", 2, "cold"), ("p4", 2, "cold")]
    rows += [("p1", 3, "flu"), ("p2", 3, "cold"), ("p3", 4, "flu"), ("p4", 4, "cold")]
    frame = pl.DataFrame(rows, schema=["pid", "age", "diag"], orient="row")
    asked = {"quasi": ["age"], "sensitive": ["diag"], "subject": "pid", "k": 2, "l": 2}
    assert shoal.verify(frame, **asked).kept
    found = shoal.verify(frame, **asked, promises=[TrajectoryAnonymity(2)])
    assert [f.promise for f in found.findings if not f.kept] == ["2-diversity of diag, all rows of a person together"]


@given(people)
def test_people_together_are_those_with_the_same_groups(of) -> None:
    whose = [who for who, mine in enumerate(of) for _ in mine]
    boxes = [age for mine in of for age, _, _ in mine]
    labels = np.unique(boxes, return_inverse=True)[1].astype(np.int32)
    found = Groups(labels, people=np.array(whose, np.int32)).together().labels
    paths = {who: tuple(sorted(b for b, w in zip(boxes, whose, strict=True) if w == who)) for who in whose}
    pairs = {(paths[who], label) for who, label in zip(whose, found.tolist(), strict=True)}
    assert len(pairs) == len(set(paths.values())) == len(set(found.tolist()))
