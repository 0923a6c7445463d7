"""Dynamic time warping: the distance of two curves when time may run faster or slower."""

import numpy as np

from shoal.kernels.compile import kernel


@kernel()
def warped(series, query, band, out):
    """The root of the least sum of squared differences over all ways to align each row with ``query``, into ``out``.

    An instant is aligned with instants at most ``band`` away (Sakoe and Chiba); a band of 0 is the Euclidean distance.
    """
    n, m = series.shape
    before = np.empty(m + 1)
    here = np.empty(m + 1)
    for row in range(n):
        before[:] = np.inf
        before[0] = 0.0
        for i in range(m):
            here[:] = np.inf
            for j in range(max(0, i - band), min(m, i + band + 1)):
                gap = series[row, i] - query[j]
                here[j + 1] = gap * gap + min(before[j], before[j + 1], here[j])
            before, here = here, before
        out[row] = np.sqrt(before[m])
