"""JSON lines as bytes, beside the frame that a fast reader made of them: where the two may not say the same."""

import numpy as np

from shoal.kernels.compile import kernel

U = np.uint64
ZERO, ONE, TWO, THREE, FIVE = U(0), U(1), U(2), U(3), U(5)
NEWLINE, QUOTE, BACKSLASH, COLON = 10, 34, 92, 58
OPENS, CLOSES = (91, 123), (93, 125)  # [ and {, ] and }
BLANKS = (32, 9, 13)
ANOTHER, DOUBTFUL = -1, -2


@kernel
def odd_line(data, names, starts, columns, ascii_only, seen):
    """The first line that names a column twice, or has an object or a list there; -1 if none does.

    ``names[starts[j] : starts[j + 1]]`` is a spelling of column ``columns[j]``; ``seen`` has a -1 per column.
    A line whose keys are spelled so that only a decoder could tell which they are counts, too. O(bytes).
    """
    at, size = ZERO, U(data.size)  # unsigned: a place that may be negative is checked at every step
    line, depth = 0, 0
    while at < size:
        here = data[at]
        at += ONE
        if here == QUOTE:
            begin, escaped = at, False
            while at < size and data[at] != QUOTE and data[at] != NEWLINE:
                if data[at] == BACKSLASH:
                    escaped = True
                    at += ONE
                at += ONE
            if at >= size or data[at] == NEWLINE:
                return line
            end = at
            at = _beyond(data, at + ONE)
            if depth != 1 or at >= size or data[at] != COLON:
                continue  # a value, or a key of something inside
            column = _column(data, begin, end, escaped, names, starts, columns, ascii_only)
            if column == ANOTHER:
                continue
            at = _beyond(data, at + ONE)
            if column == DOUBTFUL or seen[column] == line or (at < size and data[at] in OPENS):
                return line
            seen[column] = line
        elif here == NEWLINE:
            line += 1
            depth = 0
        elif here in OPENS:
            depth += 1
        elif here in CLOSES:
            depth -= 1
    return -1


@kernel(inline="always")
def _beyond(data, at):
    """Behind the blanks."""
    while at < U(data.size) and data[at] in BLANKS:
        at += ONE
    return at


@kernel
def _column(data, begin, end, escaped, names, starts, columns, ascii_only):
    """Which column a key names."""
    long = end - begin
    for j in range(columns.size):
        first = U(starts[j])
        if U(starts[j + 1]) - first != long:
            continue
        z = ZERO
        while z < long and data[begin + z] == names[first + z]:
            z += ONE
        if z == long:
            return columns[j]
    if escaped:
        for z in range(begin, end):
            # beyond ASCII nothing can be meant where all names are ASCII: \u0080 and above
            if data[z] == BACKSLASH and not (ascii_only and z + FIVE < end and _is_beyond_ascii(data, z + ONE)):
                return DOUBTFUL
    return ANOTHER


@kernel
def _is_beyond_ascii(data, at):
    """Whether ``uXXXX`` is a character beyond ASCII: not one that begins with 00 and a digit below 8."""
    return data[at] == 117 and not (data[at + ONE] == 48 and data[at + TWO] == 48 and 48 <= data[at + THREE] < 56)
