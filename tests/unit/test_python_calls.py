"""The short calls beside ``anonymize``, results in a notebook, and numbers as typed bounds."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.core.bounds import bounded
from shoal.core.cells import interval, read
from shoal.policy.load import parse

SECRET = "Meier<Secret>"


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 60, 120),
            "height": rng.integers(1500, 1900, 120) / 1000,
            "sex": rng.choice(["f", "m"], 120),
            "diag": rng.choice(["flu", "cold", "asthma"], 120),
        }
    )


@pytest.fixture(scope="module")
def in_bounds(people) -> shoal.core.release.Release:
    return shoal.anonymize(
        people, quasi=["age", "height", "sex"], sensitive="diag", k=4, cells="bounds", method="mondrian", seed=1
    )


def test_numbers_as_bounds_are_typed_hold_the_original_and_keep_the_promise(people, in_bounds):
    data = in_bounds.data
    assert data.columns == ["age_low", "age_high", "height_low", "height_high", "sex", "diag"]
    assert data.schema["age_low"] == pl.Int64
    assert data.schema["height_low"] == pl.Float64
    original = people[in_bounds.positions]
    for name in ("age", "height"):
        assert (data[f"{name}_low"] <= original[name]).all()
        assert (original[name] <= data[f"{name}_high"]).all()
    shown = [c for c in data.columns if c != "diag"]
    assert shoal.verify(data, quasi=shown, k=4)
    assert shoal.measure(data, quasi=shown).k >= 4


def test_bounds_say_what_the_text_says(people, in_bounds):
    text = shoal.anonymize(
        people, quasi=["age", "height", "sex"], sensitive="diag", k=4, method="mondrian", seed=1
    ).data
    for cell, low, high in zip(text["age"], in_bounds.data["age_low"], in_bounds.data["age_high"], strict=True):
        found = read(cell)
        assert (low, high) == ((found.low, found.high) if found.kind == "interval" else (int(cell), int(cell)))


def test_bounds_of_a_pandas_frame_come_back_as_pandas(people):
    made = shoal.anonymize(people.to_pandas(), quasi=["age"], k=4, cells="bounds", method="mondrian").data
    assert isinstance(made, pd.DataFrame)
    assert list(made.columns) == ["age_low", "age_high"]


@pytest.mark.parametrize("hidden", ["star", "drop"])
def test_a_view_has_bounds_in_the_place_of_the_number(people, hidden):
    policy = parse(f"""
columns: {{age: quasi, height: quasi, sex: quasi, diag: sensitive}}
views: {{r: {{show: [age, diag], hidden: {hidden}, promises: [{{use: k-anonymity, k: 3}}], method: mondrian}}}}""")
    made = shoal.anonymize(people, policy=policy, cells="bounds").data
    beside = [] if hidden == "drop" else ["height", "sex"]
    assert made.columns == ["age_low", "age_high", *beside, "diag"]


def test_bounds_do_not_replace_a_column_of_the_same_name(people):
    with pytest.raises(shoal.UsageError, match="'age_low' already"):
        shoal.anonymize(
            people.with_columns(age_low=pl.lit("x")), quasi=["age"], plain="age_low", k=4, cells="bounds",
            method="mondrian",
        )  # fmt: skip


CELLS = st.one_of(
    st.none(),
    st.just("*"),
    st.tuples(st.integers(-99, 99), st.integers(0, 9)).map(lambda t: interval(t[0], t[0] + t[1], whole=True)),
    st.tuples(st.integers(0, 99), st.integers(0, 9)).map(lambda t: interval(t[0], t[0] + t[1], whole=True, top=True)),
)


@given(st.lists(CELLS, min_size=1, max_size=20))
def test_every_cell_lies_between_its_bounds(cells):
    frame, made = bounded(pl.DataFrame({"n": pl.Series(cells, dtype=pl.String)}), ["n"])
    assert made == {"n": ("n_low", "n_high")}
    for text, low, high in zip(cells, frame["n_low"], frame["n_high"], strict=True):
        if text is None:
            assert low is None
            assert high is None
            continue
        cell = read(text)
        assert low <= high
        for value in (low, high):
            assert cell.covers(value) or value in (float("inf"), float("-inf"))


def test_texts_are_not_bounded():
    frame = pl.DataFrame({"n": ["[1, 2]", "unknown*"]})
    assert bounded(frame, ["n"])[0].equals(frame)


RESULTS = {
    "measure": lambda p: shoal.measure(p, quasi=["age"], sensitive="diag"),
    "verify": lambda p: shoal.verify(p, quasi=["sex"], k=2),
    "attack": lambda p: shoal.attack(p.head(5), p, on=["age"]),
    "compare": lambda p: shoal.compare(p, quasi=["age"], methods=["datafly"], k=[2]),
    "check": lambda p: shoal.check(parse("columns: {age: quasi}\nviews: {r: {show: [age]}}"), p),
    "plan": lambda p: shoal.plan(z=5, users=500, attributes=20, samples=50),
    "a running stream": lambda p: shoal.z_anonymity(z=2, window="1h"),
    "a batch of it": lambda p: shoal.z_anonymity(z=2, window="1h").push_many([0, 1], ["a", "b"], [SECRET, SECRET]),
    "stream": lambda p: shoal.stream(
        pl.DataFrame({"time": range(9), "subject": list("abcabcabc"), "value": ["x"] * 9}), z=2, window="1h"
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_one_line_in_a_list_and_a_block_in_a_notebook(people, name):
    found = RESULTS[name](people)
    assert repr(found).startswith("<")
    assert "\n" not in repr(found)
    assert len(repr(found)) < 160
    page = found._repr_html_()
    assert SECRET not in repr(found) + page
    assert "<script" not in page
    assert len(page) < 50_000


def test_names_of_columns_cannot_break_the_page():
    frame = pl.DataFrame({SECRET: ["a", "a", "b"], "x": [1, 1, 2]})
    assert "<Secret>" not in shoal.measure(frame, quasi="x", sensitive=SECRET)._repr_html_()


def test_a_stream_of_a_table_says_why_and_what_looks_wrong():
    rows = 120
    events = pl.DataFrame(
        {"time": [1577836800 + n for n in range(rows)], "subject": ["p"] * rows, "value": ["x"] * rows}
    )
    found = shoal.stream(events, z=2, window="1h")
    assert found.data.height == 0
    assert any("all events have the same subject" in note for note in found.report.notes)
    in_ms = shoal.stream(events, z=2, window="1h", unit="ms")
    assert any("in s they lie in our days" in note for note in in_ms.report.notes)
    with pytest.raises(shoal.UsageError, match="no stream"):
        shoal.stream(events, quasi="value", k=2)


def test_every_call_has_an_example():
    for name in ("anonymize", "verify", "measure", "attack", "view", "compare", "check", "stream", "plan"):
        assert ">>>" in (inspect.getdoc(getattr(shoal, name)) or ""), name
