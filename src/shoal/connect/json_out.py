"""Frames as JSON lines: plain columns by a kernel, byte for byte as polars writes them; everything else by polars."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from shoal.connect.ndjson import as_json
from shoal.core.arrow import FEW, Views, pieces
from shoal.core.lines import Lines
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
    return found.data.data


class Cells(NamedTuple):
    """A column of JSON rows: its name as JSON, the texts of its cells, and whether they are texts in JSON, too.

    >>> [bytes(line) for line in rows_of([Cells(b'"n"', pl.Series(["1.50"]), False)])]
    [b'{"n":1.50}']
    """

    name: bytes
    texts: pl.Series
    quoted: bool

    @classmethod
    def of(cls, name: str, values: pl.Series | Sequence[Any]) -> Cells:
        """Values as the encoder of records spells them.

        >>> Cells.of("at", [1e16, None]).texts.to_list(), Cells.of("who", pl.Series(["ada"])).quoted
        (['1e16', 'null'], True)
        """
        if isinstance(values, pl.Series) and values.dtype == pl.String:
            return cls(_encode(name), values, True)
        if isinstance(values, pl.Series) and values.dtype in (pl.Int64, pl.Boolean):
            return cls(_encode(name), values.cast(pl.String), False)
        # no line end stands in a value: all at once, and parted again, costs less than one by one
        lines = Lines.split(_lines(values.to_list() if isinstance(values, pl.Series) else values))
        return cls(_encode(name), pieces(lines.data, lines.starts, lines.lengths), False)


def rows_of(columns: Sequence[Cells]) -> Lines | None:
    """Rows as JSON lines; None where a text needs an escape, or where kernels are not compiled.

    >>> list(rows_of([Cells.of("who", pl.Series(["ada", None])), Cells.of("n", [7, 8])]))
    [b'{"who":"ada","n":7}', b'{"who":null,"n":8}']
    """
    views = [Views.of(column.texts) for column in columns]
    heads = [(b"," if at else b"{") + column.name + b":" for at, column in enumerate(columns)]
    there = [view for view in views if view is not None]
    if not there or len(there) < len(columns):
        return None
    lengths = np.stack([view.lengths for view in there])
    # each cell with two quotes, or as null; each line with its end
    room = int(np.maximum(lengths, 2).sum()) + lengths.shape[1] * (2 + sum(len(head) + 2 for head in heads)) + SLACK
    out, sizes = np.empty(room, np.uint8), np.empty(lengths.shape[1], np.int64)
    written = json_rows(
        np.array([view.handle for view in there], np.int64),
        lengths,
        np.array([column.quoted for column in columns]),
        np.frombuffer(b"".join([*heads, bytes(SLACK)]), np.uint8),
        np.cumsum([0, *map(len, heads)], dtype=np.int64),
        out,
        sizes,
    )
    return None if written == ESCAPES else Lines.behind(out[:written], sizes)


def _copied(columns: Sequence[pl.Series]) -> Lines | None:
    names = [json.dumps(column.name, ensure_ascii=False).encode() for column in columns]
    # polars has its own way with names that need an escape
    if any(b"\\" in name for name in names):
        return None
    each = zip(names, columns, strict=True)
    return rows_of([Cells(name, _texts(column), column.dtype == pl.String) for name, column in each])


def _texts(column: pl.Series) -> pl.Series:
    """The texts of a column's cells, as they stand in JSON but for quotes; missing where JSON has no number for it."""
    if column.dtype == pl.String:
        return column
    if column.dtype == pl.Binary:
        return column.cast(pl.String)
    if column.dtype == pl.Float64 and not column.is_finite().all():
        column = column.set(~column.is_finite(), None)
    return column.cast(pl.String)


_encode, _lines = msgspec.json.Encoder().encode, msgspec.json.Encoder().encode_lines
