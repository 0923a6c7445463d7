"""Texts that lie apart in one buffer, copied one behind the other."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.words import get_word, put_word

_U = np.uint64
_ZERO, _ONE, _EIGHT = _U(0), _U(1), _U(8)


@kernel
def gathered(data, starts, lengths, offsets, out):
    """Copy texts one behind the other; ``offsets`` are where each ends. One of a length below 0 has no bytes."""
    to = _ZERO
    for i in range(starts.size):
        begin, end = _U(starts[i]), to + _U(max(lengths[i], 0))
        while to + _EIGHT <= end:
            put_word(out, to, get_word(data, begin))
            to += _EIGHT
            begin += _EIGHT
        while to < end:
            out[to] = data[begin]
            to += _ONE
            begin += _ONE
        offsets[i + 1] = np.int64(to)
