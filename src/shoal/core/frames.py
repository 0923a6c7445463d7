"""Frames of other libraries: whatever kind comes in goes out again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.columns import require_columns, require_once
from shoal.core.errors import InputError, UsageError

Back = Callable[[pl.DataFrame, NDArray[np.int64], Sequence[str]], Any]


def require(frame: pl.DataFrame, names: Iterable[str], where: str) -> None:
    """Every named column is there: :func:`~shoal.core.columns.require_columns` of a frame.

    >>> require(pl.DataFrame({"age": [30]}), ["age"], "table")
    """
    require_columns(names, frame.columns, where)


def from_any(data: Any) -> tuple[pl.DataFrame, Back]:
    """A polars frame, and the way back to what was given.

    Back takes the released frame, the input positions of its rows, and the columns that were not touched: these
    keep the very type they came with. What nobody declared does not come back: no index, no category that only withheld
    rows have. Imports nothing: a pandas or pyarrow frame brings its own library.

    >>> frame, back = from_any(pl.DataFrame({"age": [30, 41]}))
    >>> frame.height
    2
    """
    if isinstance(data, pl.DataFrame):
        return data, lambda frame, rows, untouched: frame
    if isinstance(data, pl.LazyFrame):
        return data.collect(), lambda frame, rows, untouched: frame
    kind = type(data).__module__.split(".")[0]
    if kind == "pandas":
        return _from_pandas(data)
    if kind == "pyarrow":
        return _from_arrow(data)
    raise UsageError(
        f"expected a polars, pandas or pyarrow table, found {type(data).__name__}",
        where="data",
        hint="read a file with polars, or give its path to the command line",
    )


def _from_pandas(data: Any) -> tuple[pl.DataFrame, Back]:
    names = [str(c) for c in data.columns]
    require_once(names, "table")
    renamed = data.set_axis(names, axis=1)
    try:
        frame = pl.from_pandas(renamed, include_index=False)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"reading pandas needs the package {error.name}", where="data", hint=f"pip install {error.name}"
        ) from None
    except Exception:  # a converter's message may quote a cell
        raise InputError(
            "a column holds values of different kinds", where=_mixed(renamed), hint="convert it to one type"
        ) from None

    def back(out: pl.DataFrame, rows: NDArray[np.int64], untouched: Sequence[str]) -> Any:
        # the index is a column nobody declared: it may name people, and it tells which rows were withheld
        kept = renamed.iloc[rows].reset_index(drop=True)
        made = out.select(c for c in out.columns if c not in untouched).to_pandas()
        for name in [c for c in untouched if hasattr(kept[c], "cat")]:
            kept[name] = kept[name].cat.remove_unused_categories()
        columns = {name: kept[name] if name in untouched else made[name] for name in out.columns}
        return type(data)(columns, index=kept.index)

    return frame, back


def _from_arrow(data: Any) -> tuple[pl.DataFrame, Back]:
    require_once(data.column_names, "table")
    frame = pl.from_arrow(data)
    assert isinstance(frame, pl.DataFrame)

    def back(out: pl.DataFrame, rows: NDArray[np.int64], untouched: Sequence[str]) -> Any:
        made = out.to_arrow()
        for at, name in enumerate(out.columns):
            if name in untouched:
                field, column = data.schema.field(name), data.column(name).take(rows)
                if hasattr(field.type, "index_type"):  # its dictionary still holds what withheld rows had
                    column = column.cast(field.type.value_type).dictionary_encode().cast(field.type)
                made = made.set_column(at, field, column)
        return made

    return frame, back


def _mixed(data: Any) -> str:
    for name in data.columns:
        try:
            pl.from_pandas(data[[name]], include_index=False)
        except Exception:
            return f"column {name!r}"
    return "table"
