"""Counts between round edges."""

from __future__ import annotations

import math
from collections.abc import Iterable


def bins(values: Iterable[tuple[float, float]], most: int = 40, whole: bool = False) -> tuple[list[float], list[float]]:
    """Edges and counts of pairs (value, how often); edges are round, and for ``whole`` values between the integers.

    >>> bins([(2, 10), (3, 4), (5, 1)], whole=True)
    ([1.5, 2.5, 3.5, 4.5, 5.5], [10.0, 4.0, 0.0, 1.0])
    """
    pairs = [(float(v), float(n)) for v, n in values if math.isfinite(v)]
    if not pairs:
        return [], []
    low, high = min(v for v, _ in pairs), max(v for v, _ in pairs)
    step = _round((high - low) / most if high > low else 1.0)
    if whole:
        step = max(1.0, math.ceil(step))
    start = low - 0.5 if whole else math.floor(low / step) * step
    number = max(1, math.floor((high - start) / step + 1e-9) + 1)
    counts = [0.0] * number
    for value, often in pairs:
        counts[min(number - 1, int((value - start) / step + 1e-9))] += often
    return [start + i * step for i in range(number + 1)], counts


def _round(step: float) -> float:
    base = 10.0 ** math.floor(math.log10(step))
    return next(m * base for m in (1.0, 2.0, 5.0, 10.0) if m * base >= step * (1 - 1e-9))
