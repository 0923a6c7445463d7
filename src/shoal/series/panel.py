"""Panels: several values per instant, each with a word of its own; together they are the pattern of a record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.series.input import Curves
from shoal.series.pattern import Encoded, Floats, Ids, Pattern

BETWEEN = " "  # the words of the values


class Panel(Pattern, frozen=True, tag="panel"):
    """The words of several values, one beside the other: P records share all of them at one level.

    Protects nothing by itself. How it works: the instants of each value stand side by side; each block is encoded by
    its own pattern of ``parts``, which must have the same levels.

    >>> from shoal.series.sax import Sax
    >>> encoded = Panel((Sax(levels=2), Sax(levels=2))).encode(np.array([[1.0, 2, 2, 1], [1, 2, 1, 2]]))
    >>> encoded.texts(encoded.codes[1])
    ['ab ba', 'ab ab']
    """

    parts: tuple[Pattern, ...]

    def encode(self, values: Floats) -> Encoded:
        """See :class:`Pattern`."""
        blocks = np.split(values, len(self.parts), axis=1)
        done = [part.encode(np.ascontiguousarray(block)) for part, block in zip(self.parts, blocks, strict=True)]
        levels = done[0].levels
        codes = np.empty((len(levels), len(values)), np.int32)
        kinds: list[Ids] = []  # per level the words of each value that occur together
        for at in range(len(levels)):
            found, which = np.unique(np.stack([one.codes[at] for one in done]), axis=1, return_inverse=True)
            codes[at] = which.reshape(-1) + sum(kind.shape[1] for kind in kinds)
            kinds.append(found)
        every = np.hstack(kinds)
        level_of = np.repeat(np.arange(len(levels), dtype=np.int16), [kind.shape[1] for kind in kinds])

        def texts(words: Ids) -> list[str]:
            parts = [one.texts(every[block, words]) for block, one in enumerate(done)]
            return [BETWEEN.join(word) for word in zip(*parts, strict=True)]

        def shapes(words: Ids) -> Floats:
            return np.hstack([one.shapes(every[block, words]) for block, one in enumerate(done)])

        return Encoded(levels, codes, np.hstack([one.features for one in done]), level_of, texts, shapes)

    def rebuild(self, level: int, words: Sequence[str]) -> Floats:
        """See :class:`Pattern`."""
        split = [word.split(BETWEEN) for word in words]
        return np.hstack([part.rebuild(level, [word[at] for word in split]) for at, part in enumerate(self.parts)])

    def stretch(self, features: Floats, instants: int) -> Floats:
        """See :class:`Pattern`."""
        each = instants // len(self.parts)
        widths = [part.encode(np.zeros((1, each))).features.shape[1] for part in self.parts]
        blocks = np.split(features, np.cumsum(widths)[:-1], axis=1)
        return np.hstack([part.stretch(block, each) for part, block in zip(self.parts, blocks, strict=True)])


def pattern_of(curves: Curves, pattern: Pattern, k: int, p: int) -> Pattern:
    """The pattern for these curves: of a panel one per value."""
    if not curves.variables:
        return pattern.fitted(curves.values, k, p)
    blocks = np.split(curves.values, len(curves.variables), axis=1)
    return Panel(tuple(pattern.fitted(np.ascontiguousarray(block), k, p) for block in blocks))


def comparable(curves: Curves) -> Floats:
    """Values to measure envelopes by: of a panel each variable as a share of its range, for they have other units."""
    if not curves.variables:
        return curves.values
    blocks = np.split(curves.values, len(curves.variables), axis=1)
    # a constant variable has no range to be divided by
    return np.hstack([block / (float(np.ptp(block)) or 1.0) for block in blocks])
