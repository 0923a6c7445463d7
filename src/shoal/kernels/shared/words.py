"""Eight bytes at a time: read, written and looked at as one number."""

import numpy as np

from shoal.kernels.compile import kernel

_U = np.uint64
_EVERY = _U(0x0101010101010101)
TOPS = _U(0x8080808080808080)  # the highest bit of each byte


@kernel(inline="always")
def get_word(data, at):
    """Eight bytes as a number. Spelled out with unsigned places, so that the compiler makes one load of it."""
    return (
        _U(data[at])
        | _U(data[at + _U(1)]) << _U(8)
        | _U(data[at + _U(2)]) << _U(16)
        | _U(data[at + _U(3)]) << _U(24)
        | _U(data[at + _U(4)]) << _U(32)
        | _U(data[at + _U(5)]) << _U(40)
        | _U(data[at + _U(6)]) << _U(48)
        | _U(data[at + _U(7)]) << _U(56)
    )


@kernel(inline="always")
def put_word(out, at, word):
    """Eight bytes of a number; one store, likewise."""
    out[at] = np.uint8(word)
    out[at + _U(1)] = np.uint8(word >> _U(8))
    out[at + _U(2)] = np.uint8(word >> _U(16))
    out[at + _U(3)] = np.uint8(word >> _U(24))
    out[at + _U(4)] = np.uint8(word >> _U(32))
    out[at + _U(5)] = np.uint8(word >> _U(40))
    out[at + _U(6)] = np.uint8(word >> _U(48))
    out[at + _U(7)] = np.uint8(word >> _U(56))


@kernel(inline="always")
def escapes(word):
    """Not zero if one of the eight bytes is a quote, a backslash or a control character.

    A byte minus what it is compared with borrows from its highest bit only if it is less; bytes above 127 are none.
    """
    quote, slash = word ^ (_U(34) * _EVERY), word ^ (_U(92) * _EVERY)
    found = ((word - _U(32) * _EVERY) & ~word) | ((quote - _EVERY) & ~quote) | ((slash - _EVERY) & ~slash)
    return found & TOPS
