"""What means tell about who is who: envelopes made as narrow as the representatives beside them allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from shoal.core.cells import interval
from shoal.series.queries import envelope_ends, read_representatives

SLACK = 1e-9  # a bound that is computed from rounded sums must not leave out the record it is about


def narrow(released: pl.DataFrame, means: pl.DataFrame, instants: Sequence[str]) -> pl.DataFrame:
    """A wide release as an attacker reads it who has its representatives, too: narrower envelopes.

    Among n values with this mean and spread none is farther away than spread x root of n - 1 (Samuelson), so the
    records of one subgroup are no longer spread over the envelope of all k.

    >>> row = {"group": [0] * 5, "W0": ["[0, 100]"] * 5, "pattern": ["a"] * 5, "level": [1] * 5}
    >>> mean = {"group": [0], "pattern": ["a"], "level": [1], "size": [5], "together": [0.0]}
    >>> means = pl.DataFrame(mean | {"W0_mean": [10.0], "W0_spread": [2.0]})
    >>> [round(float(end[0]), 3) for end in envelope_ends(narrow(pl.DataFrame(row), means, ["W0"])["W0"])]
    [6.0, 14.0]
    """
    read = read_representatives(means, released, instants)
    reach = read.spread * np.sqrt(read.size - 1.0)[:, None]
    columns = []
    for at, name in enumerate(instants):
        low, high = envelope_ends(released[name])
        far = reach[read.which, at]
        slack = SLACK * np.maximum(1.0, np.abs(read.mean[read.which, at]) + far)
        told = ~np.isnan(far)
        least = np.where(told, np.maximum(low, np.round(read.mean[read.which, at] - far - slack, 9)), low)
        most = np.where(told, np.minimum(high, np.round(read.mean[read.which, at] + far + slack, 9)), high)
        # slack on both sides may have crossed them
        ends = zip(least.tolist(), np.maximum(least, most).tolist(), strict=True)
        columns.append(pl.Series(name, [interval(a, b, whole=False) for a, b in ends], dtype=pl.String))
    return released.with_columns(columns)
