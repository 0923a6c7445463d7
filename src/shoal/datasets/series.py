"""Curves with the published shape of the data sets of Minutoli et al. 2021; no record of theirs is in them."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.core.errors import UsageError


def sales_curves(rows: int = 811, weeks: int = 52, *, seed: int = 0) -> pl.DataFrame:
    """Weekly purchased quantities per product: ``Product_Code``, ``W0`` …; the last week is meant as sensitive.

    A few products sell much and most little (a gamma law); counts are Poisson around a season of each product's own.

    >>> sales_curves(2, 3).columns
    ['Product_Code', 'W0', 'W1', 'W2']
    """
    rng = _rng(seed, rows, weeks)
    height = rng.gamma(0.45, 20.0, (rows, 1))
    season = 1 + 0.35 * np.sin(2 * np.pi * (np.arange(weeks) / 52 + rng.uniform(size=(rows, 1))))
    counts = rng.poisson(height * season)
    return _frame("Product_Code", [f"P{i + 1}" for i in range(rows)], "W", 0, counts)


def news_feedback(rows: int = 7687, slices: int = 144, *, seed: int = 0) -> pl.DataFrame:
    """Cumulative feedback per news item in slices of 20 minutes: ``IDLink``, ``TS1`` …; -1 until it is published.

    Most items get next to nothing, some go far (a log-normal law); about a tenth never move, and many are alike.
    The topic Microsoft of Minutoli et al. 2021 is not at hand: use its number of rows.

    >>> news_feedback(2, 3).columns
    ['IDLink', 'TS1', 'TS2', 'TS3']
    """
    rng = _rng(seed, rows, slices)
    final = np.floor(rng.lognormal(1.0, 2.0, (rows, 1)))
    start = np.where(rng.uniform(size=(rows, 1)) < 0.5, 0, rng.integers(0, slices, (rows, 1)))
    speed = rng.uniform(5, 60, (rows, 1))
    age = np.arange(slices) - start
    curve = np.floor(final * (1 - np.exp(-np.maximum(age, 0) / speed)))
    counts = np.where(age < 0, -1, curve).astype(np.int64)
    still = rng.uniform(size=rows) < 0.1
    counts[still] = counts[still, -1:]
    return _frame("IDLink", list(range(1, rows + 1)), "TS", 1, counts)


def meter_weeks(rows: int = 1000, days: int = 7, per_day: int = 48, *, seed: int = 0) -> pl.DataFrame:
    """Electricity per half-hour and household over a week: ``meter``, ``H0`` …; six ways of living, loud noise.

    Households differ in size (a log-normal law) and in when they use most: mornings, noon, evenings, weekends.

    >>> meter_weeks(2, 1, 4).columns
    ['meter', 'H0', 'H1', 'H2', 'H3']
    """
    rng = _rng(seed, rows, days * per_day)
    at = np.arange(days * per_day)
    hour, day = at % per_day * 24 / per_day, at // per_day

    def peak(centre: float, width: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.exp(-(((hour - centre) / width) ** 2) / 2)

    morning, noon, evening = peak(7.5, 1), peak(13, 2), peak(19, 2)
    weekend = np.where(day % 7 >= 5, peak(12, 3), 0.0)
    lives = ((1, 0.1, 1.5, 0.5), (0.2, 0.8, 1, 0.1), (0.1, 1.5, 0.3, 0), (1.2, 0.1, 0.6, 0.9), (0.1, 0.1, 2, 0.2),
             (0, 0.1, 0.1, 0))  # fmt: skip
    kinds = np.array([0.3 + a * morning + b * noon + c * evening + d * weekend for a, b, c, d in lives])
    size = rng.lognormal(0.0, 0.5, (rows, 1))
    watts = 200 * size * kinds[rng.integers(0, len(lives), rows)] * rng.lognormal(0.0, 0.5, (rows, len(at)))
    return _frame("meter", [f"M{i + 1}" for i in range(rows)], "H", 0, np.round(watts).astype(np.int64))


def web_traffic(rows: int = 800, days: int = 56, *, seed: int = 0) -> pl.DataFrame:
    """Visits per day and page: ``page``, ``D0`` …; weeks with working days or weekends, growth, and a few sudden peaks.

    >>> web_traffic(2, 3).columns
    ['page', 'D0', 'D1', 'D2']
    """
    rng = _rng(seed, rows, days)
    at = np.arange(days)
    working = np.where(at % 7 < 5, 1.0, 0.35)
    leisure = np.where(at % 7 < 5, 0.7, 1.4)
    week = np.where(rng.uniform(size=(rows, 1)) < 0.6, working, leisure)
    growth = np.exp(rng.normal(0.0, 0.6, (rows, 1)) * at / max(1, days))
    start = rng.integers(0, days, (rows, 1))
    news = rng.uniform(size=(rows, 1)) < 0.2
    burst = 1 + np.where(news & (at >= start), 4 * np.exp(-np.maximum(at - start, 0) / 4), 0.0)
    visits = rng.poisson(rng.lognormal(3.5, 1.2, (rows, 1)) * week * growth * burst)
    return _frame("page", [f"/{i + 1}" for i in range(rows)], "D", 0, visits)


def random_walks(
    rows: int = 6553, instants: int = 10, *, seed: int = 0
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Sums of Gaussian steps, scaled to 0 … 1 over all of them: the Walk set of Shou et al. has this shape.

    >>> random_walks(2, 3).shape
    (2, 3)
    """
    walk = _rng(seed, rows, instants).normal(size=(rows, instants)).cumsum(axis=1)
    width = float(np.ptp(walk)) or 1.0
    out: np.ndarray[tuple[int, int], np.dtype[np.float64]] = (walk - walk.min()) / width
    return out


def _rng(seed: int, rows: int, instants: int) -> np.random.Generator:
    if rows < 1 or instants < 1:
        raise UsageError(f"expected at least one row and one instant, found {rows} and {instants}", where="datasets")
    return np.random.default_rng([seed, 0x5E])


def _frame(
    name: str,
    ids: list[str] | list[int],
    prefix: str,
    first: int,
    counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
) -> pl.DataFrame:
    columns = [pl.Series(f"{prefix}{first + at}", counts[:, at]) for at in range(counts.shape[1])]
    return pl.DataFrame([pl.Series(name, ids), *columns])
