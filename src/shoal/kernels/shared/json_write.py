"""Rows of texts and numbers as JSON lines, copied word by word from where Arrow keeps their texts.

A text that needs an escape is left to a writer that knows them: the kernel says so and stops.
"""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.address import bytes_at, words_at
from shoal.kernels.shared.views import SHORT, put_short
from shoal.kernels.shared.words import escapes, get_word, put_word

_U = np.uint64
_ZERO, _ONE, _EIGHT = _U(0), _U(1), _U(8)
_PLAIN = _U(0x6161616161616161)  # eight times a letter
QUOTE, CLOSES, NEWLINE = 34, 125, 10
ESCAPES = -1
_NULL = np.frombuffer(b"null", np.uint8)


@kernel(inline="always")
def _first(word, size):
    """The first ``size`` bytes of a word, letters behind them."""
    if size >= 8:
        return word
    mask = (_ONE << (_EIGHT * _U(max(size, 0)))) - _ONE
    return (word & mask) | (_PLAIN & ~mask)


@kernel
def json_rows(handles, lengths, quoted, heads, starts, out, sizes):
    """Write rows as JSON lines; how many bytes, or ESCAPES if a text needs an escape. O(bytes).

    Column j's texts are at ``handles[j]``, ``lengths[j, i]`` bytes each, below 0 where missing; ``quoted[j]`` says
    whether they are texts in JSON, too, or stand as they are. ``heads[starts[j] : starts[j + 1]]`` stands before
    each of them. Behind both ``heads`` and what is written to ``out`` there are SLACK bytes more. ``sizes`` becomes the
    length of each line without its end.
    """
    at, odd = _ZERO, _ZERO
    for i in range(lengths.shape[1]):
        begun = at
        for j in range(lengths.shape[0]):
            asked = ~_ZERO if quoted[j] else _ZERO
            head, size = at, _U(starts[j + 1] - starts[j])
            while at < head + size:
                put_word(out, at, get_word(heads, _U(starts[j]) + at - head))
                at += _EIGHT
            at = head + size
            size = lengths[j, i]
            if size < 0:
                for z in range(4):
                    out[at] = _NULL[z]
                    at += _ONE
                continue
            if quoted[j]:
                out[at] = QUOTE
                at += _ONE
            words = words_at(handles[j], 0)
            if size <= SHORT:
                low, high = put_short(words, i, out, at)
                odd |= (escapes(_first(low, size)) | escapes(_first(high, size - 8))) & asked
                at += _U(size)
            else:
                source = bytes_at(handles[j], 1 + (words[2 * i + 1] & 0xFFFFFFFF))
                begin = _U(words[2 * i + 1] >> 32)
                end = at + _U(size) - _EIGHT
                # the last word may repeat some bytes of the one before it
                word = get_word(source, begin + _U(size) - _EIGHT)
                put_word(out, end, word)
                odd |= escapes(word) & asked
                while at < end:
                    word = get_word(source, begin)
                    put_word(out, at, word)
                    odd |= escapes(word) & asked
                    at += _EIGHT
                    begin += _EIGHT
                at = end + _EIGHT
            if quoted[j]:
                out[at] = QUOTE
                at += _ONE
        out[at] = CLOSES
        out[at + _ONE] = NEWLINE
        at += _U(2)
        sizes[i] = np.int64(at - begun) - 1
        if odd != _ZERO:
            return ESCAPES
    return np.int64(at)
