"""Seeded event streams of people with habits: shop, domains, positions, web visits.

Nobody may pass on the data of the papers. These streams have their published shape (Bacconi 2021, Tables 3.4 and 3.5)
and behave like them (Tables 4.1 to 4.3; for domains also the exposure of Jha et al. 2020, section VI):

- Values are as popular as the tables say, at every level (:mod:`shoal.datasets.popularity`).
- A person has *favourites*, returns to them, and rarely looks further.
- A person *lives* somewhere: most favourites are near (positions), or of one interest (shop).
- Events come in *sessions*: a visit is several events in a row, a session several visits, with pauses between. Who
  looks for something (shop) mostly stays in the category the session began with.
- Traffic follows *day and night*.

``scale`` makes people, events and the values of every level fewer by one factor, so that their ratios stay; a value is
then shown by fewer people, too, and z must be scaled with it. Columns: ``time`` (seconds), ``subject``, ``value`` (a
path, most general step first). The same seed gives the same stream. Costs about a second for two million events.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.datasets.popularity import Floats, Ints, nested, popularity


class Shape(NamedTuple):
    """What is published of a stream, and the habits of its people.

    ``levels`` counts the values of each level, most specific first. ``reached`` says for each level, for some z, the
    share of events whose value (or any more specific one) at least z people showed within the hour. ``top`` is the
    share of the people of an hour who show the most popular value of each level.

    Habits: ``visit`` events are made in a visit to a common value, ``rare_visit`` in one to a rare value; ``session``
    visits in a session; ``pause`` seconds between two events of a visit; ``favourites`` per person, to which ``loyal``
    of the visits go; ``near`` of them lie within the person's own node of each level, most specific first. ``again`` is
    how many visits of an hour a person makes to a node that they visit at all, by level, the last for all above.
    ``bare`` of the less popular categories belong to none above them: a product may have one category and no more.
    ``stay`` of the visits of a session are within the node of each level that it began with. Sessions are as long as
    ``even`` says: 1 is by chance alone (geometric), less makes more sessions of one visit, and some very long ones.
    """

    events: int
    people: int
    levels: tuple[int, ...]
    days: float
    people_skew: float
    reached: tuple[tuple[tuple[float, float], ...], ...]
    top: tuple[float, ...]
    visit: float
    rare_visit: float
    session: float
    pause: float
    favourites: int
    loyal: float
    near: tuple[float, ...]
    again: tuple[float, ...] = (1.0,)
    bare: float = 0.0
    stay: tuple[float, ...] = ()
    even: float = 1.0


SHAPES = {
    "ecommerce": Shape(
        3_000_000,
        410_609,
        (121_903, 453, 31, 12, 2),
        2.5,
        0.35,
        (
            ((3, 0.642), (5, 0.515), (10, 0.375), (20, 0.27)),
            ((3, 0.994), (5, 0.986), (10, 0.961), (20, 0.91)),
            ((3, 0.995), (5, 0.989), (10, 0.969), (20, 0.933)),
            ((3, 0.995), (5, 0.989), (10, 0.97), (20, 0.936)),
            ((3, 1.0), (20, 1.0)),
        ),
        (0.012, 0.25, 0.3, 0.35, 0.9),
        1.25,
        1.15,
        6.0,
        60.0,
        20,
        0.6,
        (0.0, 0.6, 0.1, 0.0, 0.0),
        (1.15, 4.4),
        0.8,
        (0.0, 0.86),
        0.5,
    ),
    "domains": Shape(
        11_000_000,
        7_809,
        (27_482, 83),
        1.0,
        0.3,
        (
            ((5, 0.86), (20, 0.785), (100, 0.695), (900, 0.57)),
            ((5, 0.999), (20, 0.992), (100, 0.953), (900, 0.753)),
        ),
        (0.34, 0.6),
        20.0,
        5.0,
        3.0,
        20.0,
        40,
        0.85,
        (0.0, 0.0),
        (2.0,),
    ),
    "positions": Shape(
        1_798_399,
        23_500,
        (77_028, 22_667, 1_308, 77, 23, 6),
        2.0,
        0.3,
        (
            ((2, 0.75), (5, 0.55), (50, 0.13), (150, 0.035)),
            ((2, 0.883), (5, 0.706), (50, 0.22), (150, 0.065)),
            ((2, 0.99), (5, 0.98), (50, 0.83), (150, 0.7)),
            ((2, 0.998), (5, 0.996), (50, 0.985), (150, 0.985)),
            ((2, 0.999), (5, 0.998), (50, 0.995), (150, 0.994)),
            ((2, 0.9999), (5, 0.9998), (50, 0.9996), (150, 0.9994)),
        ),
        (0.06, 0.08, 0.3, 0.7, 0.9, 0.98),
        1.3,
        1.1,
        4.0,
        30.0,
        12,
        0.7,
        (0.0, 0.0, 0.6, 0.25, 0.1, 0.0),
        (1.4,),
    ),
}
NIGHT = 0.78  # how far traffic falls at midnight, and rises at noon
USUAL = 1.0 + NIGHT**2 / 2  # traffic at the hour of a usual event, in that of a usual hour


def stream(name: str, scale: float = 1.0, seed: int = 0, hours: tuple[float, float] | None = None) -> pl.DataFrame:
    """One of the three use cases of Bacconi 2021, in time order; all of it, or some hours from the first midnight.

    A piece of ``hours`` has the density of the whole at that time of the day.

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
    values = _values(name, scale)
    who, what, when = _events(rng, shape, values, n, max(1, round(shape.people * scale)), hours)
    order = np.argsort(when, kind="stable")
    return pl.DataFrame(
        {
            "time": np.floor(when[order]),
            "subject": pl.Series(who[order]).cast(pl.String),
            "value": values.paths.gather(what[order]),
        }
    )


class Values(NamedTuple):
    """The values of a stream, in the order of their tree: every node of every level is a run of them.

    ``total`` are their summed shares of visits; ``first`` and ``last`` say, for each level and value, where the node it
    belongs to begins and ends; ``length`` is the mean number of events of a visit.
    """

    paths: pl.Series
    total: Floats
    first: tuple[Ints, ...]
    last: tuple[Ints, ...]
    length: Floats


@lru_cache(maxsize=8)
def _values(name: str, scale: float) -> Values:
    """The tree of values; its own seed, because it is the same shop whoever comes in."""
    shape, rng = SHAPES[name], np.random.default_rng(7)
    hourly = shape.events * scale / (24 * shape.days) * USUAL
    crowd = min(hourly / shape.visit, shape.people * scale)
    counts = [max(1, round(c * scale)) for c in shape.levels]
    shares: list[Floats] = []
    for level, count in enumerate(counts):
        again = shape.again[min(level, len(shape.again) - 1)]
        reached = [(z * scale * again, share) for z, share in shape.reached[level]]
        visits = hourly / (shape.visit if level else _mean_visit(shape))
        shares.append(popularity(count, reached, max(shape.top[level] * crowd * again, reached[-1][0] * 1.01), visits))
    parents = [nested(rng, low, high) for low, high in pairwise(shares)]
    own = [np.arange(counts[0])]
    for parent in parents:
        own.append(parent[own[-1]])
    order = np.lexsort([rng.permutation(counts[0]), *own[1:]])
    ordered = [nodes[order] for nodes in own]
    edges = [np.flatnonzero(np.diff(nodes, prepend=-1)) for nodes in ordered]
    first = tuple(edge[np.searchsorted(edge, np.arange(counts[0]), "right") - 1] for edge in edges)
    ends = [np.append(edge[1:], counts[0]) for edge in edges]
    last = tuple(
        end[np.searchsorted(edge, np.arange(counts[0]), "right") - 1] for edge, end in zip(edges, ends, strict=True)
    )
    weight = shares[0][order]
    rank = np.argsort(np.argsort(-weight, kind="stable"), kind="stable") / max(1, counts[0] - 1)
    length = shape.visit * (shape.rare_visit / shape.visit) ** np.sqrt(rank)
    bare = (ordered[1] > 0.1 * counts[1]) & (_spread(ordered[1], 5) < shape.bare)
    if bare.any():  # every node above keeps one category
        bare &= ~np.isin(ordered[1], ordered[1][np.unique(ordered[2], return_index=True)[1]])
    path = _paths(name, ordered, bare)
    return Values(path, np.concatenate([[0.0], np.cumsum(weight)]), first, last, length)


def _paths(name: str, ordered: list[Ints], bare: NDArray[np.bool_]) -> pl.Series:
    """The path of every value; of those in a bare category, only the category and the value."""
    labels = [pl.Series(nodes).cast(pl.String) for nodes in ordered]
    whole = pl.Series([name[0]], dtype=pl.String) + labels[-1]
    for label in reversed(labels[:-1]):
        whole = whole + pl.Series(["."]) + label
    if not bare.any():
        return whole
    short = pl.Series([f"{name[0]}x"], dtype=pl.String) + labels[1] + pl.Series(["."]) + labels[0]
    return pl.select(pl.when(pl.Series(bare)).then(short).otherwise(whole)).to_series()


def _mean_visit(shape: Shape) -> float:
    return (shape.visit + shape.rare_visit) / 2


def _events(
    rng: np.random.Generator, shape: Shape, values: Values, n: int, people: int, hours: tuple[float, float]
) -> tuple[Ints, Ints, Floats]:
    """Person, value and time of ``n`` events: sessions of visits of events."""
    visits = max(1.0, 1.15 * n / float(np.diff(values.total) @ values.length))
    person = ranked(rng, max(1, round(visits / shape.session)), people, shape.people_skew)
    begun = day_and_night(rng, len(person), hours)
    rng.shuffle(begun)
    session = np.repeat(np.arange(len(person)), _lengths(rng, shape, len(person)))
    who = person[session]
    what = _drawn(rng, shape, values, session, who)
    events = rng.geometric(1 / values.length[what])
    order = rng.permutation(len(who))
    cut = int(np.searchsorted(np.cumsum(events[order]), n)) + 1
    kept = np.sort(order[:cut])  # a sample of the visits, as many as make up the events
    if hours == (0, 24 * shape.days) and len(kept) > 4 * len(values.length):  # everything and everyone once, at least
        never = np.setdiff1d(np.arange(len(values.length)), what[kept])
        what[rng.choice(kept, len(never), replace=False)] = never
        away = np.setdiff1d(person, who[kept])
        if len(away):
            who[rng.choice(kept, len(away), replace=False)] = away
    visit = np.repeat(kept, events[kept])[:n]
    while len(visit) < n:  # too few: some visits were longer
        visit = np.concatenate([visit, rng.choice(kept, n - len(visit))])
    pauses = rng.exponential(shape.pause, n)
    since = np.cumsum(pauses)
    start = np.flatnonzero(np.diff(session[visit], prepend=-1))
    since -= np.repeat(since[start], np.diff(np.append(start, n)))
    when = begun[session[visit]] + since
    low, high = hours[0] * 3600, hours[1] * 3600 - 1e-3
    return who[visit], what[visit], low + np.mod(when - low, high - low)


def _lengths(rng: np.random.Generator, shape: Shape, n: int) -> Ints:
    """Visits of every session: one, and by chance more."""
    if shape.even == 1.0:
        return rng.geometric(1 / shape.session, n)
    return 1 + rng.negative_binomial(shape.even, shape.even / (shape.even + shape.session - 1), n)


def _drawn(rng: np.random.Generator, shape: Shape, values: Values, session: Ints, who: Ints) -> Ints:
    """The value of every visit: what its session began with, or near it, or else one of the person's favourites."""
    out = _favourites(rng, shape, values, who)
    if not shape.stay:
        return out
    begun = out[np.flatnonzero(np.diff(session, prepend=-1))][session]
    level = np.searchsorted(np.cumsum(shape.stay), rng.random(len(who)), "right")
    for at in range(len(shape.stay)):
        here = np.flatnonzero(level == at)
        first, last = values.first[at][begun[here]], values.last[at][begun[here]]
        out[here] = _place(values, values.total[first], values.total[last], rng.random(len(here)))
    return out


def _favourites(rng: np.random.Generator, shape: Shape, values: Values, who: Ints) -> Ints:
    """Mostly one of the person's favourites, and of those mostly the first; rarely anything else."""
    n = len(who)
    favourite = np.minimum(rng.geometric(1 / (0.3 * shape.favourites + 1), n) - 1, shape.favourites - 1)
    loyal = rng.random(n) < shape.loyal
    seed = np.where(loyal, who * 1_000 + favourite, -1 - np.arange(n))
    home = _place(values, 0.0, values.total[-1], _spread(who, 1))
    level = np.searchsorted(np.cumsum(shape.near), _spread(seed, 2, rng), "right")
    low, high = np.zeros(n), np.full(n, values.total[-1])
    for at in range(len(shape.near)):
        here = level == at
        low[here] = values.total[values.first[at][home[here]]]
        high[here] = values.total[values.last[at][home[here]]]
    return _place(values, low, high, _spread(seed, 3, rng))


def _place(values: Values, low: Floats | float, high: Floats | float, share: Floats) -> Ints:
    found = np.searchsorted(values.total, low + share * (np.asarray(high) - low), "right") - 1
    return np.clip(found, 0, len(values.length) - 1).astype(np.int64)


def _spread(seed: Ints, salt: int, rng: np.random.Generator | None = None) -> Floats:
    """A number in [0, 1) that belongs to a seed (splitmix64); by chance where the seed is negative."""
    x = (seed.astype(np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 % 2**64)) * np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(31)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(29)
    out = (x >> np.uint64(11)).astype(np.float64) / 2**53
    if rng is not None:
        out = np.where(seed < 0, rng.random(len(seed)), out)
    return out


def ranked(rng: np.random.Generator, n: int, size: int, skew: float) -> Ints:
    """``n`` draws of ranks 0 to size - 1 by a power law; every rank occurs where there is room for all."""
    weights = np.cumsum(1.0 / np.arange(1, size + 1) ** skew)
    out = np.searchsorted(weights, rng.uniform(0, weights[-1], n)).astype(np.int64)
    if n >= size:
        out[rng.choice(n, size, replace=False)] = np.arange(size)
    return out


def day_and_night(rng: np.random.Generator, n: int, hours: tuple[float, float]) -> Floats:
    """Sorted times in seconds; traffic at noon is about eight times that of the night."""
    grid = np.linspace(hours[0] * 3600, hours[1] * 3600, 2000)
    rate = 1.0 - NIGHT * np.cos(2 * np.pi * grid / 86400)
    total = np.concatenate([[0], np.cumsum((rate[1:] + rate[:-1]) / 2)])
    return np.sort(np.interp(rng.uniform(0, total[-1], n), total, grid))


def _traffic(hours: tuple[float, float]) -> float:
    """The integral of the rate of :func:`day_and_night`."""
    swing = NIGHT * 24 / (2 * np.pi)
    return float((hours[1] - hours[0]) - swing * np.diff(np.sin(2 * np.pi * np.array(hours) / 24))[0])


class Visits(NamedTuple):
    """Web visits of Jha et al. 2020: people, and p_a^X, the probability per hour that a person visits each site."""

    users: int
    exposed: NDArray[np.float64]


def web_visits(users: int = 9_670, sites: int = 27_482) -> Visits:
    """The measured shape: top .34, seven sites above .1, seventy above .01, 15,464 sites of one visitor a day.

    >>> round(float(web_visits().exposed[0]), 2)
    0.34
    """
    rank = np.arange(1, sites + 1)
    knots_rank = np.array([1, 7, 8, 70, 71, max(72, sites - 15_464), sites])
    alone = 1 / users / 24
    knots = np.array([0.34, 0.101, 0.099, 0.0101, 0.0099, 2 * alone, alone])
    exposed = np.exp(np.interp(np.log(rank), np.log(knots_rank), np.log(knots)))
    exposed[rank > sites - 15_464] = alone
    return Visits(users, exposed)
