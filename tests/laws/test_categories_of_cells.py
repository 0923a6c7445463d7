"""Cells kept as polars' categories are read as the texts they stand for: by the order of rows, and by the judge."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import order
from shoal.core.order import publication_order
from shoal.core.schema import Column, Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.release.judge import Judge
from shoal.release.regional.judging import Court
from shoal.verifier import group

TEXTS = st.sampled_from(["*", "[20, 29]", "[3, 4]", "31", "ü", "", None])


@st.composite
def frames(draw) -> pl.DataFrame:
    rows = draw(st.integers(0, 30))
    columns = draw(st.integers(1, 5))
    cells = [draw(st.lists(TEXTS, min_size=rows, max_size=rows)) for _ in range(columns)]
    out = pl.DataFrame({f"c{at}": pl.Series(c, dtype=pl.String) for at, c in enumerate(cells)})
    number = draw(st.integers(0, columns))  # a column of another kind somewhere among them
    plain = pl.Series("plain", draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)), dtype=pl.Int64)
    return out.insert_column(number, plain)


def as_categories(frame: pl.DataFrame, chosen: set[int]) -> pl.DataFrame:
    names = [n for at, n in enumerate(frame.columns) if at in chosen and frame.schema[n] == pl.String]
    return frame.with_columns(pl.col(names).cast(pl.Categorical))


def slow_order(frame: pl.DataFrame, seed: int) -> list[tuple]:
    """The rows sorted by their texts, missing ones last, and shuffled."""
    rows = sorted(frame.rows(), key=lambda row: [(cell is None, cell or 0 if cell is None else cell) for cell in row])
    generator = np.random.default_rng([seed & 0xFFFFFFFF, seed >> 32, 0x0DE4, 0])
    return [rows[at] for at in generator.permutation(len(rows))]


@pytest.mark.parametrize("few", [0, 2, 4096])
@given(frame=frames(), chosen=st.sets(st.integers(0, 5)), seed=st.integers(0, 2**40))
def test_rows_leave_in_the_order_of_their_texts(few, frame, chosen, seed):
    before, order.FEW_TEXTS = order.FEW_TEXTS, few
    try:
        for form in (frame, as_categories(frame, chosen)):
            assert frame[publication_order(form, seed)].rows() == slow_order(frame, seed)
    finally:
        order.FEW_TEXTS = before


@given(frame=frames(), chosen=st.sets(st.integers(0, 5)))
def test_rows_that_read_alike_are_one_group(frame, chosen):
    names = [n for n in frame.columns if n != "plain"]
    labels = group(as_categories(frame, chosen), names)
    known: dict[tuple, int] = {}
    expected = [known.setdefault(row, len(known)) for row in frame.select(names).rows()]
    assert len(set(labels.tolist())) == len(known)
    assert len(set(zip(labels.tolist(), expected, strict=True))) == len(known)


@given(frame=frames(), chosen=st.sets(st.integers(0, 5)))
def test_the_judge_finds_the_same(frame, chosen):
    names = [n for n in frame.columns if n != "plain"]
    schema = Schema({**{n: Column("quasi") for n in names}, "plain": Column("sensitive")})
    court = Court(Judge(schema, (KAnonymity(2),)))
    assert court.bucket(as_categories(frame, chosen)) == court.bucket(frame)
