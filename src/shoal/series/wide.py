"""Wide input: a row per subject, a column per instant; also plain matrices."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.core.errors import InputError
from shoal.core.frames import require
from shoal.core.schema import one_role_each
from shoal.series.input import (
    MADE,
    Curves,
    Missing,
    complete,
    complete_blocks,
    number_column,
    refuse_kind,
    refuse_repeats,
    sensitive_column,
)


def from_wide(
    frame: pl.DataFrame,
    *,
    id: str | None,  # noqa: A002 - the word of the command line
    sensitive: Sequence[str] = (),
    instants: Sequence[str] | None = None,
    missing: Missing = "error",
) -> Curves:
    """Curves from a wide table; without ``instants`` every column but the id and the sensitive ones is an instant.

    >>> from_wide(pl.DataFrame({"who": [1, 2], "W0": [3, 4], "W1": [5, 6]}), id="who").instants
    ['W0', 'W1']
    """
    ids = [] if id is None else [id]
    one_role_each({"id": ids, "sensitive": sensitive, "instant": instants or ()}, "series")
    named = [*ids, *sensitive, *(instants or [])]
    require(frame, named, "series")
    for name in named[: len(named) - len(instants or [])]:
        refuse_kind(frame[name], f"column {name!r}")
    if id is not None:
        refuse_repeats(frame[id], f"column {id!r}")
    columns = list(instants) if instants is not None else [c for c in frame.columns if c not in named]
    if not columns:
        raise InputError("no column is left for the instants", where="series", hint="name them by `instants`")
    numbers = [number_column(frame[c], "series") for c in columns]
    values, kept = complete(np.column_stack([n for n, _ in numbers]), missing, columns, "series")
    rows = np.flatnonzero(kept)
    return Curves(
        np.ascontiguousarray(values),
        columns,
        frame.select(sensitive)[rows] if sensitive else pl.DataFrame(),
        rows,
        whole=all(whole for _, whole in numbers) and missing not in MADE,
        left_out=tuple(c for c in frame.columns if c not in (*columns, *sensitive)),
        dropped=len(kept) - len(rows),
    )


def from_lists(
    frame: pl.DataFrame,
    *,
    id: str | None,  # noqa: A002 - the word of the command line
    value: str,
    sensitive: Sequence[str] = (),
    missing: Missing = "error",
) -> Curves:
    """Curves from a column of lists, a curve in each row; shorter ones have gaps at their end."""
    ids = [] if id is None else [id]
    one_role_each({"id": ids, "value": [value], "sensitive": sensitive}, "series")
    require(frame, [*ids, value, *sensitive], "series")
    if id is not None:
        refuse_repeats(frame[id], f"column {id!r}")
    column = frame[value]
    if column.dtype == pl.Array:
        column = column.arr.to_list()
    inner = getattr(column.dtype, "inner", None)
    if inner is None or not inner.is_numeric():
        raise InputError(f"expected lists of numbers, found {column.dtype}", where=f"column {value!r}")
    for name in sensitive:
        refuse_kind(frame[name], f"column {name!r}")
    beside = {name: frame[name] for name in sensitive}
    curves = from_matrix(column.fill_null([]).to_list(), missing=missing)
    around = pl.DataFrame(beside)[curves.rows] if sensitive else pl.DataFrame()
    whole = inner.is_integer() and missing not in MADE
    left_out = tuple(c for c in frame.columns if c not in (value, *sensitive))
    return dataclasses.replace(curves, sensitive=around, whole=whole, left_out=left_out)


def from_matrix(
    data: Any, *, sensitive: Mapping[str, Any] | None = None, missing: Missing = "error", ids: Any = None
) -> Curves:
    """Curves from rows of numbers: a NumPy array or a list of lists; NaN is a missing instant.

    >>> from_matrix(np.array([[1.0, 2.0], [3.0, 4.0]])).values.shape
    (2, 2)
    """
    matrix = _matrix(data, missing)
    panel: tuple[str, ...] = ()
    if matrix.ndim == 3:  # records, instants, values: the instants of each value stand side by side
        panel = tuple(f"v{i}" for i in range(matrix.shape[2]))
        matrix = matrix.transpose(0, 2, 1).reshape(len(matrix), -1)
    if ids is not None:
        refuse_repeats(pl.Series("ids", list(ids), strict=False), "ids")
    names = [str(i) for i in range(matrix.shape[1] // max(1, len(panel)))]
    values, kept = complete_blocks(matrix.astype(np.float64), missing, names, max(1, len(panel)))
    beside = [sensitive_column(name, column) for name, column in (sensitive or {}).items()]
    wrong = next((column for column in beside if len(column) != len(matrix)), None)
    if wrong is not None:
        raise InputError(
            f"expected {len(matrix):,} sensitive values, found {len(wrong):,}",
            where=f"sensitive {wrong.name!r}",
            hint="one per row of the matrix",
        )
    columns = pl.DataFrame(beside)
    rows = np.flatnonzero(kept)
    whole = bool(np.issubdtype(matrix.dtype, np.integer)) and missing not in MADE
    return Curves(
        np.ascontiguousarray(values), names, columns[rows] if len(columns.columns) else columns, rows, whole,
        dropped=len(kept) - len(rows), variables=panel,
    )  # fmt: skip


def _matrix(data: Any, missing: Missing) -> np.ndarray[Any, Any]:
    if not isinstance(data, np.ndarray):
        lengths = [len(row) for row in data]
        if missing != "error" and len(set(lengths)) > 1:
            longest = max(lengths)
            data = [[*row, *[None] * (longest - len(row))] for row in data]
            lengths = [longest] * len(lengths)
        ragged = next((at for at, length in enumerate(lengths) if length != lengths[0]), None)
        if ragged is not None:
            raise InputError(
                f"expected {lengths[0]} instants in every row, found {lengths[ragged]} in row {ragged + 1}",
                where="series",
                hint="declare a rule for the missing instants: missing = stretch, previous, interpolate, zero or drop",
            )
        data = _numbers(data)
    if data.ndim not in (2, 3) or 0 in data.shape[1:]:
        raise InputError(
            f"expected rows of numbers (two dimensions; three of a panel), found {data.ndim} of shape {data.shape}",
            where="series",
            hint="records x instants, or records x instants x values",
        )
    if data.dtype == object:
        data = _numbers(data.tolist())
    if not (np.issubdtype(data.dtype, np.integer) or np.issubdtype(data.dtype, np.floating)):
        raise InputError(f"expected numbers, found values of type {data.dtype}", where="series")
    return np.asarray(data)


def _numbers(rows: Sequence[Sequence[Any]]) -> np.ndarray[Any, Any]:
    for at, row in enumerate(rows):
        for instant, value in enumerate(row):
            if isinstance(value, bool) or not isinstance(value, int | float | np.number | None):
                raise InputError(
                    f"expected a number at instant {instant} of row {at + 1}, found {type(value).__name__}",
                    where="series",
                )
    if any(value is None for row in rows for value in row):
        return np.array([[np.nan if v is None else v for v in row] for row in rows], np.float64)
    return np.array(rows)
