"""What a model learns from a release, beside the original and beside guessing."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import UsageError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.release import boxes_of
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.measures import learning
from shoal.measures.learning import Learned, Learner
from shoal.promises.k_anonymity import KAnonymity
from shoal.tables.local import Local

# not by importing it: each worker of the tests would, for a second
pytestmark = pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")


def people(rows: int, seed: int) -> pl.DataFrame:
    """Age and place say much of the outcome, and not all."""
    random = np.random.default_rng(seed)
    age, place = random.integers(18, 90, rows), random.integers(0, 40, rows)
    sick = random.random(rows) < 1 / (1 + np.exp(-(age - 50) / 8 - (place // 10 - 1.5)))
    return pl.DataFrame(
        {"age": age, "zip": [f"{x:02d}" for x in place], "sick": np.where(sick, "yes", "no"), "id": np.arange(rows)}
    )


def coded(frame: pl.DataFrame) -> Table:
    return code(frame, Schema.build(quasi={"age": None, "zip": Prefix(2)}))


@given(seed=st.integers(0, 99))
@settings(max_examples=5)
def test_rows_as_they_are_teach_what_the_original_does_and_one_group_teaches_nothing(seed):
    frame = people(300, seed)
    table = coded(frame)
    learner = Learner(table, frame["sick"], seed)
    alike = np.unique(table.matrix, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)
    same = learner.learned(alike, boxes_of(table, alike))
    assert same.released == same.original
    one = np.zeros(table.size, np.int32)
    nothing = learner.learned(one, boxes_of(table, one))
    assert nothing.released == nothing.guessed
    assert nothing.original == same.original


@given(seed=st.integers(0, 99))
@settings(max_examples=10)
def test_guessing_is_right_as_often_as_the_commonest_value_of_the_others(seed):
    frame = people(60, seed)
    table = coded(frame)
    learner = Learner(table, frame["sick"], seed)
    one = np.zeros(table.size, np.int32)
    right = 0
    wanted = frame["sick"].gather(table.rows[learner._rows]).to_list()
    for fold, value in zip(learner._fold, wanted, strict=True):
        others = [v for f, v in zip(learner._fold, wanted, strict=True) if f != fold]
        yes = others.count("yes")
        right += value == ("yes" if yes > len(others) - yes else "no")
    assert learner.learned(one, boxes_of(table, one)).guessed == round(right / len(wanted), 3)


def test_cells_are_means_of_the_values_behind_them_by_hand():
    frame = pl.DataFrame({"zip": ["10", "11", "11", "20"], "s": ["a", "b", "a", "b"]})
    table = code(frame, Schema.build(quasi={"zip": Prefix(2)}))
    labels = np.array([0, 0, 0, 1], np.int32)
    own = learning._features(table.levels[0], np.array([1.0, 2.0, 1.0]))
    cells = learning._in_cells(table.levels[0], boxes_of(table, labels), 0, own, np.array([1.0, 2.0, 1.0]))
    assert np.allclose(cells, [[1 / 3, 2 / 3, 0], [0, 0, 1]])


def test_more_k_teaches_less_and_a_small_k_most_of_it():
    frame = people(3000, 5)
    table = coded(frame)
    learner = Learner(table, frame["sick"])
    shares = []
    for k in (3, 1500):
        labels = Local().group(table, [KAnonymity(k)]).labels
        shares.append(learner.learned(labels, boxes_of(table, labels)).kept)
    assert shares[0] > max(0.95, shares[1])


def test_withheld_rows_are_in_no_figure():
    frame = people(300, 1)
    table = coded(frame)
    labels = np.unique(table.matrix, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)
    labels[table.matrix[:, 0] > 20] = -1
    kept = np.flatnonzero(labels >= 0)
    labels[kept] = np.unique(labels[kept], return_inverse=True)[1]
    found = Learner(table, frame["sick"], 3).learned(labels, boxes_of(table, labels))
    changed = frame.with_columns(
        pl.when(pl.Series(np.isin(np.arange(300), table.rows[labels < 0])))
        .then(pl.lit("yes"))
        .otherwise("sick")
        .alias("sick")
    )
    assert Learner(table, changed["sick"], 3).learned(labels, boxes_of(table, labels)) == found


def test_all_rows_of_a_person_are_asked_about_together():
    frame = people(200, 2).with_columns(pl.Series("id", np.arange(200) // 4))
    table = code(frame, Schema.build(quasi={"age": None}, subject="id"))
    learner = Learner(table, frame["sick"])
    assert table.people is not None
    folds: dict[int, set[int]] = {}
    for row, fold in zip(learner._rows, learner._fold, strict=True):
        folds.setdefault(int(table.people[row]), set()).add(int(fold))
    assert all(len(found) == 1 for found in folds.values())
    assert len(folds) == 50


def test_a_comparison_shows_it_in_text_page_and_picture():
    found = shoal.compare(people(200, 3), quasi=["age", "zip"], methods=["mondrian", "local"], k=[2, 20], learn="sick")
    assert all(isinstance(row.learned, Learned) for row in found.rows)
    first = found.rows[0].learned
    assert "right about 'sick'" in found.text()
    assert f"{first.released:.1%}" in found.text()
    page = found.page("Comparison")
    assert "What a model learns about sick" in page
    assert f"{first.released:.1%}" in page
    assert "right" not in shoal.compare(people(50, 3), quasi=["age"], methods="mondrian", k=2).text()


@pytest.mark.parametrize(("target", "words"), [("age", "cannot be one of them"), ("id", "2 to 100"), ("no", "learn")])
def test_what_cannot_be_learned_is_refused(target, words):
    with pytest.raises(UsageError) as error:
        shoal.compare(people(200, 3), quasi=["age", "zip"], methods="mondrian", k=2, learn=target)
    assert words in str(error.value)


@pytest.mark.shared
def test_guessing_on_adult_is_right_about_75_percent(shared):
    """Of the 30,162 rows 7,508 earn more than 50K (adult.names of the UCI repository), so 75.1 % do not."""
    frame = pl.read_csv(shared / "data" / "adult" / "adult_arx_30162.csv.gz")
    assert (frame["salary-class"] == "<=50K").sum() == 30_162 - 7_508
    table = code(frame, Schema.build(quasi={"age": None, "sex": None}))
    one = np.zeros(table.size, np.int32)
    found = Learner(table, frame["salary-class"]).learned(one, boxes_of(table, one))
    assert abs(found.guessed - (1 - 7_508 / 30_162)) < 0.005  # a sample of 20,000
    assert found.released == found.guessed
