"""How far a rebuilt shape is from the true one."""

import numpy as np

from shoal.kernels.compile import kernel


@kernel()
def correlation_loss(series, shapes, which, out):
    """1 - Pearson correlation of each row of ``series`` with ``shapes[which]``, into ``out``.

    This is the cosine distance of all pairwise differences (Shou et al.) without building the pairs: O(n), not
    O(n²). A constant has no shape: 1 beside a shape, 0 beside another constant.
    """
    n, m = series.shape
    for row in range(n):
        mean_a = 0.0
        mean_b = 0.0
        flat_a = True
        flat_b = True
        shape = shapes[which[row]]
        for i in range(m):
            mean_a += series[row, i]
            mean_b += shape[i]
            flat_a = flat_a and series[row, i] == series[row, 0]
            flat_b = flat_b and shape[i] == shape[0]
        if flat_a or flat_b:
            out[row] = 0.0 if flat_a and flat_b else 1.0
            continue
        mean_a /= m
        mean_b /= m
        both = 0.0
        square_a = 0.0
        square_b = 0.0
        for i in range(m):
            a = series[row, i] - mean_a
            b = shape[i] - mean_b
            both += a * b
            square_a += a * a
            square_b += b * b
        # rounding must not give a loss below nothing
        out[row] = min(2.0, max(0.0, 1.0 - both / (np.sqrt(square_a) * np.sqrt(square_b))))
