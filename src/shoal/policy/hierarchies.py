"""Hierarchies that fit the values of a column, as a policy writes them: round intervals, periods, prefixes, paths."""

from __future__ import annotations

import math

import polars as pl

from shoal.policy.content import form_of, separator_of

GRID = "{use: grid, sizes: [100, 1000, 10000, 100000]}"  # metres, each dividing the next
EXACT = 2**53  # beyond, whole numbers are names


def natural(column: pl.Series) -> str:
    """A hierarchy by type and form.

    >>> natural(pl.Series([18, 93])), natural(pl.Series(["E10", "E11"])), natural(pl.Series(["f", "m"]))
    ('{use: range, min: 10, max: 100}', '{use: prefix, length: 3}', 'suppress')
    """
    if column.dtype.is_numeric():
        return span(column)
    if column.dtype in (pl.Date, pl.Datetime):
        return calendar(column.dtype)
    form = form_of(column)
    if form in ("path", "domain"):
        return path(column, form == "domain")
    return prefix(column) if form == "code" else "suppress"


def span(column: pl.Series) -> str:
    """Round ends around the numbers, so that the ends of the data are not told.

    >>> span(pl.Series([3, 88]))
    '{use: range, min: 0, max: 90}'
    """
    known = column.drop_nulls().cast(pl.Float64)
    # one infinite cell would be the end of the range
    known = known.filter(known.is_finite())
    if not len(known):
        return "suppress"
    low, high = float(known.min()), float(known.max())  # type: ignore[arg-type]
    if max(-low, high) > EXACT:
        return "suppress"
    step = 10.0 ** math.floor(math.log10(high - low)) if high > low else 1.0
    step = max(step, 1.0) if column.dtype.is_integer() else step
    digits = max(0, -math.floor(math.log10(step)))
    ends = (math.floor(low / step) * step, math.ceil(high / step) * step)
    return "{{use: range, min: {}, max: {}}}".format(*(f"{end:.{digits}f}" for end in ends))


def calendar(dtype: pl.DataType) -> str:
    """Periods up to the decade; a time begins with its hour.

    >>> calendar(pl.Date())
    '{use: calendar, levels: [day, month, year, decade]}'
    """
    first = "" if dtype == pl.Date else "hour, "
    return f"{{use: calendar, levels: [{first}day, month, year, decade]}}"


def prefix(column: pl.Series) -> str:
    """Codes lose their last characters.

    >>> prefix(pl.Series(["10115", "20095"]))
    '{use: prefix, length: 5}'
    """
    length = int(column.cast(pl.String).drop_nulls().str.len_chars().max() or 1)  # type: ignore[arg-type]
    return f"{{use: prefix, length: {length}}}"


def path(column: pl.Series, domains: bool) -> str:
    """Paths lose their last step, domain names their first.

    >>> path(pl.Series(["a.b", "a.c"]), domains=False)
    'path'
    """
    if domains:
        return "{use: path, reverse: true}"
    mark = separator_of(column.drop_nulls())
    return "path" if mark == "." else f'{{use: path, separator: "{mark}"}}'
