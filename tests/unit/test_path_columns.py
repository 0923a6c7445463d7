"""Columns of a stream whose values are paths: what is remembered may be forgotten, and nothing changes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.cells import interval
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column, Schema
from shoal.kernels.delay.stream_boxes import spread_paths
from shoal.promises.k_anonymity import KAnonymity
from shoal.streams import path_columns
from shoal.streams.base import Batch, Reason
from shoal.streams.batches import Batches
from shoal.streams.quasi_columns import Numbers

KEY = bytes(range(32))
TREE = {"lungs": ["covid", "asthma"], "blood": ["diabetes", "anaemia"]}


def schema(kind: Hierarchy) -> Schema:
    return Schema({"zip": Column("quasi", hierarchy=Prefix(3)), "kind": Column("quasi", hierarchy=kind)})


def released(frame: pl.DataFrame, kind: Hierarchy, size: int) -> list[tuple[object, ...]]:
    stream = Batches(delay=40).start(schema(kind), [KAnonymity(3)], key=KEY)
    out: list[tuple[object, ...]] = []
    for first in range(0, frame.height, size):
        part = frame[first : first + size]
        got = stream.push(Batch(part, np.arange(part.height), None, first))
        out += got.released.rows() if got.released is not None else []
    last = stream.flush().released
    return out + (last.rows() if last is not None else [])


def test_forgetting_labels_in_the_middle_of_a_stream_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "zip": [f"{v:03}" for v in rng.integers(0, 1000, 600)],
            "kind": [["covid", "asthma", "diabetes", "anaemia", None][i] for i in rng.integers(0, 5, 600)],
        }
    )
    usual = released(frame, Tree(nodes=TREE), 7)
    assert len(usual) == 600
    monkeypatch.setattr(path_columns, "CACHE", 50)
    assert released(frame, Tree(nodes=TREE), 7) == usual
    assert released(frame, Tree(nodes=TREE), 150) == usual


def test_a_value_the_tree_does_not_know_is_withheld_or_goes_under_its_default() -> None:
    frame = pl.DataFrame({"zip": ["100"] * 4, "kind": ["covid", "covid", "gout", "gout"]})
    strict = Batches(delay=3).start(schema(Tree(nodes=TREE)), [KAnonymity(2)], key=KEY)
    out = strict.push(Batch(frame, np.arange(4)))
    assert out.withheld.tolist() == [2, 3]
    assert set(out.reasons.tolist()) == {Reason.UNKNOWN}
    kind = Tree(nodes={**TREE, "other": ["none"]}, default="other")
    lenient = Batches(delay=3).start(schema(kind), [KAnonymity(4)], key=KEY)
    told = lenient.push(Batch(frame, np.arange(4))).released
    assert told is not None
    assert set(told["kind"]) == {"*"}
    alone = Batches(delay=3).start(schema(kind), [KAnonymity(2)], key=KEY)
    told = alone.push(
        Batch(frame.with_columns(kind=pl.Series(["gout", "gout", "rash", "rash"])), np.arange(4))
    ).released
    assert told is not None
    assert set(told["kind"]) == {"gout", "rash"}


def test_a_tree_whose_levels_do_not_nest_is_refused_at_the_start(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "broken.csv"
    file.write_text("a;x;north;*\nb;x;south;*\n")
    with pytest.raises(UsageError, match="does not nest"):
        Batches(delay=9).start(schema(Tree(file=str(file))), [KAnonymity(2)], key=KEY)


@given(st.lists(st.integers(0, 4), min_size=1), st.integers(0, 1))
def test_paths_are_spread_as_indexing_would(at: list[int], j: int) -> None:
    rng = np.random.default_rng(len(at))
    nodes, costs = rng.integers(1, 99, (5, 3)), rng.random((5, 3))
    node, cost = np.zeros((len(at), 2, 4), np.int64), np.zeros((len(at), 2, 4))
    spread_paths(nodes, costs, np.array(at, np.int32), 0.5, j, node, cost)
    assert (node[:, j, :3] == nodes[at]).all()
    assert (cost[:, j, :3] == costs[at] * 0.5).all()
    assert not node[:, 1 - j].any()
    assert not node[:, j, 3].any()


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 30)), min_size=1), st.booleans())
def test_numbers_are_written_as_one_by_one(ends: list[tuple[int, int]], whole: bool) -> None:
    column = Numbers("x", Column("quasi", type="int" if whole else "float"), Range(min=-50, max=80))
    low = np.array([a for a, _ in ends], np.float64) / (1 if whole else 8)
    high = low + np.array([b for _, b in ends]) / (1 if whole else 8)
    written = column.text(low, high, np.zeros(len(ends), np.int8))
    assert written == [interval(a, b, whole=whole) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
