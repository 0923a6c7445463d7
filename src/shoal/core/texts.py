"""One text per value, whatever reader it came through: JSON, CSV or a typed column."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl


def text_of(value: Any) -> str:
    """The text of a value.

    >>> text_of(7.0), text_of(True), text_of("x")
    ('7', 'true', 'x')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return str(value)


def texts_of(values: pl.Series) -> pl.Series:
    """The texts of a column, a missing value still missing.

    >>> import polars as pl
    >>> texts_of(pl.Series([7.0, None])).to_list()
    ['7', None]
    """
    import polars as pl

    if values.dtype == pl.String or values.dtype.is_integer():
        return values.cast(pl.String)
    return pl.Series(values.name, [None if v is None else text_of(v) for v in values.to_list()], dtype=pl.String)


def spelled(values: pl.Series) -> pl.Series:
    """The texts of a column of JSON values; what is no text stands as it came.

    >>> import polars as pl
    >>> spelled(pl.Series([b'"x"', b"7.0", None])).to_list()
    ['x', '7.0', None]
    """
    import msgspec
    import polars as pl

    texts = values.cast(pl.String)
    quoted = texts.str.starts_with('"').fill_null(False).arg_true()
    if not len(quoted):
        return texts
    return texts.scatter(quoted, [msgspec.json.decode(text) for text in texts.gather(quoted).to_list()])


def written(values: pl.Series) -> pl.Series:
    """A column as JSON values, as they stand in a record.

    >>> import polars as pl
    >>> written(pl.Series(["x", None])).to_list(), written(pl.Series([7])).to_list()
    ([b'"x"', None], [b'7'])
    """
    import msgspec
    import polars as pl

    if values.dtype == pl.Binary:
        return values
    every = [None if v is None else msgspec.json.encode(v) for v in values.to_list()]
    return pl.Series(values.name, every, dtype=pl.Binary)
