"""Numbers: intervals halved on demand, never materialised (seed 004, section 3.4.5), or the group's own hull."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED, interval
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.levels import Codes, Levels

Floats = NDArray[np.float64]


class Range(Hierarchy, frozen=True, tag="range"):
    """Numbers become intervals.

    By default a group is published as its own closed interval, from its lowest to its highest number. With
    ``snap`` it is published as a node of the virtual tree that halves ``[min, max]`` again and again: integers at
    m = ⌈(low+high)/2⌉ into [low, m-1] and [m, high], floats into half-open halves down to ``smallest``.
    ``min`` and ``max`` default to the lowest and highest number present; declare them where these would tell
    something. ``bottom`` and ``top`` code the extremes as ``≤bottom`` and ``≥top``.

    >>> import polars as pl
    >>> Range(min=0, max=10, snap=True).preview(pl.Series([4])).row(0)
    ('4', '[3, 4]', '[2, 4]', '[0, 4]', '[0, 10]')
    """

    min: float | None = None
    max: float | None = None
    snap: bool = False
    smallest: float | None = None
    bottom: float | None = None
    top: float | None = None

    def __post_init__(self) -> None:
        for low, high, names in ((self.min, self.max, "`min`, `max`"), (self.bottom, self.top, "`bottom`, `top`")):
            if low is not None and high is not None and not low <= high:
                raise UsageError(f"{names}: expected the first not above the second", where="range")
        if self.smallest is not None and not self.smallest > 0:
            raise UsageError("`smallest` must be positive", where="range")

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`. Costs O(values x levels); the levels grow with the logarithm of the width."""
        raw = self._numbers(values, where)
        clipped = raw.clip(self.bottom, self.top)
        known = clipped.is_not_nan() & clipped.is_finite() if clipped.dtype.is_float() else clipped.is_not_null()
        distinct = clipped.filter(known.fill_null(False)).unique().sort()
        array = distinct.to_numpy().astype(np.float64)
        low, high = self._domain(array, where)
        whole = distinct.dtype.is_integer()
        depth = self._depth(low, high, whole)
        lows, highs = _halve(array, low, high, depth, whole)
        codes = np.zeros((len(array), depth), np.int32)
        for at in range(depth):
            codes[:, at] = np.cumsum(np.diff(lows[:, at], prepend=np.nan) != 0) - 1 if len(array) else 0
        missing = bool(values.null_count())
        if missing:  # a missing value lies in no interval: a node of its own until the root
            codes = np.vstack([codes, codes[-1:] + 1 if len(codes) else np.zeros((1, depth), np.int32)])
            if depth == 1 and len(codes) > 1:
                codes = np.hstack([codes, np.zeros_like(codes)])
                depth = 2
            codes[:, -1] = 0
        first = [np.unique(codes[:, at], return_index=True)[1] for at in range(depth)]
        width = high - low or 1.0

        def labels(level: int) -> list[str]:
            if level and level == depth - 1 and missing:
                return [SUPPRESSED]
            return [
                "" if i >= len(array) else self._label(lows[i, level], highs[i, level], array[i], level, whole, high)
                for i in first[level]
            ]

        def costs(level: int) -> Floats:
            if level == 0:
                return np.zeros(len(first[0]))
            if level == depth - 1:
                return np.ones(1) if len(codes) > 1 or low < high else np.zeros(1)
            out: Floats = np.array([0.0 if i >= len(array) else highs[i, level] - lows[i, level] for i in first[level]])
            return out / width

        numbers = None if self.snap else np.append(array, np.nan) if missing else array
        column = distinct.extend(pl.Series([None], dtype=distinct.dtype)) if missing else distinct
        levels = Levels(column, codes, labels, costs, numbers, width, (self.bottom, self.top))
        position = np.searchsorted(array, clipped.fill_null(0).to_numpy().astype(np.float64)).astype(np.int32)
        null = values.is_null().to_numpy()
        unknown = ~known.fill_null(False).to_numpy() & ~null
        return levels, np.where(null, len(array), np.where(unknown, -1, position)).astype(np.int32)

    def _numbers(self, values: pl.Series, where: str) -> pl.Series:
        if values.dtype.is_numeric():
            return values
        if values.dtype == pl.Null:
            return values.cast(pl.Int64)
        raise UsageError(
            f"expected numbers, found {values.dtype}", where=where, hint="declare `type: int` or another hierarchy"
        )

    def _domain(self, array: Floats, where: str) -> tuple[float, float]:
        least, most = (float(array[0]), float(array[-1])) if len(array) else (0.0, 0.0)
        low = least if self.min is None else float(self.min)
        high = most if self.max is None else float(self.max)
        if self.bottom is not None:
            low = max(low, self.bottom) if self.min is None else low
        outside = int(np.sum((array < low) | (array > high)))
        if outside:
            raise UsageError(
                f"{outside} distinct values lie outside [min, max]",
                where=where,
                hint="widen `min` and `max`, or code the extremes with `bottom` and `top`",
            )
        return low, high

    def _depth(self, low: float, high: float, whole: bool) -> int:
        if whole:
            return max(1, math.ceil(math.log2(high - low + 1)) + 1)
        if high <= low:
            return 1
        smallest = self.smallest or (high - low) / 1024
        return max(2, math.ceil(math.log2((high - low) / smallest)) + 2)

    def _label(self, low: float, high: float, value: float, level: int, whole: bool, most: float) -> str:
        at_bottom = self.bottom is not None and low <= self.bottom
        at_top = self.top is not None and high >= self.top
        if level == 0:
            low = high = value
        return interval(low, high, whole=whole, closed=whole or high >= most, bottom=at_bottom, top=at_top)


def _halve(array: Floats, low: float, high: float, depth: int, whole: bool) -> tuple[Floats, Floats]:
    """The interval of each number at each level; the last level is the whole domain, level 0 the number."""
    lows = np.empty((len(array), depth))
    highs = np.empty((len(array), depth))
    a, b = np.full(len(array), low), np.full(len(array), high)
    for at in range(depth - 1, -1, -1):
        lows[:, at], highs[:, at] = a, b
        middle: Any = np.ceil((a + b) / 2) if whole else (a + b) / 2
        upper = array >= middle
        single = a == b
        a, b = np.where(upper & ~single, middle, a), np.where(upper | single, b, middle - 1 if whole else middle)
    lows[:, 0], highs[:, 0] = array, array
    return lows, highs
