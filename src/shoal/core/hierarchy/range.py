"""Numbers: intervals halved on demand, never materialised (Garai 2019, section 3.4.5), or the group's own hull."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED, interval
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.levels import MOST_LEVELS, Codes, Levels

Floats = NDArray[np.float64]
LARGEST = np.finfo(np.float64).max / 2
EXACT = 2**53  # beyond, neighbours are the same floating-point number


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
        if self.min is not None and self.max is not None and not self.min <= self.max:
            raise UsageError("`min`, `max`: expected the first not above the second", where="range")
        if self.bottom is not None and self.top is not None and not self.bottom < self.top:
            raise UsageError("`bottom`, `top`: expected the first below the second", where="range")
        if any(e is not None and not math.isfinite(e) for e in (self.min, self.max, self.bottom, self.top)):
            raise UsageError("`min`, `max`, `bottom`, `top` must be finite", where="range")
        if self.smallest is not None and not self.smallest > 0:
            raise UsageError("`smallest` must be positive", where="range")

    @property
    def ends(self) -> tuple[float, float] | None:
        """See :class:`Hierarchy`."""
        return None if self.min is None or self.max is None else (self.min, self.max)

    @property
    def grows(self) -> tuple[str, str] | None:
        """See :class:`Hierarchy`."""
        if self.ends is not None:
            return None
        return "a range without its ends grows with its data and has no fixed levels", "declare `min` and `max`"

    def fixed(self, where: str) -> Range:
        """See :class:`Hierarchy`. A group's own interval is none of the levels, so nodes are published."""
        super().fixed(where)
        return msgspec.structs.replace(self, snap=True)

    def readable(self, values: pl.Series) -> pl.Series:
        """See :class:`Hierarchy`: numbers within the domain, if it is declared, that :meth:`compile` can tell apart."""
        numbers = values
        if values.dtype == pl.String or values.dtype.is_decimal():
            numbers = values.cast(pl.Float64, strict=False)
        elif not values.dtype.is_numeric():
            return pl.Series(values.name, [None] * len(values), dtype=pl.Float64)
        exact = numbers.cast(pl.Float64).clip(self.bottom, self.top)
        inside = exact.is_finite()
        if self.min is not None:
            inside &= exact >= self.min
        if self.max is not None:
            inside &= exact <= self.max
        if numbers.dtype.is_integer():
            inside &= exact.abs() <= EXACT
            # beside a coded end like 2.5, or where single steps need too many levels, they are halved as floats
            if self._fractional or any(abs(e) > EXACT for e in self.ends or ()):
                numbers = numbers.cast(pl.Float64)
        return numbers.set(~inside.fill_null(False), None)

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`. Costs O(values x levels); the levels grow with the logarithm of the width."""
        clipped = self._clip(self._numbers(values, where), where)
        known = clipped.is_not_nan() & clipped.is_finite() if clipped.dtype.is_float() else clipped.is_not_null()
        distinct = clipped.filter(known.fill_null(False)).unique().sort()
        whole = distinct.dtype.is_integer()
        array = distinct.cast(pl.Float64).to_numpy()  # by polars: numpy has no whole numbers of 128 bits
        if whole and len(array) and max(-array[0], array[-1]) > EXACT:
            raise UsageError(
                f"whole numbers beyond ±{EXACT:,} are names rather than numbers",
                where=where,
                hint="is it an identifier? Otherwise use `prefix` or `suppress`",
            )
        low, high = self._domain(array, where, whole)
        depth = self._depth(low, high, whole, where)
        missing = bool(values.null_count())
        codes = _codes(array, low, high, depth, whole, missing)
        depth = codes.shape[1]
        width = high - low or 1.0

        def nodes(level: int) -> tuple[Floats, Floats, Floats]:
            """Lowest number and interval of each node; a missing value is not among them."""
            first = np.unique(codes[: len(array), level], return_index=True)[1]
            return array[first], *_halve(array[first], low, high, depth, level, whole)

        def labels(level: int) -> list[str]:
            if level and level == depth - 1 and missing:
                return [SUPPRESSED]
            parts = zip(*(x.tolist() for x in nodes(level)), strict=True)
            texts = [self._label(a, b, v, level, whole, high) for v, a, b in parts]
            return [*texts, SUPPRESSED if level else ""] if missing else texts

        def costs(level: int) -> Floats:
            if level == 0:
                return np.zeros(len(codes))
            if level == depth - 1:
                return np.ones(1) if len(codes) > 1 or low < high else np.zeros(1)
            _, lows, highs = nodes(level)
            return np.append((highs - lows) / width, np.zeros(int(missing)))

        numbers = None if self.snap else np.append(array, np.nan) if missing else array
        column = distinct.extend(pl.Series([None], dtype=distinct.dtype)) if missing else distinct
        levels = Levels(column, codes, labels, costs, numbers, width, (self.bottom, self.top))
        position = np.searchsorted(array, clipped.cast(pl.Float64).fill_null(0.0).to_numpy()).astype(np.int32)
        null = values.is_null().to_numpy()
        unknown = ~known.fill_null(False).to_numpy() & ~null
        return levels, np.where(null, len(array), np.where(unknown, -1, position)).astype(np.int32)

    @property
    def _fractional(self) -> bool:
        return any(e is not None and e != int(e) for e in (self.bottom, self.top))

    def _clip(self, numbers: pl.Series, where: str) -> pl.Series:
        if numbers.dtype.is_integer() and self._fractional:
            raise UsageError("`bottom` and `top` of whole numbers must be whole", where=where)
        if numbers.dtype.is_integer():
            ends = [None if e is None else int(e) for e in (self.bottom, self.top)]
            return numbers.cast(pl.Int64, strict=False).clip(*ends) if any(e is not None for e in ends) else numbers
        return numbers.clip(self.bottom, self.top)

    def _numbers(self, values: pl.Series, where: str) -> pl.Series:
        if values.dtype.is_numeric():
            return values.cast(pl.Float64) if values.dtype.is_decimal() else values
        if values.dtype == pl.Null:
            return values.cast(pl.Int64)
        raise UsageError(
            f"expected numbers, found {values.dtype}", where=where, hint="declare `type: int` or another hierarchy"
        )

    def _domain(self, array: Floats, where: str, whole: bool) -> tuple[float, float]:
        least, most = (float(array[0]), float(array[-1])) if len(array) else (0.0, 0.0)
        low = least if self.min is None else float(math.ceil(self.min) if whole else self.min)
        high = most if self.max is None else float(math.floor(self.max) if whole else self.max)
        # what is coded as one end is no room to halve
        low = low if self.bottom is None else max(low, float(self.bottom))
        high = high if self.top is None else min(high, float(self.top))
        low, high = min(low, high), max(low, high)
        if max(-low, high) > LARGEST:
            raise UsageError(
                "numbers as large as these have no middle",
                where=where,
                hint="code the extremes with `bottom` and `top`",
            )
        outside = int(np.sum((array < low) | (array > high)))
        if outside:
            raise UsageError(
                f"{outside} distinct values lie outside [min, max]",
                where=where,
                hint="widen `min` and `max`, or code the extremes with `bottom` and `top`",
            )
        return low, high

    def _depth(self, low: float, high: float, whole: bool, where: str) -> int:
        if high <= low:
            return 1
        if whole:
            halves = math.log2(high - low + 1) - 1
        else:
            parts = 1024 if self.smallest is None else (high - low) / self.smallest
            halves = math.log2(max(parts, 1.0))
        if not halves <= MOST_LEVELS - 2:
            raise UsageError(
                f"halving this range needs more than {MOST_LEVELS} levels",
                where=where,
                hint="bring `min` and `max` nearer to each other, or make `smallest` larger",
            )
        return max(2, math.ceil(halves) + 2)

    def _label(self, low: float, high: float, value: float, level: int, whole: bool, most: float) -> str:
        at_bottom = self.bottom is not None and low <= self.bottom
        at_top = self.top is not None and high >= self.top
        if level == 0:
            low = high = value
        return interval(low, high, whole=whole, closed=whole or high >= most, bottom=at_bottom, top=at_top)


def _codes(array: Floats, low: float, high: float, depth: int, whole: bool, missing: bool) -> Codes:
    """The node of each number at each level; a missing value lies in no interval: a node of its own until the root."""
    if missing and depth == 1 and len(array):
        depth = 2
    codes = np.zeros((len(array) + missing, depth), np.int32)
    for level in range(depth - 1 if missing else depth):
        lows, _ = _halve(array, low, high, depth, level, whole)
        codes[: len(array), level] = np.cumsum(np.diff(lows, prepend=np.nan) != 0) - 1 if len(array) else 0
        if missing and len(array):
            codes[-1, level] = codes[-2, level] + 1
    return codes


def _halve(array: Floats, low: float, high: float, depth: int, level: int, whole: bool) -> tuple[Floats, Floats]:
    """The interval of each number at a level; the last level is the whole domain, level 0 the number."""
    if level == 0 and depth > 1:
        return array, array
    a, b = np.full(len(array), low), np.full(len(array), high)
    for _ in range(depth - 1 - level):
        middle: Any = np.ceil((a + b) / 2) if whole else (a + b) / 2
        upper = array >= middle
        single = a == b
        a, b = np.where(upper & ~single, middle, a), np.where(upper | single, b, middle - 1 if whole else middle)
    return a, b
