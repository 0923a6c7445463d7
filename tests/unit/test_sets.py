"""Small sets: how they read, what they lose, and that everybody who reads a release understands them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.core.cells import read, set_of
from shoal.core.errors import UsageError
from shoal.core.hierarchy.sets import Sets
from shoal.core.release import boxes_of
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.measures.loss import loss, lost_bits
from shoal.measures.utility import utility
from shoal.tables.base import groups_of
from shoal.tables.cover import covers

WARDS = ["cardio", "neuro", "eye", "skin", "lung", None]
GROUPED = st.lists(st.tuples(st.sampled_from(WARDS), st.integers(0, 3), st.integers(-1, 3)), min_size=1, max_size=25)


def _table(rows: list[tuple[Any, ...]], most: int) -> tuple[Table, np.ndarray]:
    frame = pl.DataFrame(rows, schema={"ward": pl.String, "age": pl.Int64, "group": pl.Int32}, orient="row")
    numbers = sorted({g for g in frame["group"] if g >= 0})
    labels = np.array([numbers.index(g) if g >= 0 else -1 for g in frame["group"]], np.int32)
    table = code(frame, Schema.build(quasi={"ward": Sets(most), "age": None}))
    return table, labels[table.rows]


def _held(table: Table, labels: np.ndarray, column: int, group: int) -> list[Any]:
    values = table.levels[column].values.to_list()
    return sorted({values[c] for c in table.matrix[labels == group, column]}, key=lambda v: (v is None, v))


def _cell(held: list[Any], everything: int, most: int) -> str | None:
    if len(held) == 1:
        return held[0]
    if None in held or len(held) > most or len(held) == everything:
        return "*"
    return "{" + ", ".join(held) + "}"


@given(st.lists(st.text(), min_size=2, max_size=6))
def test_a_set_is_read_as_it_was_written(members: list[str]) -> None:
    assert read(set_of(members)).members == tuple(members)
    assert read(set_of(members)).kind == "set"


@pytest.mark.parametrize(
    "text", ["{a}", "{}", "{a,b}", "{a, b", "{a, }", '{"a\\q", b}', "{a, {b, c}}", "[1, 2]", "a, b"]
)
def test_what_only_looks_like_a_set_is_none(text: str) -> None:
    assert read(text).kind != "set"


@given(GROUPED, st.integers(2, 6))
def test_text_and_loss_are_those_of_the_definition(rows: list[Any], most: int) -> None:
    table, labels = _table(rows, most)
    boxes = boxes_of(table, labels)
    known = len({ward for ward, _, _ in rows if ward is not None})
    total = 0.0
    for group, text in enumerate(table.levels[0].text(*boxes.column(0)).to_list()):
        held = _held(table, labels, 0, group)
        assert text == _cell(held, known, most)
        share = 0.0 if len(held) == 1 else 1.0 if text == "*" else len(held) / known
        total += share * int((labels == group).sum())
    got = loss(table, labels, boxes).columns["ward"]
    assert got == pytest.approx((total + int((labels < 0).sum())) / len(rows))


@given(GROUPED, st.integers(2, 6))
def test_bits_and_cross_tables_count_the_members_alone(rows: list[Any], most: int) -> None:
    table, labels = _table(rows, most)
    boxes = boxes_of(table, labels)
    texts = table.levels[0].text(*boxes.column(0)).to_list()
    values = [levels.values.to_list() for levels in table.levels]
    kept = [i for i in range(table.size) if labels[i] >= 0]
    often = [[sum(table.matrix[i, j] == c for i in kept) for c in range(len(values[j]))] for j in (0, 1)]

    def may_be(group: int, j: int) -> list[int]:
        held = {int(c) for c in table.matrix[labels == group, j]}
        if j == 1:
            return list(range(min(held), max(held) + 1))
        return list(range(len(values[0]))) if texts[group] == "*" else sorted(held)

    seen = np.zeros((len(values[0]), len(values[1])))
    for i in kept:
        group = int(labels[i])
        cells = list(product(may_be(group, 0), may_be(group, 1)))
        weights = [often[0][a] * often[1][b] for a, b in cells]
        for (a, b), weight in zip(cells, weights, strict=True):
            seen[a, b] += weight / sum(weights)
    truth = np.zeros_like(seen)
    for i in kept:
        truth[tuple(table.matrix[i])] += 1
    if kept:
        distance = float(np.abs(truth - seen).sum() / 2 / len(kept))
        assert utility(table, labels, boxes).cross_tables["ward, age"] == pytest.approx(distance, abs=1e-9)
    if len(kept) == table.size:
        lost = sum(
            np.log2(sum(often[j][c] for c in may_be(int(labels[i]), j)) / often[j][table.matrix[i, j]])
            for i in kept
            for j in (0, 1)
        )
        assert lost_bits(table, labels, boxes)[0] == pytest.approx(lost, abs=1e-9)


@given(GROUPED)
def test_a_value_is_covered_by_the_sets_it_is_in(rows: list[Any]) -> None:
    table, labels = _table(rows, 3)
    cells = list(dict.fromkeys(table.levels[0].text(*boxes_of(table, labels).column(0)).to_list()))
    wanted = pl.Series([*WARDS[:-1], "new"])
    found = covers(wanted, Schema.build(quasi={"ward": Sets(3)})["ward"], cells, "ward")
    for i, value in enumerate(wanted):
        for at, text in enumerate(cells):
            assert found[i, at] == (text is not None and (text in ("*", value) or value in read(text).members))


def _stays() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    wards = np.array(WARDS[:-1])[rng.integers(0, 5, 80)]
    return pl.DataFrame({"ward": wards, "age": rng.integers(20, 80, 80), "diag": rng.integers(0, 4, 80)})


@pytest.mark.parametrize("method", ["local", "topdown", "mondrian", "forest", "microaggregation", "datafly", "lattice"])
def test_same_groups_with_sets_lose_no_more(method: str) -> None:
    made = [
        shoal.anonymize(_stays(), quasi={"ward": use, "age": "range"}, sensitive=["diag"], k=4, method=method, seed=3)
        for use in ("suppress", "sets")
    ]
    plain, sets = (release.report.loss.gcp for release in made)
    shown = {read(text).kind for text in made[1].data["ward"]}
    if method in ("datafly", "lattice"):  # whole columns have one level
        assert sets == plain
        assert "set" not in shown
    else:
        assert sets < plain
        assert "set" in shown
    assert shoal.verify(made[1].data, quasi=["ward", "age"], k=4)


def test_attack_model_and_bounds_read_sets() -> None:
    register = _stays()
    quasi = {"ward": {"use": "sets", "most": 3}, "age": "range"}
    release = shoal.anonymize(register, quasi=quasi, k=4, method="topdown", seed=3)
    found = shoal.attack(release.data, register, on=["ward", "age"])
    assert found.none == 0
    assert found.smallest >= 4
    new, withheld = release.model.apply(register.select("ward", "age"))
    assert new.height == register.height
    assert not withheld
    rooms = register.with_columns(room=pl.col("diag") * 10)
    bounds = shoal.anonymize(
        rooms, quasi={"room": "sets", "age": "range"}, k=4, method="topdown", seed=3, cells="bounds"
    ).data
    assert bounds["room_low"].dtype.is_numeric()
    assert shoal.verify(bounds, quasi=["room_low", "room_high", "age_low", "age_high"], k=4)


@pytest.mark.parametrize("method", ["local", "mondrian"])
def test_promises_about_a_register_count_whom_a_set_covers(method: str) -> None:
    people = _stays()
    crowd = pl.concat([people, people.with_columns(pl.col("age") + 1)])
    release = shoal.anonymize(
        people,
        quasi={"ward": "sets", "age": "range"},
        promises=[shoal.KMap(6)],
        register=crowd,
        method=method,
        seed=1,
    )
    for row in release.data.unique().iter_rows(named=True):
        ward, age = read(row["ward"]), read(row["age"])
        fits = [
            entry
            for entry in crowd.iter_rows(named=True)
            if (ward.kind == "suppressed" or entry["ward"] in (row["ward"], *ward.members)) and age.covers(entry["age"])
        ]
        assert len(fits) >= 6


def test_groups_of_a_register_are_those_of_the_text() -> None:
    from shoal.core.register import beside_register

    frame, schema = _stays(), Schema.build(quasi={"ward": Sets(2), "age": None})
    table = beside_register(code(frame, schema), frame, schema, frame)
    labels = (np.arange(table.size) // 9).astype(np.int32)
    boxes = boxes_of(table, labels)
    register = groups_of(table, labels, boxes).register
    assert register is not None
    wards, ages = (levels.text(*boxes.column(j)).to_list() for j, levels in enumerate(table.levels))
    for count, ward, age in zip(register.counts(), wards, ages, strict=True):
        cell, span = read(ward), read(age)
        rows = frame.iter_rows(named=True)
        fits = [r for r in rows if (ward in ("*", r["ward"]) or r["ward"] in cell.members) and span.covers(r["age"])]
        assert count == len(fits)


def test_refusals() -> None:
    with pytest.raises(UsageError, match="at least 2"):
        Sets(1)
    with pytest.raises(UsageError, match="read like a set"):
        Sets().compile(pl.Series(["{a, b}", "c"]))
    with pytest.raises(UsageError, match="one by one"):
        shoal.z_anonymity(z=2, window="1h", hierarchy="sets")


@pytest.mark.parametrize("method", ["lattice", "datafly"])
def test_methods_that_never_publish_a_set_say_so(method: str) -> None:
    wards = pl.DataFrame({"ward": ["cardio", "neuro", "eye", "skin"], "age": [20, 21, 60, 61]})
    asked = {"quasi": {"ward": "sets", "age": "range"}, "k": 2}
    notes = shoal.anonymize(wards, **asked, method=method).report.notes
    assert any("column 'ward'" in note and "never a set" in note for note in notes)
    assert not any("never a set" in note for note in shoal.anonymize(wards, **asked, method="mondrian").report.notes)
