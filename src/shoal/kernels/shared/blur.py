"""Texts blurred as they stand in JSON records, without becoming texts."""

import numpy as np

from shoal.kernels.compile import kernel

QUOTE = 34
NONE = -1  # the length of what is missing


@kernel
def blurred(data, begins, lengths, first, last, char, middle, out, ends, read):
    """Write each text blurred and in quotes; ``ends`` says where they end, after a zero. O(bytes).

    ``first`` and ``last`` characters stay; those between become as many times ``char``, or ``middle`` times if that is
    not below 0. Nothing is written, and nothing counts as ``read``, of a text beyond ASCII, or of a length below 0.
    """
    at = 0
    for i in range(begins.size):
        begin, size = begins[i], lengths[i]
        high = np.uint8(0)
        for z in range(begin, begin + size):
            high |= data[z]
        read[i] = size >= 0 and high < 128
        if read[i]:
            hidden = size - first - last
            short = hidden <= 0  # nothing would be left to hide: all of it is
            head, tail = (0, 0) if short else (first, last)
            inside = size - head - tail
            if middle >= 0:
                inside = first + middle + last if short else middle
            out[at] = QUOTE
            at += 1
            for z in range(begin, begin + head):
                out[at] = data[z]
                at += 1
            for _ in range(inside):
                out[at] = char
                at += 1
            for z in range(begin + size - tail, begin + size):
                out[at] = data[z]
                at += 1
            out[at] = QUOTE
            at += 1
        ends[i + 1] = at
    return at
