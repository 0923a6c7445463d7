"""Seeded event streams with the published shape of the papers' data: shop, domains, positions, web visits.

Sizes and level counts: Bacconi 2021, Tables 3.4 and 3.5, and Jha et al. 2020, section VI; ``scale`` makes them
smaller or larger. People and values follow power laws, traffic follows day and night. Columns: ``time`` (seconds),
``subject``, ``value`` (a path, most general step first).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError

Ints = NDArray[np.int64]


class Shape(NamedTuple):
    """How many events, people, and values at each level (most specific first); over how many days; how skewed."""

    events: int
    people: int
    levels: tuple[int, ...]
    days: float
    people_skew: float
    value_skew: float


SHAPES = {
    "ecommerce": Shape(3_000_000, 410_609, (121_903, 453, 31, 12, 2), 2.5, 0.4, 0.9),
    "domains": Shape(11_000_000, 7_809, (27_482, 83), 1.0, 0.5, 1.1),
    "positions": Shape(1_798_399, 23_500, (77_028, 22_667, 1_308, 77, 23, 6), 2.0, 0.5, 0.8),
}


NIGHT = 0.78  # how far traffic falls at midnight, and rises at noon


def stream(name: str, scale: float = 1.0, seed: int = 0, hours: tuple[float, float] | None = None) -> pl.DataFrame:
    """One of the three use cases of Bacconi 2021, in time order; all of it, or some hours from the first midnight.

    ``scale`` thins people and values together. A piece of ``hours`` at full scale has all people and values instead,
    at the density of the whole.

    >>> stream("positions", scale=0.001).columns
    ['time', 'subject', 'value']
    """
    if name not in SHAPES:
        raise UsageError(f"there is no stream called {name!r}", where="datasets", hint=f"one of: {', '.join(SHAPES)}")
    if not scale > 0:
        raise UsageError("`scale` must be positive", where="datasets")
    shape = SHAPES[name]
    rng = np.random.default_rng(seed)
    hours = hours or (0, 24 * shape.days)
    n = max(1, round(shape.events * scale * _traffic(hours) / _traffic((0, 24 * shape.days))))
    people = max(1, round(shape.people * scale))
    leaves = max(1, round(shape.levels[0] * scale))
    who = ranked(rng, n, people, shape.people_skew)
    what = ranked(rng, n, leaves, shape.value_skew)
    paths = _paths(rng, leaves, [max(1, min(c, leaves)) for c in shape.levels[1:]], name)
    return pl.DataFrame(
        {
            "time": np.floor(day_and_night(rng, n, hours)),
            "subject": pl.Series(who).cast(pl.String),
            "value": paths.gather(what),
        }
    )


def ranked(rng: np.random.Generator, n: int, size: int, skew: float) -> Ints:
    """``n`` draws of ranks 0 to size - 1 by a power law; every rank occurs where there is room for all."""
    weights = np.cumsum(1.0 / np.arange(1, size + 1) ** skew)
    out = np.searchsorted(weights, rng.uniform(0, weights[-1], n)).astype(np.int64)
    if n >= 2 * size:
        out[rng.choice(n, size, replace=False)] = np.arange(size)
    return out


def day_and_night(rng: np.random.Generator, n: int, hours: tuple[float, float]) -> NDArray[np.float64]:
    """Sorted times in seconds; traffic at noon is about eight times that of the night."""
    grid = np.linspace(hours[0] * 3600, hours[1] * 3600, 2000)
    rate = 1.0 - NIGHT * np.cos(2 * np.pi * grid / 86400)
    total = np.concatenate([[0], np.cumsum((rate[1:] + rate[:-1]) / 2)])
    return np.sort(np.interp(rng.uniform(0, total[-1], n), total, grid))


def _traffic(hours: tuple[float, float]) -> float:
    """The integral of the rate of :func:`day_and_night`."""
    swing = NIGHT * 24 / (2 * np.pi)
    return float((hours[1] - hours[0]) - swing * np.diff(np.sin(2 * np.pi * np.array(hours) / 24))[0])


def _paths(rng: np.random.Generator, leaves: int, counts: list[int], name: str) -> pl.Series:
    """The path of every leaf: each level's nodes are spread over the next, all of them used."""
    own = np.arange(leaves)
    labels = [pl.Series(own).cast(pl.String)]
    for count in counts:
        size = int(own.max()) + 1
        parent = np.concatenate([np.arange(min(count, size)), ranked(rng, max(0, size - count), count, 0.7)])
        own = rng.permutation(parent)[own]
        labels.append(pl.Series(own).cast(pl.String))
    out = labels[-1].rename(name)
    out = pl.Series([f"{name[0]}"], dtype=pl.String) + out
    for label in reversed(labels[:-1]):
        out = out + pl.Series(["."]) + label
    return out


class Visits(NamedTuple):
    """Web visits of Jha et al. 2020: people, and p_a^X, the probability per hour that a person visits each site."""

    users: int
    exposed: NDArray[np.float64]


def web_visits(users: int = 9_670, sites: int = 27_482) -> Visits:
    """The measured shape: top .34, seven sites above .1, seventy above .01, 15,464 sites of one visitor a day."""
    rank = np.arange(1, sites + 1)
    knots_rank = np.array([1, 7, 8, 70, 71, max(72, sites - 15_464), sites])
    alone = 1 / users / 24
    knots = np.array([0.34, 0.101, 0.099, 0.0101, 0.0099, 2 * alone, alone])
    exposed = np.exp(np.interp(np.log(rank), np.log(knots_rank), np.log(knots)))
    exposed[rank > sites - 15_464] = alone
    return Visits(users, exposed)
