"""What other table anonymizers get wrong, as tests of our methods: each named after the tool and what it does."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import api
from shoal.core.cells import read
from shoal.core.errors import PromiseError, UsageError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.core.table import code
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.t_closeness import TCloseness
from shoal.tables import TABLE_METHODS
from shoal.tables.forest import Forest, largest

every_method = pytest.mark.parametrize("method", TABLE_METHODS.names())
FUZZ = [(20, 2), (40, 3), (60, 3), (60, 4), (60, 5), (100, 3), (100, 5), (100, 8)]  # 200 tables each


def anonymize(frame, **how):
    """A release in the order of the input, the same each time: what is compared here are cells."""
    return api.anonymize(frame, **{"seed": 0, "keep_order": True, **how})


@pytest.mark.parametrize(("n", "k"), FUZZ)
def test_k_anon_breaks_k_in_40_of_1600_tables(n, k):
    """Suppressor columns, random values: cuts B and C may move a Steiner vertex that counts nothing."""
    schema = Schema.build(quasi={f"c{j}": Suppress() for j in range(4)})
    for seed in range(200):
        random = np.random.default_rng([n, k, seed])
        frame = pl.DataFrame({f"c{j}": random.integers(0, random.integers(2, 6), n) for j in range(4)})
        sizes = np.bincount(Forest().group(code(frame, schema), [KAnonymity(k)], seed=seed).labels)
        assert sizes.min() >= k
        assert sizes.max() <= largest(k)


@every_method
def test_k_anon_panics_with_fewer_rows_than_k(method):
    with pytest.raises(PromiseError, match="cannot be reached"):
        anonymize(pl.DataFrame({"x": [1, 2]}), quasi=["x"], k=3, method=method)


@pytest.mark.parametrize("k", [0, -1])
def test_k_anon_panics_at_k_of_zero(k):
    with pytest.raises(UsageError, match="k must be at least 1"):
        anonymize(pl.DataFrame({"x": [1, 2]}), quasi=["x"], k=k)


@every_method
def test_k_anon_divides_by_zero_for_a_range_of_one_value(method):
    frame = pl.DataFrame({"x": [5, 5, 5, 5], "y": ["a", "a", "b", "b"]})
    out = anonymize(frame, quasi={"x": Range(min=5, max=5), "y": Suppress()}, k=2, method=method)
    assert out.data.rows() == [("5", "a"), ("5", "a"), ("5", "b"), ("5", "b")]


def test_k_anon_reads_text_in_a_number_column_as_zero():
    with pytest.raises(UsageError, match="expected numbers"):
        anonymize(pl.DataFrame({"x": ["1", "2"]}), quasi={"x": Range()}, k=2)


def test_k_anon_refuses_only_some_values_outside_a_range():
    with pytest.raises(UsageError, match="outside"):
        anonymize(pl.DataFrame({"x": [11, 11]}), quasi={"x": Range(min=0, max=10)}, k=2)


@every_method
def test_k_anon_gives_another_result_each_time(method):
    random = np.random.default_rng(1)
    frame = pl.DataFrame({"x": random.integers(0, 50, 60), "y": random.integers(0, 9, 60)})
    one, other = (anonymize(frame, quasi=["x", "y"], k=4, method=method, seed=3).data for _ in range(2))
    assert one.equals(other)


@every_method
def test_anonypy_ignores_t(method):
    """t = 0.01 returned groups of one sensitive value."""
    random = np.random.default_rng(2)
    frame = pl.DataFrame({"age": random.integers(20, 60, 80), "ill": random.choice(["flu", "cold"], 80)})
    asked = [KAnonymity(2), TCloseness(0.05, "ill")]
    out = anonymize(frame, quasi=["age"], sensitive=["ill"], promises=asked, method=method)
    whole = (frame["ill"] == "flu").mean()
    for _, group in out.data.group_by("age"):
        assert abs((group["ill"] == "flu").mean() - whole) <= 0.05 + 1e-9


@every_method
def test_anonypy_returns_one_group_of_8_for_k_of_100(method):
    with pytest.raises(PromiseError, match="asked 100, the whole table as one group reaches 8"):
        anonymize(pl.DataFrame({"x": range(8)}), quasi=["x"], k=100, method=method)


@every_method
def test_anonypy_loses_the_other_columns_and_fails_on_text(method):
    frame = pl.DataFrame({"x": ["a", "b", "a", "b"], "keep": [1.5, 2.5, 3.5, 4.5]})
    out = anonymize(frame, quasi=["x"], plain=["keep"], k=2, method=method).data
    assert out["keep"].equals(frame["keep"])


@every_method
def test_pycanon_and_anjana_call_a_row_with_a_missing_value_k_of_2(method):
    frame = pl.DataFrame({"x": [1.0, 1.0, None, 2.0, 2.0]})
    out = anonymize(frame, quasi={"x": Range()}, k=2, method=method)
    assert out.data["x"].n_unique() < 3, "the row with nothing in it is in a group of two"


@every_method
def test_anjana_labels_exclude_their_value(method):
    """10 was published as [0, 10) and 20 as [10, 20)."""
    values = [0, 10, 20, 30, 40, 50]
    out = anonymize(pl.DataFrame({"x": values}), quasi={"x": Range(min=0, max=50, snap=True)}, k=2, method=method)
    for value, cell in zip(values, out.data["x"], strict=True):
        assert cell == str(value) or read(cell).covers(value)


@every_method
def test_anjana_raises_a_bare_key_error_for_a_value_outside_its_hierarchy(method):
    frame = pl.DataFrame({"x": ["a", "b", "a", "b", "unheard of"]})
    out = anonymize(frame, quasi={"x": Tree(nodes={"all": ["a", "b"]})}, k=2, method=method)
    assert out.data.height == 4
    assert out.withheld == {"unknown x": 1}


@pytest.mark.parametrize("method", ["datafly", "lattice"])
def test_anjana_adds_an_index_column_when_it_suppresses(method):
    frame = pl.DataFrame({"x": ["101", "102", "103", "990"]})
    kind = TABLE_METHODS.get(method)(suppress=0.25)
    out = anonymize(frame, quasi={"x": Prefix(3)}, k=3, method=kind)
    assert out.data.columns == ["x"]
    assert out.data["x"].to_list() == ["10*"] * 3


@every_method
def test_crowds_leaks_results_between_calls(method):
    one = pl.DataFrame({"x": [1, 2, 3, 4, 5, 6]})
    first = anonymize(one, quasi=["x"], k=2, method=method).data
    anonymize(pl.DataFrame({"x": [100, 200, 300]}), quasi=["x"], k=3, method=method)
    assert anonymize(one, quasi=["x"], k=2, method=method).data.equals(first)


@every_method
def test_sdcmicro_fails_on_a_hyphen_in_a_name(method):
    frame = pl.DataFrame({"marital-status": ["a", "a", "b", "b"]})
    out = anonymize(frame, quasi=["marital-status"], k=2, method=method)
    assert out.report.verified


@every_method
def test_qiyuangong_publishes_ranges_of_unordered_codes(method):
    tree = Tree(nodes={"north": ["Bergen", "Oslo"], "south": ["Rome", "Bari"]})
    frame = pl.DataFrame({"city": ["Oslo", "Bergen", "Rome", "Bari"]})
    out = anonymize(frame, quasi={"city": tree}, k=2, method=method)
    assert set(out.data["city"]) <= {"north", "south", "*"}


@every_method
def test_a_column_of_very_many_texts_is_all_or_nothing(method):
    n = 20_000
    frame = pl.DataFrame({"x": [f"t{i}" for i in range(n)]})
    out = anonymize(frame, quasi=["x"], k=2, method=method)
    assert out.report.verified
    assert out.report.loss.gcp == 1.0
