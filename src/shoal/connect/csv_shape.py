"""The shape of a CSV file before it is parsed: which line has too many cells, too few, or a quote in a wrong place.

A parser that fills a short line with empty cells, or names no line when it fails, leaves a person searching. This looks
at separators, line ends and quotes only, in arrays: two passes over the bytes, and three more if there are quotes.
"""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import InputError

QUOTE, NEWLINE, RETURN = 34, 10, 13
Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


class Shape(NamedTuple):
    """Number of rows below the header, and which of them are empty lines."""

    rows: int
    blank: Positions


def shape(raw: bytes, separator: str, width: int, where: str, before: int = 0) -> Shape:
    """Check that every row has ``width`` cells; raise with the line of the first that has not, ``before`` lines added.

    >>> shape(b"a,b\\n1,2\\n\\n3,4\\n", ",", 2, "x.csv")
    Shape(rows=3, blank=array([1]))
    """
    data = np.frombuffer(raw, np.uint8)
    quotes = np.flatnonzero(data == QUOTE)
    ends = np.flatnonzero(data == NEWLINE)
    between = np.flatnonzero(data == ord(separator))
    if len(quotes):
        _check_quotes(data, quotes, ord(separator), where, before)
        ends, between = (_outside(quotes, at) for at in (ends, between))
    # the last line need not end with a line end
    if not len(ends) or ends[-1] != len(data) - 1:
        ends = np.append(ends, len(data))
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
    cells = np.diff(np.searchsorted(between, ends), prepend=0) + 1
    length = ends - starts
    empty = (length == 0) | ((length == 1) & (data[np.minimum(starts, len(data) - 1)] == RETURN))
    # in a table of one column an empty line is an empty cell
    wrong = np.flatnonzero((cells != width) & ~(empty & (width > 1)))
    if len(wrong):
        line = _line(data, int(starts[wrong[0]])) + before
        more = f"; {len(wrong):,} lines in all" if len(wrong) > 1 else ""
        raise InputError(
            f"expected {width:,} cells as in the header, found {int(cells[wrong[0]]):,}{more}",
            where=f"{where}, line {line:,}",
            hint="is a cell with a separator in it not quoted, or is the separator another (--separator)?",
        )
    blank = np.flatnonzero(empty[1:]) if width > 1 else np.zeros(0, np.int64)
    return Shape(len(ends) - 1, blank)


def header_of(raw: bytes, separator: str) -> list[str]:
    """The names in the first row, quotes taken off; one name that holds all of it where the quotes are wrong.

    >>> header_of(b'id,"true ""age"" of"\\n1,2\\n', ",")
    ['id', 'true "age" of']
    """
    lines = io.TextIOWrapper(io.BytesIO(raw), "utf-8", errors="replace", newline="")
    try:
        return next(csv.reader(lines, delimiter=separator), [])
    except csv.Error:  # longer than a cell may be: a quote is never closed, and :func:`shape` says where
        return [""]


def named(frame: pl.DataFrame, raw: bytes, separator: str) -> pl.DataFrame:
    """The frame with the names of its header: the reader leaves quotes inside a name doubled, as they are written.

    >>> named(pl.DataFrame({'a ""b"" c': [1]}), b'"a ""b"" c"\\n1\\n', ",").columns
    ['a "b" c']
    """
    if b'"' not in raw.partition(b"\n")[0]:
        return frame
    names = header_of(raw, separator)
    return frame.rename(dict(zip(frame.columns, names, strict=True))) if len(names) == frame.width else frame


def _check_quotes(data: Bytes, quotes: Positions, separator: int, where: str, before: int) -> None:
    """A quote opens at the start of a cell and closes at its end; two inside stand for one."""
    opening, closing = quotes[0::2], quotes[1::2]
    # a quote before a quote is half of two that stand for one
    ahead = np.where(opening > 0, data[np.maximum(opening, 1) - 1], NEWLINE)
    after = np.where(closing + 1 < len(data), data[np.minimum(closing + 1, len(data) - 1)], NEWLINE)
    stray = np.concatenate(
        [
            opening[~np.isin(ahead, (separator, NEWLINE, QUOTE))],
            closing[~np.isin(after, (separator, NEWLINE, RETURN, QUOTE))],
        ]
    )
    if len(stray):
        raise InputError(
            "a quote stands in the middle of a cell",
            where=f"{where}, line {_line(data, int(stray.min())) + before:,}",
            hint='put the whole cell in quotes, and write a quote inside it as ""',
        )
    if len(quotes) % 2:
        raise InputError(
            "a quote is opened and never closed",
            where=f"{where}, line {_line(data, int(quotes[-1])) + before:,}",
            hint="close it, or remove it",
        )


def _outside(quotes: Positions, at: Positions) -> Positions:
    """Those positions that lie outside quotes: an even number of quotes stands before them."""
    inside = np.searchsorted(quotes, at) % 2 == 1
    return np.asarray(at[~inside])


def _line(data: Bytes, position: int) -> int:
    return int(np.count_nonzero(data[:position] == NEWLINE)) + 1
