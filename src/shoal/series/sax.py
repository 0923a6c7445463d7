"""SAX: a curve as a word, one letter per segment (Lin, Keogh et al. 2003; as pattern of Shou et al. 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.series.pattern import Encoded, Floats, Ids, Pattern

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PLAIN_UP_TO = 10  # the paper's series have 10 instants and a letter for each
SEGMENTS = 6  # for longer ones; words of many letters hardly ever repeat
AT_ONCE = 65_536  # curves that are normalized at once: a second copy of a million of them is half of the memory
DECIMALS = 9  # a mean that lies on a breakpoint must not fall by rounding noise


class Sax(Pattern, frozen=True, tag="sax"):
    """Normalize, average ``word`` segments, and write each average as one of ``level`` letters, equally likely ones.

    Protects nothing by itself: it is what P records share. A word tells the shape, not the height or the scale.

    How it works: each series gets mean 0 and deviation 1 (a constant one becomes 0, never its raw value); segments
    may share an instant by fractions; averages are rounded to 9 decimals and compared with the Gaussian quantiles,
    intervals closed below. At level 1 all words are equal. ``levels`` is the highest level; ``nested`` keeps only
    1, 2, 4, 8, 16, whose words refine each other. Without ``word`` there is a letter per instant up to 10 instants,
    and 6 letters beyond.

    Cost: O(records x (instants + levels x letters)), all levels at once.

    >>> import numpy as np
    >>> encoded = Sax(word=3, levels=4).encode(np.array([[1.0, 2, 3, 4, 5, 6], [9, 9, 9, 9, 9, 9]]))
    >>> [encoded.texts(codes) for codes in encoded.codes]
    [['aaa', 'aaa'], ['abb', 'bbb'], ['abc', 'bbb'], ['acd', 'ccc']]

    Reference: Lin, Keogh, Lonardi, Chiu: A Symbolic Representation of Time Series (DMKD 2003).
    """

    word: int | None = None
    levels: int = 10
    nested: bool = False

    def __post_init__(self) -> None:
        if self.word is not None and self.word < 1:
            raise UsageError(f"`word` must be at least 1 letter, found {self.word}", where="sax")
        if not 1 <= self.levels <= len(LETTERS):
            raise UsageError(f"`levels` must be 1 to {len(LETTERS)}, found {self.levels}", where="sax")

    def ladder(self) -> tuple[int, ...]:
        """The levels, coarsest first."""
        if self.nested:
            return tuple(2**i for i in range(5) if 2**i <= self.levels)
        return tuple(range(1, self.levels + 1))

    def length(self, instants: int) -> int:
        """The letters of a word for series of so many instants."""
        if self.word is None:
            return instants if instants <= PLAIN_UP_TO else SEGMENTS
        if self.word > instants:
            raise UsageError(
                f"a word of {self.word} letters needs at least as many instants, found {instants}",
                where="sax",
                hint=f"use `word: {instants}` or less",
            )
        return self.word

    def encode(self, values: Floats) -> Encoded:
        """See :class:`Pattern`."""
        from shoal.kernels.series import sax as kernels

        features = self.features(values)
        ladder = self.ladder()
        codes = np.empty((len(ladder), len(values)), np.int32)
        alphabet: list[NDArray[np.uint8]] = []
        letters = np.empty(features.shape, np.uint8)
        first = 0
        for at, level in enumerate(ladder):
            kernels.letters(features, _breakpoints(level), letters)
            kinds, which = distinct(letters, level)
            codes[at] = which + first
            alphabet.append(kinds)
            first += len(kinds)
        level_of = np.repeat(np.arange(len(ladder), dtype=np.int16), [len(a) for a in alphabet])
        every = np.concatenate(alphabet) if alphabet else letters
        middles = np.zeros((len(ladder), max(ladder)))
        for at, level in enumerate(ladder):
            middles[at, :level] = _middles(level)

        def texts(words: Ids) -> list[str]:
            return ["".join(LETTERS[c] for c in word) for word in every[words].tolist()]

        def shapes(words: Ids) -> Floats:
            out: Floats = middles[level_of[words][:, None], every[words]]
            return out

        return Encoded(ladder, codes, features, level_of, texts, shapes)

    def features(self, values: Floats) -> Floats:
        """The averages of the segments of every normalized series."""
        from shoal.kernels.series import sax as kernels

        out = np.empty((len(values), self.length(values.shape[1])))
        normal = np.empty((min(len(values), AT_ONCE), values.shape[1]))
        for start in range(0, len(values), AT_ONCE):
            part = values[start : start + AT_ONCE]
            kernels.normalize(part, normal)
            kernels.segment_means(normal[: len(part)], out[start : start + AT_ONCE])
        # + 0.0: minus zero and zero are one number
        return np.round(out, DECIMALS) + 0.0

    def rebuild(self, level: int, words: Sequence[str]) -> Floats:
        """See :class:`Pattern`: each letter is the middle quantile of its interval."""
        letters = np.array([[LETTERS.find(c) for c in word] for word in words], np.int64)
        if letters.size and (letters.min() < 0 or letters.max() >= level):
            raise UsageError(f"a word of level {level} has a letter that this level has not", where="sax")
        return _middles(level)[letters.reshape(len(words), -1)]

    def stretch(self, features: Floats, instants: int) -> Floats:
        """See :class:`Pattern`: an instant on a border takes its share of both letters."""
        segments = features.shape[1]
        start = np.arange(segments)[:, None] * instants
        at = np.arange(instants)[None, :] * segments
        share = np.minimum(start + instants, at + segments) - np.maximum(start, at)
        weight = np.maximum(share, 0) / segments
        out: Floats = np.zeros((len(features), instants))
        for segment in range(segments):  # not a matrix product: sums in one fixed order
            out += features[:, segment, None] * weight[segment]
        return out


@lru_cache
def _breakpoints(level: int) -> Floats:
    return np.round([NormalDist().inv_cdf(j / level) for j in range(1, level)], DECIMALS) + 0.0


@lru_cache
def _middles(level: int) -> Floats:
    return np.array([NormalDist().inv_cdf((2 * j + 1) / (2 * level)) for j in range(level)])


def distinct(letters: NDArray[np.uint8], level: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The distinct rows in order, and which of them each row is."""
    key = np.zeros(len(letters), np.int64)
    room = 1
    for column in letters.T:
        if room >= 2**62 // level:
            key = np.unique(key, return_inverse=True)[1]
            room = int(key.max(initial=0)) + 1
        key = key * level + column
        room *= level
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return letters[first].copy(), which
