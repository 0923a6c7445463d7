"""Seasonal words: the mean day (week, year) of a curve as a word, for curves that repeat themselves."""

from __future__ import annotations

import numpy as np

from shoal.core.errors import UsageError
from shoal.series.pattern import Floats
from shoal.series.sax import Sax


class Seasonal(Sax, frozen=True, tag="seasonal"):
    """Fold a curve to its mean season of ``period`` instants, and write that as a SAX word.

    Protects nothing by itself: it is what P records share. It tells the shape of a typical season, not the height, and
    nothing of how one season differs from the next.

    How it works: instants that are ``period`` apart are averaged (half-hours: 48 is a day, 336 a week; days: 7 a week;
    weeks: 52 a year), and the mean season is encoded as by :class:`Sax`. Rebuilt, the season is repeated. Curves that
    are shorter than a season are encoded as they are.

    Cost: O(records x (instants + levels x letters)).

    >>> import numpy as np
    >>> day = np.array([0.0, 1, 5, 1])
    >>> encoded = Seasonal(period=4, levels=2).encode(np.stack([np.tile(day, 3), -np.tile(day, 3)]))
    >>> encoded.texts(encoded.codes[1])
    ['aaba', 'bbab']

    Reference: own; the folded day of load profiling.
    """

    period: int = 7

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.period < 1:
            raise UsageError(f"`period` must be at least 1 instant, found {self.period}", where=self.use)

    def length(self, instants: int) -> int:
        """See :class:`Sax`: the letters of one season."""
        return super().length(min(self.period, instants))

    def features(self, values: Floats) -> Floats:
        """The averages of the segments of every normalized mean season."""
        instants = values.shape[1]
        period = min(self.period, instants)
        fold = np.zeros((len(values), period))
        for at in range(instants):  # in one fixed order: a letter must not depend on the machine that found it
            fold[:, at % period] += values[:, at]
        fold /= np.bincount(np.arange(instants) % period)
        return super().features(fold)

    def stretch(self, features: Floats, instants: int) -> Floats:
        """See :class:`Pattern`: the season, repeated."""
        season = super().stretch(features, min(self.period, instants))
        return np.tile(season, -(-instants // season.shape[1]))[:, :instants]
