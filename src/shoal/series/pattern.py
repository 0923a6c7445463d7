"""The seam of all patterns: encode series at every level, rebuild a shape from a word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.core.spec import Spec

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]
Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Encoded:
    """Series as words: ``codes[i, record]`` is the word of a record at the i-th level, a number no other level uses.

    ``levels`` are the levels as published, coarsest first; at the coarsest all records have one word. A method sees
    only these integers, so any pattern that can be compared for equality will do. ``features`` is the pattern
    itself, p(r) of the paper, which a rebuilt shape is compared with.
    """

    levels: tuple[int, ...]
    codes: Ids
    features: Floats
    level_of: NDArray[np.int16]  # the position in `levels` of every word
    make_texts: Callable[[Ids], list[str]]
    make_shapes: Callable[[Ids], Floats]

    @property
    def words(self) -> int:
        """Number of different (level, word) pairs."""
        return len(self.level_of)

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.codes.shape[1])

    def texts(self, words: Ids) -> list[str]:
        """The published text of words."""
        return self.make_texts(words)

    def published_levels(self, words: Ids) -> NDArray[np.int16]:
        """The published level of words."""
        return np.array(self.levels, np.int16)[self.level_of[words]]

    def shapes(self, words: Ids) -> Floats:
        """The features that words stand for."""
        return self.make_shapes(words)

    def losses(self) -> Floats:
        """The pattern loss of every record at every level, if it publishes its own word there."""
        from shoal.kernels.series.shape import correlation_loss

        out = np.empty(self.codes.shape)
        for at in range(len(self.levels)):
            words, which = np.unique(self.codes[at], return_inverse=True)
            correlation_loss(self.features, self.shapes(words.astype(np.int32)), which, out[at])
        return out


class Pattern(Spec, frozen=True):
    """What of a curve is kept: words at several levels, from one word for all to as fine as is allowed.

    A subclass encodes series and rebuilds shapes from what is published: the level and the word, nothing else.

    >>> from shoal.series.sax import Sax
    >>> isinstance(Sax(), Pattern), Sax().encode(np.array([[0.0, 1.0, 2.0, 3.0]])).size
    (True, 1)
    """

    def fitted(self, values: Floats, k: int, p: int) -> Pattern:
        """The pattern to encode these curves with, for groups of ``k`` and subgroups of ``p``: itself, or a choice."""
        return self

    def encode(self, values: Floats) -> Encoded:
        """The words of every row of ``values`` at every level."""
        raise NotImplementedError

    def rebuild(self, level: int, words: Sequence[str]) -> Floats:
        """The features that published words of one level stand for, a row each."""
        raise NotImplementedError

    def stretch(self, features: Floats, instants: int) -> Floats:
        """Features as a curve over all instants."""
        raise NotImplementedError
