"""Texts that lie apart in one buffer, copied one behind the other."""

import numpy as np

from shoal.kernels.compile import kernel

_U = np.uint64
_ZERO, _ONE = _U(0), _U(1)


@kernel
def gathered(data, starts, lengths, offsets, out):
    """Copy texts one behind the other; ``offsets`` are where each ends. One of a length below 0 has no bytes."""
    to = _ZERO
    for i in range(starts.size):
        begin = _U(starts[i])
        for z in range(_U(max(lengths[i], 0))):
            out[to] = data[begin + _U(z)]
            to += _ONE
        offsets[i + 1] = np.int64(to)
