"""Promises beside a register: what they say is what somebody with the register would count, whatever the method."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import InputError, PromiseError, ShoalError, UsageError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.register import beside_register
from shoal.core.release import read_alike, recode
from shoal.core.schema import Column, Schema
from shoal.core.table import code
from shoal.policy.load import parse
from shoal.promises.delta_presence import DeltaPresence
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.k_map import KMap
from shoal.release.earlier import nodes_of
from shoal.release.register import coverage
from shoal.tables import TABLE_METHODS
from shoal.tables.base import groups_of

TOWNS = {"north": ["Kiel", "Bremen"], "south": ["Ulm", "Hof"]}
QUASI = {"age": Range(min=0, max=99), "zip": Prefix(3), "town": Tree(nodes=TOWNS), "sex": None}
PERSON = st.tuples(
    st.one_of(st.none(), st.integers(20, 29)),
    st.sampled_from(["101", "102", "111", "112", "201"]),
    st.sampled_from(["Kiel", "Bremen", "Ulm", "Hof"]),
    st.sampled_from(["f", "m"]),
)
SCHEMA = Schema({name: Column("quasi", hierarchy=h) for name, h in QUASI.items()})
TYPES = {"age": pl.Int64, "zip": pl.String, "town": pl.String, "sex": pl.String}


@st.composite
def tables(draw, least=2, most=12, strangers=1):
    """A register, and those of it who are in the table; sometimes the table holds somebody the register does not."""
    people = draw(st.lists(PERSON, min_size=least, max_size=30))
    inside = draw(st.lists(st.sampled_from(people), min_size=1, max_size=most, unique_by=id))
    stranger = draw(st.lists(PERSON, max_size=strangers))
    frames = [pl.DataFrame(rows, schema=TYPES, orient="row") for rows in (people, [*inside, *stranger])]
    return frames[0], frames[1]


def could_be(cell: str | None, value, name: str) -> bool:
    """Whether a person's value may stand behind a published cell: written here, from what the cells mean."""
    if cell is None:
        return value is None
    if cell == "*":
        return True
    if value is None:
        return False
    if name == "age":
        ends = cell.strip("[]").split(", ")
        return int(ends[0]) <= value <= int(ends[-1])
    if name == "town":
        return value in TOWNS.get(cell, [cell])
    return str(value).startswith(cell.rstrip("*")) if "*" in cell else value == cell


def slow_counts(released: pl.DataFrame, register: pl.DataFrame) -> dict[tuple, int]:
    """Of each released combination, how many people of the register it may stand for."""
    people = register.rows(named=True)
    return {
        row: sum(all(could_be(c, p[n], n) for n, c in zip(released.columns, row, strict=True)) for p in people)
        for row in set(released.rows())
    }


def slow_beliefs(released: pl.DataFrame, register: pl.DataFrame) -> list[tuple[float, float]]:
    """Of each person of the register, the sum and the largest of the shares of the groups they may be in."""
    counts = slow_counts(released, register)
    size = {row: released.rows().count(row) for row in counts}
    out = []
    for person in register.rows(named=True):
        shares = [
            size[row] / counts[row]
            for row in counts
            if all(could_be(c, person[n], n) for n, c in zip(released.columns, row, strict=True))
        ]
        out.append((min(1.0, sum(shares)), min(1.0, max(shares, default=0.0))))
    return out


def made(table: pl.DataFrame, register: pl.DataFrame, promises, method):
    """The release; nothing if the promises cannot be reached. A release the verifier refuses is a failure."""
    try:
        return shoal.anonymize(table, schema=SCHEMA, promises=promises, register=register, method=method, seed=0)
    except PromiseError as error:
        if error.where == "verify":
            raise
        return None


@pytest.mark.parametrize("method", TABLE_METHODS.names())
@settings(max_examples=15)
@given(tables(), st.integers(1, 6), st.sampled_from([None, 2]))
def test_k_map_is_what_the_register_says(method, two, k, anonymity):
    register, table = two
    release = made(table, register, [KMap(k), *([KAnonymity(anonymity)] if anonymity else [])], method)
    if release is None:
        return
    counts = slow_counts(release.data.select(list(TYPES)), register)
    assert min(counts.values()) >= k
    assert release.report.findings[0].reached == min(counts.values())


@pytest.mark.parametrize("method", ["local", "mondrian", "datafly"])
@settings(max_examples=20)
@given(tables(least=15, most=4, strangers=0), st.sampled_from([0.4, 0.6, 0.9]), st.sampled_from([0.0, 0.0, 0.01]))
def test_delta_presence_is_what_the_register_says(method, two, most, least):
    register, table = two
    release = made(table, register, [DeltaPresence(most, least)], method)
    if release is None:  # with `least`, cells must cover everybody of the register
        return
    beliefs = slow_beliefs(release.data.select(list(TYPES)), register)
    assert max(most for most, _ in beliefs) <= most + 1e-9
    assert release.report.findings[0].reached == pytest.approx(max(most for most, _ in beliefs))
    if least:
        assert min(low for _, low in beliefs) >= least - 1e-9


@settings(max_examples=40)
@given(tables(), st.sampled_from(["mondrian", "datafly", "topdown"]), st.integers(1, 3))
def test_codes_cover_whom_texts_cover(two, method, k):
    """Methods count by codes, the verifier by texts: both are what somebody would count by hand."""
    register, table = two
    coded = beside_register(code(table, SCHEMA), table, SCHEMA, register)
    try:
        grouping = TABLE_METHODS.decode(method).group(coded, [KAnonymity(k)])
    except ShoalError:
        assume(False)
    labels, boxes = read_alike(coded, grouping.labels, grouping.floor)
    released, groups = recode(table, SCHEMA, coded, labels, boxes)
    by_code = groups_of(coded, labels, boxes).register.counts()
    by_text = coverage(released, groups[groups >= 0], list(TYPES), register, nodes_of(coded)).counts()
    assert by_code.tolist() == by_text.tolist()
    by_hand = slow_counts(released.select(list(TYPES)), register)
    first = [np.flatnonzero(groups[groups >= 0] == g)[0] for g in range(len(by_code))]
    assert by_code.tolist() == [by_hand[released.select(list(TYPES)).row(int(at))] for at in first]


PEOPLE = pl.DataFrame({"age": [20, 21, 22, 30, 31, 32], "sex": ["f", "f", "m", "m", "f", "m"]})


def test_a_release_is_verified_beside_its_register_and_not_without_one(tmp_path):
    table = PEOPLE[:3]
    release = shoal.anonymize(table, quasi=["age", "sex"], promises=[KMap(3)], register=PEOPLE, seed=1)
    again = shoal.verify(release.data, quasi=["age", "sex"], promises=[KMap(3)], register=PEOPLE)
    assert again.kept
    assert not shoal.verify(release.data, quasi=["age", "sex"], promises=[KMap(3)], register=PEOPLE[3:]).kept
    with pytest.raises(UsageError, match="speaks about a register"):
        shoal.verify(release.data, quasi=["age", "sex"], promises=[KMap(3)])
    with pytest.raises(UsageError, match="speaks about a register"):
        shoal.anonymize(table, quasi=["age", "sex"], promises=[DeltaPresence(0.5)])
    with pytest.raises(UsageError, match="no effect"):
        shoal.anonymize(table, quasi=["age", "sex"], k=2, register=PEOPLE)
    with pytest.raises(ShoalError, match="sex"):
        shoal.anonymize(table, quasi=["age", "sex"], promises=[KMap(3)], register=PEOPLE.drop("sex"))
    words = PEOPLE.with_columns(age=pl.Series(["young"] * 6))
    with pytest.raises(InputError, match="in the register") as told:
        shoal.anonymize(table, quasi=["age", "sex"], promises=[KMap(3)], register=words)
    assert "young" not in str(told.value)


def test_a_policy_names_its_register(tmp_path):
    PEOPLE.write_csv(tmp_path / "voters.csv")
    text = """
    columns: {age: {role: quasi, type: int}, sex: quasi}
    views:
      research:
        show: [age, sex]
        promises: [{use: k-map, k: 3, register: voters.csv}]
    """
    policy = parse(text, folder=tmp_path)
    release = shoal.anonymize(PEOPLE[:3], policy=policy, view="research", seed=1)
    assert release.report.findings[0].promise == "3-map"
    assert shoal.verify(release.data, policy=policy, view="research").kept
    masked = parse(text.replace("promises:", "masks: {sex: suppress}\n        promises:"), folder=tmp_path)
    with pytest.raises(UsageError, match="masked"):
        shoal.anonymize(PEOPLE[:3], policy=masked, view="research")
    with pytest.raises(UsageError, match="names its register"):
        shoal.anonymize(PEOPLE[:3], policy=policy, view="research", register=PEOPLE)
