"""Frames as JSON lines: plain columns by a kernel, byte for byte as polars writes them; everything else by polars."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from shoal.connect.ndjson import as_json
from shoal.core.arrow import FEW, Views
from shoal.kernels.shared.json_write import ESCAPES, json_rows
from shoal.kernels.shared.views import SLACK

NUMBERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float64, pl.Boolean)


def json_lines(frame: pl.DataFrame) -> bytes | memoryview:
    """One JSON object per row, a line each; bytes are JSON values, which stand as they are.

    >>> bytes(json_lines(pl.DataFrame({"age": [36, None], "who": ["ada", "b\\\\"]})))
    b'{"age":36,"who":"ada"}\\n{"age":null,"who":"b\\\\\\\\"}\\n'
    """
    frame = as_json(frame)
    raw = [name for name, dtype in frame.schema.items() if dtype == pl.Binary]
    plain = all(dtype in (pl.String, pl.Binary) or dtype in NUMBERS for dtype in frame.dtypes)
    # few rows are not worth compiling anything
    found = _copied(frame.get_columns()) if plain and frame.width and frame.height >= FEW else None
    if found is None and raw:
        made = [
            {**row, **{n: msgspec.Raw(row[n]) for n in raw if row[n] is not None}} for row in frame.rows(named=True)
        ]
        return msgspec.json.Encoder().encode_lines(made)
    if found is None:
        out = io.BytesIO()
        frame.write_ndjson(out)
        return out.getvalue()
    return found


def _copied(columns: Sequence[pl.Series]) -> memoryview | None:
    views = [Views.of(_texts(column)) for column in columns]
    heads = [
        f"{',' if at else '{'}{json.dumps(column.name, ensure_ascii=False)}:".encode()
        for at, column in enumerate(columns)
    ]
    there = [view for view in views if view is not None]
    # polars has its own way with names that need an escape
    if len(there) < len(columns) or any(b"\\" in head for head in heads):
        return None
    lengths = np.stack([view.lengths for view in there])
    # each cell with two quotes, or as null; each line with its end
    room = int(np.maximum(lengths, 2).sum()) + lengths.shape[1] * (2 + sum(len(head) + 2 for head in heads)) + SLACK
    out = np.empty(room, np.uint8)
    written = json_rows(
        np.array([view.handle for view in there], np.int64),
        lengths,
        np.array([column.dtype == pl.String for column in columns]),
        np.frombuffer(b"".join([*heads, bytes(SLACK)]), np.uint8),
        np.cumsum([0, *map(len, heads)], dtype=np.int64),
        out,
    )
    return None if written == ESCAPES else memoryview(out)[:written]  # type: ignore[arg-type]


def _texts(column: pl.Series) -> pl.Series:
    """The texts of a column's cells, as they stand in JSON but for quotes; missing where JSON has no number for it."""
    if column.dtype == pl.String:
        return column
    if column.dtype == pl.Binary:
        return column.cast(pl.String)
    if column.dtype == pl.Float64 and not column.is_finite().all():
        column = column.set(~column.is_finite(), None)
    return column.cast(pl.String)
