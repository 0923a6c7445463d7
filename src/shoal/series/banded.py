"""Banded KAPRA: one dial between envelopes (Naive) and patterns (KAPRA)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.series.envelopes import exchange, number_by_height, unite
from shoal.series.kapra import Kapra
from shoal.series.method import Progress, SeriesGrouping, check_sizes, silent
from shoal.series.pattern import Encoded, Floats
from shoal.series.subgroups import own_words

BAND = 4  # times k, unless told: less value loss and less pattern loss than Naive


class Banded(Kapra, frozen=True, tag="banded"):
    """Every curve shares its pattern with P, and its envelope with k; both losses stay small.

    Protects against the same as KAPRA, and not against the same.

    How it works: curves are ordered by their total and cut into bands of ``band`` records; KAPRA runs inside each.
    A wide band finds finer patterns, a narrow one narrower envelopes: ``band`` = all records is KAPRA, ``band``
    near k is k-anonymity by height. Whoever finds no company in a band waits for the next one, so that fewer than P
    are suppressed in all. At the end records change places across bands. Without ``band`` it is 4 x k.

    Cost: O(records x (levels + band / P x instants)): linear in the records.

    >>> import numpy as np
    >>> from shoal.series.sax import Sax
    >>> curves = np.add.outer(np.arange(16.0), [0, 1, 2, 3]); curves[::2] = curves[::2, ::-1]
    >>> grouping = Banded(band=8).group(curves, Sax().encode(curves), k=4, p=2)
    >>> np.bincount(grouping.group).tolist(), grouping.suppressed
    ([4, 4, 4, 4], 0)

    Reference: own; measured in docs/methods/series.md.
    """

    band: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.band is not None and self.band < 1:
            raise UsageError(f"`band` must be at least 1 record, found {self.band}", where=self.use)

    def group(
        self, values: Floats, encoded: Encoded, k: int, p: int, *, seed: int = 0, progress: Progress = silent
    ) -> SeriesGrouping:
        """See :class:`SeriesMethod`."""
        check_sizes(len(values), k, p)
        losses = encoded.losses() if self.refine else None
        group = np.full(len(values), -1, np.int32)
        word = np.full(len(values), -1, np.int32)
        bands = self.bands(values, k, seed)
        waiting = bands[0][:0]
        groups = 0
        for at, members in enumerate(bands):
            progress(0.2 + 0.5 * at / len(bands), "bands")
            rows = np.concatenate([waiting, members])
            word[rows] = own_words(encoded, rows, p, least=k, refine=self.refine, losses=losses)
            here = unite(values[rows], self.parts(values[rows], word[rows], p, seed), k)
            group[rows] = np.where(here >= 0, here + groups, -1)
            groups += int(here.max()) + 1
            waiting = rows[here < 0]
        progress(0.7, "exchange")
        found = exchange(values, SeriesGrouping(group, word), k, p, self.passes)
        return number_by_height(values, found.group, word)

    def bands(self, values: Floats, k: int, seed: int) -> list[NDArray[np.int64]]:
        """See :class:`SeriesMethod`."""
        # a band of fewer than k holds no group
        band = BAND * k if self.band is None else max(self.band, k)
        order = np.argsort(values.sum(axis=1), kind="stable")
        return np.array_split(order, max(1, len(order) // band))
