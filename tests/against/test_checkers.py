"""What other checkers answer wrongly about a table as it stands, each named after the tool and what it says."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

import shoal
from shoal.core.errors import PromiseError, UsageError
from shoal.core.hierarchy.tree import Tree


def test_pycanon_reports_l_of_2_for_l_of_1_on_a_permuted_index():
    table = pd.DataFrame({"q": ["a", "a", "b", "b"], "s": ["x", "x", "y", "z"]}, index=[2, 1, 3, 0])
    assert shoal.measure(table, quasi=["q"], sensitive=["s"]).sensitive["s"].distinct == 1
    assert not shoal.verify(table, quasi=["q"], sensitive=["s"], l=2).kept


def test_pycanon_fails_on_a_filtered_frame():
    table = pd.DataFrame({"q": ["a", "b", "b", "b"], "s": ["x", "x", "y", "z"]})
    found = shoal.measure(table[table["q"] == "b"], quasi=["q"], sensitive=["s"])
    assert (found.k, found.sensitive["s"].distinct) == (3, 3)


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_pycanon_and_anjana_say_k_of_2_where_a_missing_value_stands_alone(missing, kind):
    columns = {"q": [1.0, 1.0, 2.0, 2.0, missing]}
    table = pd.DataFrame(columns) if kind == "pandas" else pl.DataFrame(columns)
    assert shoal.measure(table, quasi=["q"]).k == 1
    assert not shoal.verify(table, quasi=["q"], k=2).kept
    released = shoal.anonymize(table, quasi=["q"], k=2)
    assert shoal.measure(released.data, quasi=["q"]).k >= 2


def test_a_missing_value_of_one_column_is_not_taken_for_a_value_of_another():
    nan = float("nan")
    table = pl.DataFrame({"a": [1.0, 1.0, 2.0, 2.0], "b": [1.0, nan, nan, 1.0]})
    assert shoal.measure(table, quasi=["a", "b"]).groups == 4


def test_pycanon_divides_by_zero_for_t_of_a_constant_number():
    table = pl.DataFrame({"q": ["a", "a", "b"], "s": [5, 5, 5]})
    found = shoal.measure(table, quasi=["q"], sensitive=["s"]).sensitive["s"]
    assert (found.t, found.t_ordered) == (0, 0)


def test_pycanon_fails_on_an_empty_frame():
    empty = pl.DataFrame({"q": [], "s": []}, schema={"q": pl.Int64, "s": pl.String})
    found = shoal.measure(empty, quasi=["q"], sensitive=["s"])
    assert (found.k, found.groups, found.risk.people) == (0, 0, 0)
    verdict = shoal.verify(empty, quasi=["q"], sensitive=["s"], k=2, l=2, t=0.5)
    assert verdict.kept
    assert {f.note for f in verdict.findings} == {"nothing was released"}
    with pytest.raises(PromiseError, match="reaches 0"):
        shoal.anonymize(empty, quasi=["q"], k=2)


@pytest.mark.parametrize("t", [0.01, 0.2])
def test_anonypy_overwrites_t_and_returns_one_valued_groups(t):
    table = pl.DataFrame({"q": range(40), "s": ["x", "x", "x", "y"] * 10})
    made = shoal.anonymize(table, quasi=["q"], sensitive=["s"], k=2, t=t)
    assert shoal.measure(made.data, quasi=["q"], sensitive=["s"]).sensitive["s"].t <= t + 1e-9


def test_anonypy_loses_the_other_columns_and_their_types():
    table = pd.DataFrame({"q": [1, 2, 3, 4], "s": ["a", "b", "a", "b"], "note": pd.array([1, None, 3, 4], "Int16")})
    made = shoal.anonymize(table, quasi=["q"], sensitive=["s"], plain=["note"], k=2, seed=0, keep_order=True).data
    assert list(made.columns) == ["q", "s", "note"]
    assert str(made["note"].dtype) == "Int16"
    assert made["note"].equals(table["note"])


def test_anjana_prints_and_returns_nothing_for_a_k_out_of_reach():
    with pytest.raises(PromiseError, match=r"9-anonymity cannot be reached: asked 9, .* reaches 8"):
        shoal.anonymize(pl.DataFrame({"q": range(8)}), quasi=["q"], k=9)


def test_anjana_raises_a_bare_key_error_for_a_value_the_hierarchy_does_not_know():
    tree = Tree(nodes={"north": ["a", "b"], "south": ["c"]})
    table = pl.DataFrame({"q": ["a", "a", "b", "c", "c", "elsewhere"]})
    made = shoal.anonymize(table, quasi={"q": tree}, k=2, seed=0, keep_order=True)
    assert made.withheld == {"unknown q": 1}
    assert made.data.height == 5


def test_anjana_labels_of_intervals_exclude_their_own_value():
    from shoal.core.cells import read

    ages = [10, 20, 30, 40]
    made = shoal.anonymize(
        pl.DataFrame({"age": ages}), quasi={"age": {"use": "range", "snap": True}}, k=2, seed=0, keep_order=True
    )
    assert all(read(text).covers(age) for text, age in zip(made.data["age"], ages, strict=True))


def test_sdcmicro_fails_on_a_name_with_a_hyphen():
    table = pl.DataFrame({"marital-status": ["a", "a", "b", "b"]})
    assert shoal.measure(table, quasi=["marital-status"]).k == 2


def test_sdcmicro_lets_a_missing_value_match_anything():
    """A weaker k than ours: a missing value is a value of its own."""
    table = pl.DataFrame({"a": ["x", "x", None], "b": ["1", "2", "1"]})
    assert shoal.measure(table, quasi=["a", "b"]).k == 1


def test_crowds_leaks_results_from_one_call_to_the_next():
    first = pl.DataFrame({"q": [1, 2, 3, 4]})
    second = pl.DataFrame({"q": [7, 8, 9, 10]})
    alone = shoal.anonymize(second, quasi=["q"], k=2, seed=0, keep_order=True).data
    shoal.anonymize(first, quasi=["q"], k=2)
    assert shoal.anonymize(second, quasi=["q"], k=2, seed=0, keep_order=True).data.equals(alone)


def test_a_quasi_column_of_a_wrong_name_is_named():
    with pytest.raises(UsageError, match="there is no column 'ages'"):
        shoal.measure(pl.DataFrame({"age": [1]}), quasi=["ages"])


def test_people_are_counted_where_peers_count_rows():
    visits = pl.DataFrame({"zip": ["1"] * 4 + ["2"] * 3, "who": [1, 1, 1, 1, 2, 3, 4]})
    assert shoal.measure(visits, quasi=["zip"]).k == 3
    found = shoal.measure(visits, quasi=["zip"], subject="who")
    assert (found.k, found.unit, found.risk.unique, found.risk.people) == (1, "people", 1, 4)
    report = shoal.anonymize(visits, quasi=["zip"], subject="who", k=2).report
    assert report.risk_before.people == 4
    assert report.risk_before.unique == 1
    assert report.risk_after.people == 4
    assert report.risk_after.prosecutor <= 1 / 2
