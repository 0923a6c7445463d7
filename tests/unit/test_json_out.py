"""JSON lines written by a kernel are those that polars writes, byte for byte."""

from __future__ import annotations

import io
import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.connect import json_out
from shoal.connect.json_out import json_lines
from shoal.core.arrow import FEW

PLAIN = st.text(st.sampled_from("ab/ \x7fä€😀{}:,"), max_size=30)
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1e16, 1e-7, 5e-324, math.inf, math.nan, 1600000000.25])
ROWS = st.tuples(
    st.none() | PLAIN, st.none() | FLOATS, st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.booleans()
)
SCHEMA = {"who": pl.String, "am é": pl.Float64, "n": pl.Int64, "b": pl.Boolean}


def by_polars(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_ndjson(out)
    return out.getvalue()


@given(st.lists(ROWS, min_size=1, max_size=20), st.integers(0, 9))
def test_plain_rows(rows: list[tuple[object, ...]], off: int) -> None:
    frame = pl.DataFrame(rows * (1 + (FEW + off) // len(rows)), schema=SCHEMA, orient="row")[off:]
    found = json_out._copied(frame.get_columns())
    assert found is not None
    assert found.data.tobytes() == bytes(json_lines(frame)) == by_polars(frame)
    assert list(found) == by_polars(frame).splitlines()


@given(st.text(st.sampled_from("abä"), max_size=20), st.sampled_from('"\\\n\x00\x1f'), st.text("yz", max_size=20))
def test_a_text_that_needs_an_escape_is_written_by_polars(before: str, odd: str, after: str) -> None:
    frame = pl.DataFrame({"who": ["ada"] * FEW + [before + odd + after]})
    assert json_out._copied(frame.get_columns()) is None
    assert json_lines(frame) == by_polars(frame)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series('a"b', ["x"]),
        pl.Series("a", [1.5], dtype=pl.Float32),
        pl.Series("a", [19_000], dtype=pl.Date),
        pl.Series("a", [["x", "y"]]),
        pl.Series("a", [2**64 - 1], dtype=pl.UInt64),
    ],
    ids=["name", "float32", "date", "list", "large"],
)
def test_other_columns_too(column: pl.Series) -> None:
    frame = pl.DataFrame([pl.concat([column] * FEW)])
    assert bytes(json_lines(frame)) == by_polars(frame)
