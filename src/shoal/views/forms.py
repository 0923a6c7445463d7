"""Values of JSON records whose text has a declared form: dates like ``31.12.2020``, moments since 1970, decimal commas.

The form is read by :func:`shoal.connect.types.fitted`, as in files, so that a record and a row mean the same.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from shoal.connect.types import Declared, fitted
from shoal.core.schema import Column
from shoal.core.time import PER_SECOND

KEPT = 65_536  # values remembered per column: most dates come again, and reading one by itself is slow
EPOCH = datetime.datetime(1970, 1, 1)


class _Form(type):
    """The decoder asks whether an answer is of the form's class; any value that was read is."""

    def __instancecheck__(cls, value: object) -> bool:
        return True


def form_of(column: Column) -> Any:
    """A type that :func:`read_form` decodes; one for each column with a ``format``.

    >>> read_form(form_of(Column("quasi", "date", "%d.%m.%Y")), "31.12.2020")
    datetime.date(2020, 12, 31)
    """
    assert column.type is not None
    return _Form("Formed", (), {"read": staticmethod(_reader(Declared(column.type, column.format)))})


def read_form(kind: Any, value: Any) -> Any:
    """The hook of a decoder: the value a text stands for. ``ValueError`` if it has another form, without quoting it.

    >>> read_form(form_of(Column("plain", "float", ",")), "1.234,5")
    1234.5
    """
    return kind.read(value)


def _reader(kind: Declared) -> Callable[[Any], Any]:
    # per column: a text means another value in a column of another form
    @lru_cache(KEPT)
    def of_text(text: str) -> Any:
        found = fitted(pl.Series([text]), kind).to_list()[0]
        if found is None:
            raise ValueError(f"Expected `{kind.type}` in its declared form")
        return found

    per = PER_SECOND.get(kind.format or "") if kind.type == "datetime" else None

    def read(value: Any) -> Any:
        # True is an int to Python, and no moment
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"Expected `{kind.type}` in its declared form")
        if per is not None and isinstance(value, int):  # moments seldom come again: remembering would not help
            micros = value * 1_000_000 // per
            try:
                return EPOCH + datetime.timedelta(microseconds=micros)
            except OverflowError:
                raise ValueError("a moment that has no year") from None
        try:
            return of_text(value if isinstance(value, str) else _text(value))
        except OverflowError:
            raise ValueError("a moment that has no year") from None

    return read


def _text(value: float) -> str:
    """A number as a file would have it: 7, 7.0 and 7e0 are one."""
    return np.format_float_positional(value, trim="-") if isinstance(value, float) else str(value)
