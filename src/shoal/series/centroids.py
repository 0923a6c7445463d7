"""A yardstick: curves replaced by the centroids of groups of k (MDAV), as plain microaggregation publishes them."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.series.diverse import rules_for
from shoal.series.pattern import Floats
from shoal.series.queries import Released


def microaggregated(values: Floats, k: int) -> Released:
    """What queries see of curves whose groups of ``k`` to 2k - 1 (MDAV) are published as their mean. O(records² / k).

    >>> curves = np.array([[1.0, 2], [3, 4], [9, 9], [11, 11]])
    >>> microaggregated(curves, 2).low.tolist()
    [[2.0, 3.0], [2.0, 3.0], [10.0, 10.0], [10.0, 10.0]]

    Reference: Domingo-Ferrer, Torra: Ordinal, Continuous and Heterogeneous k-Anonymity Through Microaggregation
    (Data Mining and Knowledge Discovery 11, 2005).
    """
    from shoal.kernels.tables.mdav import mdav

    everyone = np.arange(len(values), dtype=np.int32)
    beside = pl.DataFrame({"nothing": np.zeros(len(values), np.int64)})
    labels, groups = mdav(np.ascontiguousarray(values), everyone, rules_for(beside, [], k))
    label = labels.astype(np.int64)
    size = np.bincount(label, minlength=groups)
    centre = np.column_stack([np.bincount(label, weights=column, minlength=groups) / size for column in values.T])
    return Released(centre[label], centre[label], np.ascontiguousarray(centre), label)
