"""Slope words: how steeply each segment of a curve rises or falls."""

from __future__ import annotations

import numpy as np

from shoal.series.pattern import Floats
from shoal.series.sax import DECIMALS, Sax


class Slope(Sax, frozen=True, tag="slope"):
    """A letter per segment for the slope of the line that fits it best, low letters fall and high ones rise.

    Protects nothing by itself: it is what P records share. It tells where a curve rises and falls, not how high it is.

    How it works: each curve gets mean 0 and deviation 1; in each segment the least-squares slope is taken, divided by
    the root mean square of the curve's slopes, so that letters are about as likely as each other, and zero stays zero.
    Rebuilt, the lines are joined end to end.

    Cost: O(records x (instants + levels x letters)).

    >>> import numpy as np
    >>> encoded = Slope(word=2, levels=2).encode(np.array([[0.0, 1, 2, 3, 2, 1], [3, 2, 1, 0, 1, 2]]))
    >>> encoded.texts(encoded.codes[1])
    ['ba', 'ab']

    Reference: Guerrero-Mosquera et al. 2010 (trend as a symbol); Esmael et al. 2012 (value and slope letters).
    """

    def features(self, values: Floats) -> Floats:
        """The slopes of the segments of every normalized series, with root mean square 1."""
        from shoal.kernels.series import sax as kernels

        normal = np.empty_like(values)
        kernels.normalize(values, normal)
        segments = self.length(values.shape[1])
        out = np.empty((len(values), segments))
        for segment, (first, stop) in enumerate(_borders(values.shape[1], segments)):
            at = np.arange(first, stop) - (first + stop - 1) / 2
            total = np.zeros(len(values))
            for step, instant in zip(at.tolist(), range(first, stop), strict=True):  # in one fixed order
                total += step * normal[:, instant]
            out[:, segment] = total / (float((at**2).sum()) or 1.0)
        size = np.sqrt((out**2).mean(axis=1, keepdims=True))
        # a slope that is rounding noise is none
        scaled = np.divide(out, size, out=np.zeros_like(out), where=size > 10.0**-DECIMALS)
        rounded: Floats = np.round(scaled, DECIMALS) + 0.0
        return rounded

    def stretch(self, features: Floats, instants: int) -> Floats:
        """See :class:`Pattern`: a line per segment, each beginning where the last one ended."""
        out: Floats = np.zeros((len(features), instants))
        rise = np.zeros((len(features), instants))
        for segment, (first, stop) in enumerate(_borders(instants, features.shape[1])):
            rise[:, first:stop] = features[:, segment, None]
        for at in range(1, instants):
            # between two instants half of the way belongs to each segment
            out[:, at] = out[:, at - 1] + (rise[:, at - 1] + rise[:, at]) / 2
        return out


def _borders(instants: int, segments: int) -> list[tuple[int, int]]:
    """The instants of each segment, at least two where there are as many: a slope needs them."""
    out = []
    for segment in range(segments):
        first, stop = segment * instants // segments, (segment + 1) * instants // segments
        if stop - first < 2:
            first, stop = max(0, min(first, instants - 2)), min(instants, max(stop, first + 2))
        out.append((first, stop))
    return out
