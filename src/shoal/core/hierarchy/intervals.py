"""Numbers: intervals between borders that a person chose."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from shoal.core.cells import SUPPRESSED, interval
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.tree import leaf_texts
from shoal.core.levels import Codes, Levels, code_of, nest


class Intervals(Hierarchy, frozen=True, tag="intervals"):
    """Numbers become the interval between two ``borders``; each further level joins two neighbouring intervals.

    A border begins its interval. Below the first and above the last border the interval is open to that side, so that
    the ends of the data are not told. For numbers whose classes are given by law or habit; :class:`Range` loses less.

    >>> Intervals((18, 40, 65)).preview(pl.Series([12, 30])).rows()
    [('12', '≤17', '≤39', '*'), ('30', '[18, 39]', '≤39', '*')]
    """

    borders: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.borders or not all(math.isfinite(b) for b in self.borders):
            raise UsageError("`borders` must be finite numbers, at least one", where="intervals", hint="[18, 40, 65]")
        if list(self.borders) != sorted(set(self.borders)):
            raise UsageError("`borders` must rise, each once", where="intervals", hint="for example [18, 40, 65]")

    def readable(self, values: pl.Series) -> pl.Series:
        """See :class:`Hierarchy`: finite numbers, also as texts."""
        if values.dtype == pl.String or values.dtype.is_decimal():
            values = values.cast(pl.Float64, strict=False)
        if not values.dtype.is_numeric():
            return pl.Series(values.name, [None] * len(values), dtype=pl.Float64)
        finite = values.cast(pl.Float64).is_finite().fill_null(False)
        return values.set(~finite, None)

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`. Costs O(values x log borders)."""
        if values.dtype == pl.Null:
            values = values.cast(pl.Int64)
        if not values.dtype.is_numeric():
            raise UsageError(
                f"expected numbers, found {values.dtype}", where=where, hint="declare `type: int` or another hierarchy"
            )
        numbers = values.cast(pl.Float64)
        kept = values.filter(numbers.is_null() | numbers.is_finite())
        whole = kept.dtype.is_integer()
        place = np.searchsorted(np.array(self.borders), kept.cast(pl.Float64).fill_null(0.0).to_numpy(), side="right")
        labels = [leaf_texts(kept)]
        joined = 1
        while joined <= len(self.borders):
            texts = [self._label(at, joined, whole) for at in range(0, len(self.borders) + 1, joined)]
            labels.append(pl.Series([texts[at // joined] for at in place.tolist()], dtype=pl.String))
            joined *= 2
        labels.append(pl.Series([SUPPRESSED] * len(kept), dtype=pl.String))
        levels = nest(kept, labels, where=where)
        return levels, code_of(levels, values)

    def _label(self, first: int, joined: int, whole: bool) -> str:
        """The text of some neighbouring intervals; interval 0 lies below the first border."""
        last = min(first + joined - 1, len(self.borders))
        low = self.borders[first - 1] if first else -math.inf
        high = self.borders[last] if last < len(self.borders) else math.inf
        if whole:
            # the whole numbers of an interval: from its border, rounded up, to the last before the next
            bottom, top = math.ceil(low) if first else None, math.ceil(high) - 1 if math.isfinite(high) else None
            if bottom is None:
                return SUPPRESSED if top is None else f"≤{top}"
            return f"≥{bottom}" if top is None else interval(bottom, top, whole=True)
        if not first:
            return f"[-inf, {float(high)!r})"
        return interval(low, high, whole=False, closed=False) if math.isfinite(high) else f"≥{float(low)!r}"
