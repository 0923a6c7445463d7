"""Allgöwer 2023, section CASTLE: VInfoLoss, and Tables 6 to 9 (k, l and t of each; it names no t for Table 9)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.measures.value_loss import node_loss, number_loss, tuple_loss
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.streams.base import Batch
from shoal.streams.castle import Castle
from shoal.verifier import verify

DIAGNOSES = ["Covid", "Asthma", "Covid", "Diabetes", "Covid", "Covid", "Asthma", "Diabetes", "Diabetes"]
TABLE_7 = {"Germany [25 - 55]": [1, 3, 6], "UK [20 - 45]": [2, 5, 8], "Spain [30 - 70]": [4, 7, 9]}
TABLE_8 = {"EU [25 - 55]": [1, 6, 7], "UK [20 - 45]": [2, 5, 8], "EU [30 - 70]": [3, 4, 9]}
TABLE_9 = {"EU [25 - 60]": [1, 4, 6], "UK [20 - 45]": [2, 5, 8], "EU [30 - 70]": [3, 7, 9]}
# Figure 14: nine leaves, three under Germany; it names Germany, Spain and the UK, its cities are ours
RESIDENCY = {
    "EU": {"Germany": ["Berlin", "Hamburg", "Munich"], "Spain": ["Madrid", "Seville", "Malaga"]},
    "UK": {"England": ["London", "Leeds", "York"]},
}


def released(groups: dict[str, list[int]]) -> pl.DataFrame:
    rows = [(cell, DIAGNOSES[i - 1]) for cell, members in groups.items() for i in members]
    return pl.DataFrame(rows, schema=["group", "diagnosis"], orient="row")


def reached(groups: dict[str, list[int]]) -> tuple[float, float, float]:
    promises = [KAnonymity(1), LDiversity(1, "diagnosis"), TCloseness(1, "diagnosis")]
    k, l, t = verify(released(groups), ["group"], promises).findings
    return k.reached, l.reached, t.reached


def test_germany_loses_two_eighths() -> None:
    assert node_loss(3, 9) == 2 / 8
    assert node_loss(1, 9) == 0.0
    assert node_loss(9, 9) == 1.0
    assert number_loss(25, 55, 25, 85) == 0.5
    assert tuple_loss([2 / 8, 0.5]) == 0.375


@pytest.mark.parametrize(
    ("table", "k", "l", "t"), [(TABLE_7, 3, 1, 5 / 9), (TABLE_8, 3, 2, 1 / 3), (TABLE_9, 3, 2, 2 / 9)]
)
def test_tables_7_to_9_keep_what_they_are_said_to_keep(table: dict[str, list[int]], k: int, l: int, t: float) -> None:
    assert reached(table) == (k, l, pytest.approx(t))


def test_castle_charges_what_the_seed_charges() -> None:
    """Two people in Berlin and Munich of one age: published as Germany, which costs 2/8 in one of two columns."""
    schema = Schema.build(quasi={"residency": Tree(nodes=RESIDENCY), "age": Range(min=0, max=100)})
    stream = Castle(delay=5).start(schema, [KAnonymity(2)], key=bytes(32))
    stream.push(Batch(pl.DataFrame({"residency": ["Berlin", "Munich"], "age": [30, 30]}), np.arange(2)))
    out = stream.flush().released
    assert out is not None
    assert out.rows() == [("Germany", "30")] * 2
    assert stream.figures()["loss"] == pytest.approx(tuple_loss([2 / 8, 0.0]))


def test_castle_with_the_promises_of_table_8_finds_groups_that_keep_them() -> None:
    ages = [25, 20, 40, 60, 45, 55, 30, 35, 70]
    places = ["Berlin", "London", "Hamburg", "Madrid", "Leeds", "Munich", "Seville", "York", "Malaga"]
    frame = pl.DataFrame({"residency": places, "age": ages, "diagnosis": DIAGNOSES})
    schema = Schema.build(
        quasi={"residency": Tree(nodes=RESIDENCY), "age": Range(min=0, max=100)}, sensitive=["diagnosis"]
    )
    promises = [KAnonymity(3), LDiversity(2, "diagnosis")]
    stream = Castle(delay=20, beta=3).start(schema, promises, key=bytes(32))
    stream.push(Batch(frame, np.arange(9)))
    out = stream.flush()
    assert out.released is not None
    assert len(out.events) + len(out.withheld) == 9
    assert verify(out.released, ["residency", "age"], promises).kept
