"""Floats as they are compared: one zero, and "not a number" is a missing value."""

from __future__ import annotations

import polars as pl


def one_zero(series: pl.Series) -> pl.Series:
    """Floats without the sign of zero, which is the same number but another text; anything else as it is.

    >>> one_zero(pl.Series([-0.0, 0.0])).cast(pl.String).to_list()
    ['0.0', '0.0']
    """
    if not series.dtype.is_float():
        return series
    zero = (series == 0.0).fill_null(False)  # adding 0.0 would do, but polars leaves that out
    return series.set(zero, 0.0) if zero.any() else series


def comparable(series: pl.Series) -> pl.Series:
    """Values as every group, promise and verdict compares them.

    >>> comparable(pl.Series([-0.0, float("nan")])).to_list()
    [0.0, None]
    """
    return one_zero(series.fill_nan(None)) if series.dtype.is_float() else series
