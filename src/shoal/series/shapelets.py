"""Shapelet words: each segment of a curve as the nearest of a few forms that everybody knows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.series.pattern import Encoded, Floats, Ids, Pattern
from shoal.series.sax import DECIMALS, LETTERS, Sax, distinct

POINTS = 4  # at which a segment is compared with a form
_RAMP = np.arange(1, POINTS + 1) / POINTS
_BUMP = np.array([0.5, 1.0, 0.5, 0.0])
# forms of one segment, in deviations of the curve, from where the segment begins; the first of each level are known
FORMS = np.array(
    [0 * _RAMP, _RAMP, -_RAMP, _BUMP, -_BUMP, 2 * _RAMP, -2 * _RAMP, 2 * _BUMP, -2 * _BUMP, _RAMP**3, -(_RAMP**3)]
)
LADDER = (1, 3, 5, 7, 9, 11)  # forms that are told apart at each level: a rise comes with its fall


class Shapelets(Pattern, frozen=True, tag="shapelets"):
    """A letter per segment for the form it has: flat, rise, fall, bump, dip, and steeper ones.

    Protects nothing by itself: it is what P records share. The forms are fixed and public, not learned from the curves,
    so that they tell nothing about them.

    How it works: each curve gets mean 0 and deviation 1 and is read at four points of each of ``word`` segments; a
    segment becomes the nearest of the first ``level`` forms, measured from where it begins. Rebuilt, each form begins
    where the last one ended. Levels are 1, 3, 5, 7, 9 and 11 forms, up to ``levels``.

    Cost: O(records x (instants + forms x letters)).

    >>> import numpy as np
    >>> encoded = Shapelets(word=2).encode(np.array([[0.0, 1, 2, 3, 3, 3, 3, 3], [0, 3, 3, 0, 0, 0, 0, 0]]))
    >>> encoded.texts(encoded.codes[2])
    ['ba', 'da']

    Reference: after Ye, Keogh: Time Series Shapelets (KDD 2009), with forms that are given instead of learned.
    """

    word: int | None = None
    levels: int = 9

    def __post_init__(self) -> None:
        Sax(word=self.word)  # the same bounds
        if not 1 <= self.levels <= len(FORMS):
            raise UsageError(f"`levels` must be 1 to {len(FORMS)}, found {self.levels}", where=self.use)

    def ladder(self) -> tuple[int, ...]:
        """The levels, coarsest first."""
        return tuple(level for level in LADDER if level <= self.levels)

    def encode(self, values: Floats) -> Encoded:
        """See :class:`Pattern`."""
        features = self.features(values)
        ladder = self.ladder()
        segments = features.shape[1] // POINTS
        part = features.reshape(len(values), segments, POINTS)
        far = np.stack([((part - form) ** 2).sum(axis=2) for form in FORMS])
        codes = np.empty((len(ladder), len(values)), np.int32)
        alphabet: list[NDArray[np.uint8]] = []
        for at, level in enumerate(ladder):
            # rounded, so that of equally near forms the first is taken everywhere
            letters = np.argmin(np.round(far[:level], DECIMALS), axis=0).astype(np.uint8)
            kinds, which = distinct(letters, level)
            codes[at] = which + sum(map(len, alphabet))
            alphabet.append(kinds)
        level_of = np.repeat(np.arange(len(ladder), dtype=np.int16), [len(a) for a in alphabet])
        every = np.concatenate(alphabet)

        def texts(words: Ids) -> list[str]:
            return ["".join(LETTERS[c] for c in word) for word in every[words].tolist()]

        def shapes(words: Ids) -> Floats:
            return FORMS[every[words]].reshape(len(words), -1)

        return Encoded(ladder, codes, features, level_of, texts, shapes)

    def features(self, values: Floats) -> Floats:
        """Four points of each segment of every normalized series, measured from where the segment begins."""
        from shoal.kernels.series import sax as kernels

        normal = np.empty_like(values)
        kernels.normalize(values, normal)
        instants = values.shape[1]
        segments = Sax(word=self.word).length(instants)
        out = np.empty((len(values), segments * POINTS))
        for segment in range(segments):
            begin = _read(normal, segment / segments * (instants - 1))
            for point in range(POINTS):
                at = (segment + (point + 1) / POINTS) / segments * (instants - 1)
                out[:, segment * POINTS + point] = _read(normal, at) - begin
        return np.round(out, DECIMALS) + 0.0

    def rebuild(self, level: int, words: Sequence[str]) -> Floats:
        """See :class:`Pattern`."""
        letters = np.array([[LETTERS.find(c) for c in word] for word in words], np.int64)
        if letters.size and (letters.min() < 0 or letters.max() >= level):
            raise UsageError(f"a word of level {level} has a letter that this level has not", where=self.use)
        return FORMS[letters].reshape(len(words), -1)

    def stretch(self, features: Floats, instants: int) -> Floats:
        """See :class:`Pattern`: each form begins where the last one ended."""
        segments = features.shape[1] // POINTS
        known = np.zeros((len(features), features.shape[1] + 1))
        base = np.zeros(len(features))
        for segment in range(segments):
            part = slice(segment * POINTS, (segment + 1) * POINTS)
            known[:, segment * POINTS + 1 : (segment + 1) * POINTS + 1] = features[:, part] + base[:, None]
            base = base + features[:, part.stop - 1]
        at = np.linspace(0, known.shape[1] - 1, instants) if instants > 1 else np.zeros(1)
        return np.stack([_read(known, where) for where in at.tolist()], axis=1)


def _read(rows: Floats, at: float) -> Floats:
    """The value of every row at a point between two columns."""
    left = min(int(at), rows.shape[1] - 1)
    right = min(left + 1, rows.shape[1] - 1)
    share = at - left
    out: Floats = rows[:, left] * (1 - share) + rows[:, right] * share
    return out
