"""Texts that lie apart in one buffer, copied one behind the other."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.address import bytes_at, words_at

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


@kernel
def from_views(handle, starts, lengths, out):
    """Copy texts that stand in Arrow's views, or behind them, to where each starts.

    ``handle`` is the address of addresses and lengths: of the views, and of the buffers behind them. A view is a length
    of four bytes and a text of up to twelve, or the length, four bytes of the text, its buffer and its place there.
    """
    views = bytes_at(handle, 0)
    words = words_at(handle, 0)
    for i in range(starts.size):
        size = lengths[i]
        if size <= 0:
            continue
        to = _U(starts[i])
        if size <= 12:
            begin = _U(16 * i + 4)
            for z in range(_U(size)):
                out[to + _U(z)] = views[begin + _U(z)]
        else:
            source = bytes_at(handle, 1 + (words[2 * i + 1] & 0xFFFFFFFF))
            begin = _U(words[2 * i + 1] >> 32)
            for z in range(_U(size)):
                out[to + _U(z)] = source[begin + _U(z)]
