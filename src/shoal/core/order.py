"""The order in which released rows leave: by what they show, then shuffled.

Sorting looks at the published cells alone. So whoever knows the seed and undoes the shuffling gets an order they could
have made themselves, and the same rows in another order give the same file.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

FEW_TEXTS = 4096  # different texts of a column that are ranked before rows are sorted


def publication_order(published: pl.DataFrame, seed: int, role: str = "") -> NDArray[np.int64]:
    """Places of the rows of ``published`` in the order in which they leave. O(rows x columns log rows).

    Each ``role`` gets an order of its own, also with one seed: two files do not join line by line.

    >>> one = pl.DataFrame({"age": ["[20, 29]", "[30, 39]", "*"]})
    >>> one[publication_order(one, 7)].equals(one.reverse()[publication_order(one.reverse(), 7)])
    True
    """
    generator = np.random.default_rng([seed & 0xFFFFFFFF, seed >> 32, 0x0DE4, zlib.crc32(role.encode())])
    shuffled = generator.permutation(published.height)
    if not published.width:
        return shuffled
    columns = [_ranks(c) for c in published.get_columns()]
    keys = [key.alias(f"{at}") for at, key in enumerate(_joined(columns))]
    if len(keys) == 1 and keys[0].dtype == pl.Int64 and not keys[0].null_count():
        return np.argsort(keys[0].to_numpy(), kind="stable")[shuffled]
    sorting = pl.arg_sort_by([key.name for key in keys], nulls_last=True)
    return pl.DataFrame(keys).select(sorting).to_series().to_numpy().astype(np.int64)[shuffled]


def _ranks(column: pl.Series) -> pl.Series | NDArray[np.int64]:
    """Where each of a few texts stands among all of them in order, a missing one last; other columns as they sort."""
    if column.dtype == pl.String and len(column) > FEW_TEXTS:
        texts = column.unique().sort(nulls_last=True)
        if len(texts) > FEW_TEXTS:
            return column
        places = pl.int_range(len(texts), dtype=pl.Int64, eager=True)
        ranks = column.replace_strict(texts, places, return_dtype=pl.Int64, default=None)
        return ranks.fill_null(len(texts) - 1).to_numpy()
    if column.dtype != pl.Categorical or not len(column):
        return _sortable(column)
    texts = column.unique().drop_nulls()
    numbers = texts.to_physical().to_numpy()
    rank = np.full(int(numbers.max(initial=0)) + 2, len(numbers), np.int64)
    rank[numbers[texts.cast(pl.String).arg_sort().to_numpy()]] = np.arange(len(numbers))
    return np.asarray(rank[column.to_physical().fill_null(len(rank) - 1).to_numpy()])


def _joined(columns: Sequence[pl.Series | NDArray[np.int64]]) -> list[pl.Series]:
    """Columns to sort by: ranks that stand side by side become one number, which sorts alike and faster."""
    out: list[pl.Series] = []
    room = 0  # of the number at the end of the list, if there is one
    for column in columns:
        if isinstance(column, pl.Series):
            out.append(column)
            room = 0
            continue
        size = int(column.max(initial=0)) + 1
        if room and room * size < 2**62:
            out[-1], room = out[-1] * size + pl.Series(column), room * size
        else:
            out.append(pl.Series(column))
            room = size
    return out


def _sortable(column: pl.Series) -> pl.Series:
    """Nested values have no order of their own: their texts have. So typed cells leave in the order of text cells."""
    if isinstance(column.dtype, pl.Struct) and "text" in {field.name for field in column.dtype.fields}:
        return column.struct.field("text")
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Null):
        return pl.Series([repr(value) for value in column.to_list()], dtype=pl.String)
    return column.cast(pl.String) if column.dtype == pl.Enum else column
