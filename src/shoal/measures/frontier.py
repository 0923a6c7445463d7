"""The points that no other point beats: less of everything is better."""

from __future__ import annotations

from collections.abc import Sequence


def frontier(points: Sequence[tuple[float, ...]]) -> list[bool]:
    """Of each point, whether no other is at most as large in every figure and smaller in one.

    >>> frontier([(0.1, 0.5), (0.2, 0.2), (0.2, 0.5)])
    [True, True, False]
    """
    return [
        # equal points do not beat each other
        not any(other != point and all(o <= p for o, p in zip(other, point, strict=True)) for other in points)
        for point in points
    ]
