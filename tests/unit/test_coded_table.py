"""Coding a table: the rows of a small one are told apart in Python, those of a large one by polars."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import verifier
from shoal.core import table as core_table
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.schema import Column, Schema
from shoal.core.table import code


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "", None]), st.sampled_from(["x", None]), st.integers(0, 2))))
def test_small_tables_are_coded_as_large_ones(rows):
    frame = pl.DataFrame(rows, schema={"zip": pl.String, "sex": pl.String, "age": pl.Int64}, orient="row")
    described = Schema({name: Column("quasi", hierarchy=Suppress()) for name in frame.columns})
    small, alike = code(frame, described), verifier.group(frame, frame.columns)
    with pytest.MonkeyPatch.context() as here:
        for module in (core_table, verifier):
            here.setattr(module, "FEW_ROWS", -1)
        large, also = code(frame, described), verifier.group(frame, frame.columns)
    assert (small.matrix == large.matrix).all()
    assert [first == second for first in alike for second in alike] == [a == b for a in also for b in also]
    assert len(set(alike.tolist())) == len(set(rows))


@pytest.mark.parametrize("hierarchy", [None, Range(min=0, max=100), Prefix(2), Suppress()])
@given(st.lists(st.none() | st.integers(0, 99), min_size=1, max_size=30))
def test_whole_numbers_of_128_bits_are_coded_as_those_of_64(hierarchy, numbers):
    """polars makes them of JSON numbers beyond 64 bits; numpy has none."""
    described = Schema({"n": Column("quasi", hierarchy=hierarchy)})
    tables = [code(pl.DataFrame({"n": pl.Series(numbers, dtype=kind)}), described) for kind in (pl.Int64, pl.Int128)]
    assert (tables[0].matrix == tables[1].matrix).all()
