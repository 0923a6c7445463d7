"""Symbolic aggregate approximation: normalize each series, average its segments, find the letter of each average.

Sums run in one fixed order (no matrix product): a letter must not depend on the machine that found it.
"""

import numpy as np

from shoal.kernels.compile import kernel


@kernel()
def normalize(values, out):
    """Each row of ``values`` with mean 0 and (population) deviation 1 into ``out``; a constant row becomes 0."""
    n, instants = values.shape
    for row in range(n):
        low = values[row, 0]
        high = values[row, 0]
        total = 0.0
        for i in range(instants):
            total += values[row, i]
            low = min(low, values[row, i])
            high = max(high, values[row, i])
        mean = total / instants
        square = 0.0
        for i in range(instants):
            square += (values[row, i] - mean) ** 2
        deviation = np.sqrt(square / instants)
        # the extremes decide: the rounded mean of equal numbers may differ from them by a hair
        flat = low == high or deviation == 0.0
        for i in range(instants):
            out[row, i] = 0.0 if flat else (values[row, i] - mean) / deviation


@kernel()
def segment_means(values, out):
    """The mean of each of ``out.shape[1]`` equal segments; an instant on a border counts by its share in each."""
    n, instants = values.shape
    segments = out.shape[1]
    for row in range(n):
        for segment in range(segments):
            # in units of 1/segments of an instant all borders are whole numbers, so shares are exact
            start = segment * instants
            stop = start + instants
            first = start // segments
            last = (stop - 1) // segments
            total = 0.0
            for i in range(first, last + 1):
                share = min(stop, (i + 1) * segments) - max(start, i * segments)
                total += share * values[row, i]
            out[row, segment] = total / instants


@kernel()
def letters(features, breakpoints, out):
    """The number of ``breakpoints`` at or below each feature: intervals are closed below, ``[b, next b)``."""
    n, segments = features.shape
    count = len(breakpoints)
    for row in range(n):
        for segment in range(segments):
            letter = 0
            while letter < count and features[row, segment] >= breakpoints[letter]:
                letter += 1
            out[row, segment] = letter
