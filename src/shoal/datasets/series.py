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
