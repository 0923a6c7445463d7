"""How popular the values of a stream are: built from what is published of it, level by level.

A table such as "of all events, 64 % show a value that at least 3 people showed within the hour" fixes how the events
are spread over values of every popularity. So popularity is not fitted but constructed: one value after the other takes
its share of the events, each as popular as the table says at that place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def popularity(count: int, reached: Sequence[tuple[float, float]], most: float, visits: float) -> Floats:
    """The shares of ``count`` values in all visits, falling.

    ``reached`` are pairs (people, share): of all visits, this share is at values that at least so many people visit
    within the hour; ``most`` people visit the most popular one, and ``visits`` are made in the hour. Between these
    points popularity falls evenly on a logarithmic scale; how rare the rarest value is follows from how many there are.
    """
    people = np.log([most, *[p for p, _ in reversed(reached)]])
    share = np.array([0.0, *[s for _, s in reversed(reached)]])
    grid = np.linspace(0, 1, 20_001) ** 0.5  # finer where values are rare
    low, high = -60.0, float(people[-1])
    for _ in range(60):
        middle = (low + high) / 2
        curve = np.interp(grid, [*share, 1.0 + 1e-9], [*people, middle])
        many = _values_up_to(curve, grid, visits)
        low, high = (middle, high) if many[-1] > count else (low, middle)
    edges = np.interp(np.linspace(0, many[-1], count + 1), many, grid)
    out: Floats = np.diff(edges)  # what each value takes of the visits
    falling: Floats = np.sort(out)[::-1] / out.sum()
    return falling


def _values_up_to(curve: Floats, grid: Floats, visits: float) -> Floats:
    """How many values make up each share of the visits, if popularity (a logarithm) falls like this."""
    density = visits * np.exp(-curve)
    return np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))])


def nested(rng: np.random.Generator, shares: Floats, parents: Floats) -> Ints:
    """A parent for every value, so that each parent has about its share and none is without values. Both fall.

    Popular values go where there is room for them; small values fill what is left, in a random order.
    """
    count = len(parents)
    room = parents.copy()
    own = np.full(len(shares), -1, np.int64)
    # one value each, so that no parent stays empty: the smallest, which are the last, as both fall
    smallest = np.arange(len(shares))[::-1][:count]
    own[smallest] = np.arange(count)[::-1][: len(smallest)]
    room[own[smallest]] -= shares[smallest]
    large = np.flatnonzero((own < 0) & (shares > parents.min()))[:4000]
    for at in large:
        fits = np.flatnonzero(room >= shares[at])
        best = rng.choice(fits, p=room[fits] / room[fits].sum()) if len(fits) else int(room.argmax())
        own[at] = best
        room[best] -= shares[at]
    rest = rng.permutation(np.flatnonzero(own < 0))
    if len(rest):
        edges = np.cumsum(np.maximum(room, 0))
        middle = np.cumsum(shares[rest]) - shares[rest] / 2
        own[rest] = np.searchsorted(edges, middle / max(middle[-1], 1e-300) * edges[-1] * (1 - 1e-9))
    return np.minimum(own, count - 1)
