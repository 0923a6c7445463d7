"""Frames of other libraries: whatever kind comes in goes out again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import InputError, UsageError

Back = Callable[[pl.DataFrame, NDArray[np.int64]], Any]


def from_any(data: Any) -> tuple[pl.DataFrame, Back]:
    """A polars frame, and the way back to what was given (the released frame, the input positions of its rows).

    Imports nothing: a pandas or pyarrow frame brings its own library.
    """
    if isinstance(data, pl.DataFrame):
        return data, lambda frame, rows: frame
    if isinstance(data, pl.LazyFrame):
        return data.collect(), lambda frame, rows: frame
    kind = type(data).__module__.split(".")[0]
    if kind == "pandas":
        if not data.columns.is_unique:
            raise InputError("two columns have the same name", where="table", hint="rename one of them")
        names = [str(c) for c in data.columns]
        frame = pl.from_pandas(data.set_axis(names, axis=1), include_index=False)
        return frame, lambda out, rows: out.to_pandas().set_index(data.index[rows])
    if kind == "pyarrow":
        if len(set(data.column_names)) < len(data.column_names):
            raise InputError("two columns have the same name", where="table", hint="rename one of them")
        frame = pl.from_arrow(data)
        assert isinstance(frame, pl.DataFrame)
        return frame, lambda out, rows: out.to_arrow()
    raise UsageError(
        f"expected a polars, pandas or pyarrow table, found {type(data).__name__}",
        where="data",
        hint="read a file with polars, or give its path to the command line",
    )
