"""Labels of many values at once, as bytes: shorter beginnings, and cells of a grid.

A label is a place in a buffer, ``begins`` and ``sizes`` of [value, level], most specific first. A size of ``NONE``
is no label, one of ``ASK`` in the first level says that the value is not of a form read here.
"""

import numpy as np

from shoal.kernels.compile import kernel

NONE, ASK = -1, -2
DIGITS = 15  # a number of so many digits is below 2^53, and it and its power of ten are exact: so is their quotient
TENS = np.array([float(10**at) for at in range(DIGITS + 1)])
PLACES, SHIFT = 5, 100_000  # decimals of a cell's corner
NEAR = 1e-6  # how near a tie rounding is left to exact arithmetic; the product below is off by 1e-8 at most
ZERO, DOT, PLUS, MINUS, COMMA, STAR = 48, 46, 43, 45, 44, 42


@kernel
def prefixes(data, starts, lengths, most, out, begins, sizes):
    """The first ``most`` characters, ``most`` - 1, …, filled with stars; a value that is short enough as it is."""
    to = 0
    for i in range(starts.size):
        chars = 0
        for at in range(lengths[i]):
            chars += (data[starts[i] + at] & 0xC0) != 0x80  # not the continuation of a character
        cut, have = lengths[i], chars
        for level in range(sizes.shape[1]):
            count = most - level
            while have > count:
                cut -= 1
                have -= (data[starts[i] + cut] & 0xC0) != 0x80
            begins[i, level] = to
            for at in range(cut):
                out[to] = data[starts[i] + at]
                to += 1
            if chars > count:
                for _ in range(level):
                    out[to] = STAR
                    to += 1
            sizes[i, level] = to - begins[i, level]


@kernel
def _number(data, start, end):
    """A plain decimal number, and whether it is one."""
    negative = start < end and data[start] == MINUS
    if start < end and (negative or data[start] == PLUS):
        start += 1
    value, digits, places, dots = np.int64(0), 0, 0, 0
    for at in range(start, end):
        digit = np.int64(data[at]) - ZERO
        if data[at] == DOT and dots == 0:
            dots = 1
        elif 0 <= digit <= 9 and digits < DIGITS:
            value = 10 * value + digit
            digits += 1
            places += dots
        else:
            return 0.0, False
    out = np.float64(value) / TENS[places]
    return -out if negative else out, digits > 0


@kernel
def positions(data, starts, lengths, latitude, longitude, plain):
    """Texts such as ``52.5,13.4``; ``plain`` says which are spelled so that they are read here."""
    for i in range(starts.size):
        end = starts[i] + max(lengths[i], 0)
        comma = starts[i]
        while comma < end and data[comma] != COMMA:
            comma += 1
        latitude[i], north = _number(data, starts[i], comma)
        longitude[i], east = _number(data, comma + 1, end)
        plain[i] = north and east


@kernel
def _write(value, out, to):
    """A number with five decimals; where it ends, and whether its rounding is beyond doubt."""
    scaled = abs(value) * SHIFT
    whole = np.floor(scaled)
    sure = abs(scaled - whole - 0.5) > NEAR
    number = np.int64(whole) + (scaled - whole > 0.5)
    if value < 0:
        out[to] = MINUS
        to += 1
    digits = PLACES + 1
    left = number // (SHIFT * 10)
    while left > 0:
        digits += 1
        left //= 10
    end = to + digits + 1
    for at in range(digits + 1):
        if at == PLACES:
            out[end - 1 - at] = DOT
        else:
            out[end - 1 - at] = ZERO + number % 10
            number //= 10
    return end, sure


@kernel
def cells(south, west, name, out, begins, sizes, level):
    """The names of cells, ``south,west`` and ``name``, as one level; returns where they end. Doubtful ones: ``ASK``."""
    to = np.int64(0)
    for i in range(south.size):
        begins[i, level] = to
        to, first = _write(south[i], out, to)
        out[to] = COMMA
        to, second = _write(west[i], out, to + 1)
        for at in range(name.size):
            out[to] = name[at]
            to += 1
        sizes[i, level] = to - begins[i, level]
        if not (first and second):
            sizes[i, 0] = ASK
    return to


@kernel
def steps(data, begins, sizes):
    """Leave out labels that repeat the one below them, so that a level is a real step."""
    for i in range(begins.shape[0]):
        kept = 0
        for level in range(begins.shape[1]):
            same = kept > 0 and sizes[i, level] == sizes[i, kept - 1]
            if same:
                for at in range(sizes[i, level]):
                    if data[begins[i, level] + at] != data[begins[i, kept - 1] + at]:
                        same = False
                        break
            if sizes[i, level] >= 0 and not same:
                begins[i, kept], sizes[i, kept] = begins[i, level], sizes[i, level]
                kept += 1
        sizes[i, kept:] = NONE
