"""JSON lines of the plainest kind, read in one pass: an object per line, single values, texts without escapes.

Whatever is not of that kind is left to a decoder: the kernel says so and stops. Every loop ends at a line end, so data
must end with one.
"""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.words import TOPS, escapes, get_word

_U = np.uint64
_ZERO, _ONE, _EIGHT = _U(0), _U(1), _U(8)
NEWLINE, QUOTE, COMMA, MINUS, POINT, COLON, OPENS, CLOSES = 10, 34, 44, 45, 46, 58, 123, 125
INT, FLOAT, BOOL, TEXT = 0, 1, 2, 3
# a single value of any kind: SPELLED as its text (7.0 is 7), WRITTEN as JSON has it, quotes and all
SPELLED, WRITTEN = 4, 5
MISSING, DOUBTFUL = -1, -2
ODD, PASSED = -1, -1
PLUS = 43
_IN_TEXT = np.array([byte >= 32 and byte not in (QUOTE, 92) for byte in range(256)])
_BLANK = np.array([byte in (32, 9, 13) for byte in range(256)])
_WORDS = np.frombuffer(b"nullfalsetrue", np.uint8)
_TENS = 10.0 ** np.arange(23)  # each of them exact
_EXACT = _U(1) << _U(53)  # whole numbers up to here are exact
_SPLIT = 2.0**27 + 1  # parts a number into halves whose products are exact (Dekker 1971)
_KEYS = 64  # keys of a line whose columns are remembered: the next line mostly has the same


@kernel(inline="always")
def _beyond(data, at):
    """Behind the blanks."""
    while _BLANK[data[at]]:
        at += _ONE
    return at


@kernel
def decimal(digits, decimals):
    """``digits`` / 10^``decimals``, at most 22 of them, rounded as IEEE 754 asks; NaN where that is not certain.

    Large numerators are the sum of two numbers; the quotient is corrected by its own error.
    """
    by = _TENS[decimals]
    high = np.float64(digits)
    if digits <= _EXACT:
        return high / by  # both exact, so one division rounds once
    low = np.float64(np.int64(digits - _U(high)))
    first = high / by
    product = first * by
    a = _SPLIT * first
    a -= a - first
    b = _SPLIT * by
    b -= b - by
    error = ((a * b - product) + a * (by - b) + (first - a) * b) + (first - a) * (by - b)
    more = ((high - product) - error + low) / by
    found = first + more
    rest = more - (found - first)
    # too near to the middle between two numbers to tell which of them it is
    return found if abs(rest) < np.spacing(found) * 0.499999999 else np.nan


@kernel
def flat_lines(data, names, starts, kinds, values, numbers, lengths):
    """The number of lines read, and whether all was ASCII; ODD lines if one of them is not of the plain kind.

    ``names[starts[j] : starts[j + 1]]`` is the name of column j, ``kinds[j]`` its type. ``values[j, line]`` becomes
    where a text begins, or the number (a float in ``numbers``, which is the same memory); ``lengths[j, line]`` is
    the text's length, or MISSING. Of a value of any kind it is where its spelling begins; DOUBTFUL less its length, if
    an encoder might spell it otherwise. O(bytes).
    """
    at, size = _ZERO, _U(data.size)  # unsigned: a place that may be negative is checked at every step
    high = data[0]
    line = 0
    # keys of the line before, by their turn: where each began, its length, and the column it names
    before, longs, order = np.zeros(_KEYS, np.uint64), np.zeros(_KEYS, np.uint64), np.zeros(_KEYS, np.int64)
    turn = np.full(kinds.size, -1, np.int64)
    while at < size:
        lengths[:, line] = MISSING
        at = _beyond(data, at)
        if data[at] != OPENS:
            return ODD, False
        at = _beyond(data, at + _ONE)
        key, more = 0, data[at] != CLOSES
        while more:
            if data[at] != QUOTE:
                return ODD, False
            begin = at + _ONE
            # mostly the key of the line before, of a column or of none: then one look is enough
            at, column = _again(data, begin, before[key], longs[key]), order[key]
            if at == begin:
                at, high = _text(data, begin, high)
                column = _column(data, begin, at, names, starts)
                before[key], longs[key], order[key] = begin, at - begin, column
            if column >= 0:
                if turn[column] == line:
                    return ODD, False  # named twice
                turn[column] = line
            key = min(key + 1, _KEYS - 1)
            at = _beyond(data, at + _ONE) if data[at] == QUOTE else at
            if data[at] != COLON:
                return ODD, False
            at = _beyond(data, at + _ONE)
            begin = at
            if data[at] == QUOTE:
                begin = at + _ONE
                at, high = _text(data, begin, high)
                if data[at] != QUOTE or (column >= 0 and kinds[column] < TEXT):
                    return ODD, False
                if column >= 0:
                    quote = np.int64(kinds[column] == WRITTEN)
                    values[column, line] = np.int64(begin) - quote
                    lengths[column, line] = np.int64(at - begin) + 2 * quote
                at += _ONE
            elif column >= 0 and kinds[column] >= SPELLED:
                at, long = _single(data, at, kinds[column])
                if at == begin:
                    return ODD, False
                values[column, line] = np.int64(begin)
                lengths[column, line] = long
            elif data[at] == MINUS or 48 <= data[at] < 58:
                kind = kinds[column] if column >= 0 else np.int64(PASSED)
                at, whole, number = _number(data, at, kind)
                if at == begin:
                    return ODD, False
                if column >= 0:
                    lengths[column, line] = 0
                    if kind == FLOAT:
                        numbers[column, line] = number
                    else:
                        values[column, line] = whole
            else:
                at, word = _word(data, at)
                if at == begin or (word > 0 and column >= 0 and kinds[column] != BOOL):
                    return ODD, False
                if word > 0 and column >= 0:
                    lengths[column, line] = 0
                    values[column, line] = word - 1
            at = _beyond(data, at)
            more = data[at] == COMMA
            if more:
                at = _beyond(data, at + _ONE)
        if data[at] != CLOSES:
            return ODD, False
        at = _beyond(data, at + _ONE)
        if data[at] != NEWLINE:
            return ODD, False
        at += _ONE
        line += 1
    return line, high < 128


@kernel(inline="always")
def _again(data, begin, first, long):
    """Behind a key, if it is the one of this length that began at ``first``; else where it begins."""
    end, at = begin + long, begin
    if end + _EIGHT >= _U(data.size):
        return begin
    while at < end:
        other = get_word(data, at) ^ get_word(data, first + (at - begin))
        if end - at < _EIGHT:
            other &= (_ONE << (_EIGHT * (end - at))) - _ONE
        if other != _ZERO:
            return begin
        at += _EIGHT
    return end if data[end] == QUOTE else begin


@kernel(inline="always")
def _text(data, at, high):
    """Where a text ends that begins here: at its quote, or at what is not of the plain kind; and its bits together."""
    while at + _EIGHT < _U(data.size):
        word = get_word(data, at)
        if escapes(word) != _ZERO:
            break
        high |= np.uint8(128) if word & TOPS != _ZERO else np.uint8(0)
        at += _EIGHT
    while _IN_TEXT[data[at]]:
        high |= data[at]
        at += _ONE
    return at, high


@kernel(inline="always")
def _column(data, begin, end, names, starts):
    """Which column a key names, -1 if none."""
    long = end - begin
    for j in range(starts.size - 1):
        first = _U(starts[j])
        if _U(starts[j + 1]) - first != long:
            continue
        z = _ZERO
        while z < long and data[begin + z] == names[first + z]:
            z += _ONE
        if z == long:
            return j
    return -1


@kernel
def _number(data, at, kind):
    """Behind a number, and what it is as the kind asks; at its begin if a decoder has to look at it.

    What nobody asks for is only passed by.
    """
    odd = at, np.int64(0), 0.0
    minus = data[at] == MINUS
    if minus:
        at += _ONE
    begin, digits = at, _ZERO
    while 48 <= data[at] < 58:
        digits = digits * _U(10) + _U(data[at] - 48)
        at += _ONE
    count, decimals = at - begin, _ZERO
    if count == _ZERO or (count > _ONE and data[begin] == 48):
        return odd  # no digit, or a zero before others
    if data[at] == POINT:
        begin = at + _ONE
        at = begin
        while 48 <= data[at] < 58:
            digits = digits * _U(10) + _U(data[at] - 48)
            at += _ONE
        decimals = at - begin
        if decimals == _ZERO:
            return odd
    # e or E: an exponent. 18 digits fit; minus zero is zero to some readers
    if count + decimals > _U(18) or data[at] | 32 == 101 or (minus and digits == _ZERO):
        return odd
    if kind == PASSED:
        return at, np.int64(0), 0.0
    if kind == FLOAT:
        number = decimal(digits, decimals)
        return (at, np.int64(0), -number if minus else number) if number == number else odd
    if kind != INT or decimals > _ZERO:
        return odd
    return at, -np.int64(digits) if minus else np.int64(digits), 0.0


@kernel
def _word(data, at):
    """Behind null, false or true, and which it is (0, 1, 2); at its begin if it is none."""
    first = 0
    for word in range(3):
        long = 5 if word == 1 else 4
        z = 0
        while z < long and data[at + _U(z)] == _WORDS[first + z]:
            z += 1
        if z == long:
            return at + _U(long), word
        first += long
    return at, -1


@kernel
def _single(data, at, kind):
    """Behind a number or a word, and its length: DOUBTFUL less that where an encoder may spell it otherwise.

    Up to 15 digits are the shortest that name a float, so an encoder writes the same; below .0001 it writes exponents.
    At its begin if it is neither.
    """
    begin = at
    at, word = _word(data, at)
    if at > begin:
        return at, np.int64(at - begin) if word > 0 else np.int64(MISSING)
    if data[at] == MINUS:
        at += _ONE
    first = at
    while 48 <= data[at] < 58:
        at += _ONE
    count = at - first
    zero = data[first] == 48
    if count == _ZERO or (zero and count > _ONE):
        return begin, np.int64(0)
    whole, some = at, _ZERO
    sure = count <= _U(18)
    if data[at] == POINT:
        at += _ONE
        lead = _ZERO  # zeros before any other digit
        while 48 <= data[at] < 58:
            if data[at] != 48:
                some = at - whole  # up to here it is more than zeros
            elif some == _ZERO:
                lead += _ONE
            at += _ONE
        decimals = at - whole - _ONE
        if decimals == _ZERO:
            return begin, np.int64(0)
        if some == _ZERO:
            sure = count <= _U(15) and (kind == SPELLED or decimals == _ONE)
        else:
            sure = count + decimals <= _U(15) and some == decimals and not (zero and lead > _U(3))
    end = at
    if data[at] | 32 == 101:  # e or E: an exponent
        sure = False
        at += _ONE
        if data[at] == MINUS or data[at] == PLUS:
            at += _ONE
        last = at
        while 48 <= data[at] < 58:
            at += _ONE
        if at == last:
            return begin, np.int64(0)
    # minus zero is written in more than one way
    if not sure or (first > begin and zero and some == _ZERO):
        return at, np.int64(DOUBTFUL) - np.int64(at - begin)
    return at, np.int64((end if some > _ZERO or kind == WRITTEN else whole) - begin)
