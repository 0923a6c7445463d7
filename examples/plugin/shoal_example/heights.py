"""A series method: curves of like height share an envelope."""

from __future__ import annotations

import numpy as np

from shoal.series import Encoded, SeriesGrouping, SeriesMethod
from shoal.series.envelopes import number_by_height
from shoal.series.method import Progress, check_sizes, silent
from shoal.series.pattern import Floats


class Heights(SeriesMethod, frozen=True, tag="heights"):
    """Curves sorted by their sum, cut into runs of k; all publish the coarsest word, which they have in common."""

    def group(
        self, values: Floats, encoded: Encoded, k: int, p: int, *, seed: int = 0, progress: Progress = silent
    ) -> SeriesGrouping:
        """The last run takes the rest, so that nobody is suppressed."""
        check_sizes(len(values), k, p)
        rank = np.empty(len(values), np.int64)
        rank[np.argsort(values.sum(axis=1), kind="stable")] = np.arange(len(values))
        group = np.minimum(rank // k, len(values) // k - 1).astype(np.int32)
        return number_by_height(values, group, encoded.codes[0])
