"""The pattern and its word length chosen by what they lose of whole curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.core.errors import UsageError
from shoal.measures.series import pattern_loss
from shoal.series.pattern import Encoded, Floats, Pattern
from shoal.series.sax import Sax
from shoal.series.seasonal import Seasonal
from shoal.series.slope import Slope
from shoal.series.subgroups import own_words

SAMPLE = 2000  # curves that candidates are tried on
WORDS = (4, 6, 8, 12, 16, 24)
SEASONS = 3  # periods that are tried, those that repeat best
REPEATS = 0.1  # least correlation of a curve with itself one period later
COMMON = (
    7,
    12,
    24,
    48,
    52,
    96,
    144,
    168,
    288,
    336,
    365,
)  # of days, months, hours, weeks, minutes


class Auto(Pattern, frozen=True, tag="auto"):
    """The one of SAX, slope and seasonal words, of several lengths, that loses least of whole curves at this P.

    Protects nothing by itself. The choice is made on the curves, so that it tells one thing about all of them: which
    kind of word fits them.

    How it works: up to 2,000 curves, evenly taken from the order of their totals, get the words they would publish (P
    of them with one word) under each candidate; the one whose rebuilt curves correlate best with the true ones is
    taken. Periods are those of common calendars, and those at which curves repeat themselves best.

    Cost: O(candidates x sample x (instants + levels x letters)).

    >>> import numpy as np
    >>> day = np.repeat([0.0, 4, 1, 9, 3, 7, 2, 8], 3)
    >>> curves = np.stack([np.tile(np.roll(day, i % 12), 7) for i in range(60)])
    >>> Auto().fitted(curves + np.random.default_rng(0).normal(size=curves.shape), k=5, p=5).use
    'seasonal'
    """

    def fitted(self, values: Floats, k: int, p: int) -> Pattern:
        """See :class:`Pattern`."""
        step = max(1, len(values) // SAMPLE)
        # from low curves to high ones, evenly: a random part could miss a kind
        sample = np.ascontiguousarray(values[np.argsort(values.sum(axis=1), kind="stable")[::step]])
        lost = [shape_lost(one, sample, k, p) for one in candidates(sample)]
        # rounded, so that of equals the plainest is taken on every machine
        return candidates(sample)[int(np.argmin(np.round(lost, 9)))]

    def encode(self, values: Floats) -> Encoded:
        """See :class:`Pattern`: as chosen for pairs."""
        return self.fitted(values, 2, 2).encode(values)

    def rebuild(self, level: int, words: Sequence[str]) -> Floats:
        """Not possible: the chosen pattern rebuilds its words."""
        raise UsageError("the pattern is chosen by the curves", where="auto", hint="use `release.pattern`")

    def stretch(self, features: Floats, instants: int) -> Floats:
        """Not possible: the chosen pattern stretches its features."""
        raise UsageError("the pattern is chosen by the curves", where="auto", hint="use `release.pattern`")


def candidates(values: Floats) -> list[Pattern]:
    """What is tried on these curves, the plainest first: of equals it is taken."""
    instants = values.shape[1]
    lengths = [word for word in WORDS if word <= instants]
    out: list[Pattern] = [Sax(), *[Sax(word=word) for word in lengths], *[Slope(word=word) for word in lengths[:4]]]
    for period in seasons(values):
        words = (None, *[word for word in (8, 12) if word < period])
        out += [Seasonal(period=period, word=word) for word in words]
    return out


def seasons(values: Floats) -> list[int]:
    """Periods at which curves repeat themselves, the best first; at least two of them must fit into a curve."""
    instants = values.shape[1]
    spread = values.std(axis=1, keepdims=True)
    normal = np.divide(values - values.mean(axis=1, keepdims=True), spread, out=np.zeros_like(values), where=spread > 0)
    again = {}
    for period in range(2, instants // 2 + 1):
        # long curves are tried at calendars only: every period costs a pass over all curves
        if period in COMMON or instants <= 400:
            again[period] = float((normal[:, period:] * normal[:, :-period]).mean())
    good = [period for period, share in again.items() if share >= REPEATS]
    # a multiple repeats as well as the period itself: a calendar's and the shorter one first among equals
    good.sort(key=lambda period: (-round(again[period], 2), period not in COMMON, period))
    return good[:SEASONS]


def shape_lost(pattern: Pattern, values: Floats, k: int, p: int) -> float:
    """What whole curves lose on the average if each publishes the finest word of its own that ``p`` share."""
    encoded = pattern.encode(values)
    everyone = np.arange(len(values))
    word = own_words(encoded, everyone, p, least=k, refine=0.3, losses=encoded.losses())
    words, which = np.unique(np.maximum(word, 0), return_inverse=True)
    shapes = np.ascontiguousarray(pattern.stretch(encoded.shapes(words.astype(np.int32)), values.shape[1]))
    lost = pattern_loss(values, shapes, which)
    return float(np.where(word >= 0, lost, 1.0).mean())
