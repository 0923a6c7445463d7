"""Texts where Arrow keeps them: views of sixteen bytes, and the buffers behind them.

A view is a length of four bytes and a text of up to twelve, or the length, four bytes of the text, its buffer and its
place there. ``handle`` is always the address of addresses and lengths: of the views, and of the buffers behind them.
"""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.address import bytes_at, words_at
from shoal.kernels.shared.fingerprint import fingerprint
from shoal.kernels.shared.words import get_word, put_word

_U = np.uint64
_ZERO, _ONE, _EIGHT = _U(0), _U(1), _U(8)
SHORT = 12  # bytes of a text that stands inside its view
SLACK = 16  # bytes that may be written behind the last text: short ones are copied by whole words


@kernel(inline="always")
def put_short(words, i, out, to):
    """The text inside view ``i``, and some bytes more; its first and its last word."""
    first, last = _U(words[2 * i]) >> _U(32), _U(words[2 * i + 1])
    put_word(out, to, first | last << _U(32))
    put_word(out, to + _EIGHT, last >> _U(32))
    return first | last << _U(32), last >> _U(32)


@kernel
def to_views(data, starts, lengths, views, behind):
    """Write views (two words each) of texts that lie apart in ``data``; long ones are copied into ``behind``.

    A length below 0 is a missing text. Returns how many bytes lie behind. O(bytes).
    """
    used, last = _ZERO, _U(data.size) - _U(min(data.size, 8))
    for i in range(starts.size):
        size, begin = _U(max(lengths[i], 0)), _U(starts[i])
        first, second = _ZERO, _ZERO
        if size <= _U(SHORT):
            if begin + _U(4) <= last:
                first = _masked(get_word(data, begin), size)
                second = _masked(get_word(data, begin + _U(4)), size - min(size, _U(4)))
            else:  # near the end of the data: nothing behind it may be read
                for z in range(size):
                    byte = _U(data[begin + _U(z)])
                    if z < 4:
                        first |= byte << (_EIGHT * _U(z))
                    else:
                        second |= byte << (_EIGHT * (_U(z) - _U(4)))
            first &= _U(0xFFFFFFFF)
        else:
            first, second = get_word(data, begin) & _U(0xFFFFFFFF), used << _U(32)
            end = used + size - _EIGHT
            # the last word may repeat some bytes of the one before it
            put_word(behind, end, get_word(data, begin + size - _EIGHT))
            while used < end:
                put_word(behind, used, get_word(data, begin))
                used += _EIGHT
                begin += _EIGHT
            used = end + _EIGHT
        views[2 * i], views[2 * i + 1] = np.int64(size | first << _U(32)), np.int64(second)
    return np.int64(used)


@kernel(inline="always")
def _masked(word, size):
    """The first ``size`` bytes of a word, zeros behind them."""
    return word if size >= _EIGHT else word & ((_ONE << (_EIGHT * size)) - _ONE)


@kernel
def from_views(handle, starts, lengths, out):
    """Copy texts to where each starts, in their order; ``out`` has SLACK bytes more than they need."""
    words = words_at(handle, 0)
    for i in range(starts.size):
        size = lengths[i]
        if size <= 0:
            continue
        to = _U(starts[i])
        if size <= SHORT:
            put_short(words, i, out, to)
        else:
            source = bytes_at(handle, 1 + (words[2 * i + 1] & 0xFFFFFFFF))
            begin = _U(words[2 * i + 1] >> 32)
            end = to + _U(size) - _EIGHT
            # the last word may repeat some bytes of the one before it
            put_word(out, end, get_word(source, begin + _U(size) - _EIGHT))
            while to < end:
                put_word(out, to, get_word(source, begin))
                to += _EIGHT
                begin += _EIGHT


@kernel
def view_prints(handle, lengths, key0, key1, out):
    """Fingerprints of texts where they lie; 0 for a length below 0. O(bytes)."""
    views, words = bytes_at(handle, 0), words_at(handle, 0)
    for i in range(lengths.size):
        size = lengths[i]
        if size < 0:
            out[i] = 0
        elif size <= SHORT:
            out[i] = fingerprint(views, 16 * i + 4, size, key0, key1)
        else:
            source = bytes_at(handle, 1 + (words[2 * i + 1] & 0xFFFFFFFF))
            out[i] = fingerprint(source, words[2 * i + 1] >> 32, size, key0, key1)
