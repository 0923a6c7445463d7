"""Regions beside what they promise: every row in one, found again from the cuts alone, none above its size."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.tables.regions import Regions, cut

NODES = {"ad": {"ab": ["a", "b"], "cd": ["c", "d"]}, "eh": {"ef": ["e", "f"], "gh": ["g", "h"]}}
TABLES = st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abcdefgh")), min_size=1, max_size=60).map(
    lambda rows: code(
        pl.DataFrame(rows, schema=["n", "t"], orient="row"), Schema.build(quasi={"n": None, "t": Tree(nodes=NODES)})
    )
)


def slowly(regions: Regions, row: np.ndarray) -> int:
    at = 0 if len(regions.column) else -1
    while at >= 0:
        at = int(regions.left[at] if row[regions.column[at]] <= regions.last[at] else regions.right[at])
    return -1 - at


@given(TABLES, st.integers(1, 20))
@settings(max_examples=60)
def test_every_row_has_the_region_its_cuts_say_and_none_is_too_large(table: Table, most: int) -> None:
    regions = cut(table.matrix, table.shape(), most)
    found = regions.of(table.matrix)
    assert found.tolist() == [slowly(regions, row) for row in table.matrix]
    assert set(found.tolist()) == set(range(regions.count))
    for region in range(regions.count):
        rows = table.matrix[found == region]
        assert len(rows) <= most or (rows == rows[0]).all()


@given(TABLES, st.integers(1, 20), st.integers(1, 30))
@settings(max_examples=60)
def test_joined_regions_hold_enough_and_keep_every_cut_that_can_stay(table: Table, most: int, least: int) -> None:
    regions = cut(table.matrix, table.shape(), most)
    sizes = np.bincount(regions.of(table.matrix), minlength=regions.count)
    joined = regions.joined(lambda chosen: bool(sizes[chosen].sum() >= least))
    found = joined.of(table.matrix)
    counts = np.bincount(found, minlength=joined.count)
    assert joined.count == 1 or counts.min() >= least
    # rows of one region before are in one region still
    for region in range(regions.count):
        assert len(set(found[regions.of(table.matrix) == region].tolist())) == 1
    if len(regions.column):
        ends = [regions.of(table.matrix) == -1 - e for e in (regions.left[0], regions.right[0]) if e < 0]
        if joined.count == 1 and len(ends) == 2:
            assert min(int(e.sum()) for e in ends) < least


def test_cuts_run_between_high_nodes() -> None:
    letters = list("aabbccddeeffgghh")
    table = code(pl.DataFrame({"t": letters}), Schema.build(quasi={"t": Tree(nodes=NODES)}))
    regions = cut(table.matrix, table.shape(), 8)
    parts = [sorted(letters[i] for i in table.rows[regions.of(table.matrix) == r]) for r in range(regions.count)]
    assert sorted(parts) == [list("aabbccdd"), list("eeffgghh")]


def test_a_sample_cuts_in_proportion() -> None:
    table = code(pl.DataFrame({"n": np.arange(1000)}), Schema.build(quasi={"n": None}))
    assert cut(table.matrix, table.shape(), 1000, rows=8000).count == cut(table.matrix, table.shape(), 125).count == 8
