"""JSON records of the plainest kind as cells, and cells as JSON records again: no value becomes an object on the way.

A cell is where a value stands in the records, and its form. Only values whose spelling is the one a decoder followed by
an encoder would give are taken; every other record is left to those two. Data must end with a line end.
"""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.json_flat import (
    BOOL,
    CLOSES,
    COLON,
    COMMA,
    FLOAT,
    INT,
    MINUS,
    NEWLINE,
    OPENS,
    POINT,
    QUOTE,
    TEXT,
    _again,
    _beyond,
    _column,
    _text,
    _word,
)

ANY, UNASKED = 4, 5  # kinds beside those of json_flat: any single value; a name nobody asked for
NULL, QUOTED, SPELLED, WHOLE = 0, 1, 2, 3  # forms: nothing; a text; as it is spelled; a whole number that is a float
FIXED, CLEAR, GIVEN, ANSWER = 0, 1, 2, 3  # fields: nothing but fixed bytes; a cell; fixed unless null; an answer
UNKNOWN, ABSENT, PASSING = -1, -2, -3
_U = np.uint64
_ZERO, _ONE = _U(0), _U(1)
_KEYS = 64  # keys of a line whose columns are remembered: the next line mostly has the same
_DIGITS = 15  # so many fit into a double, so the shortest spelling of the double is this one
_INTEGER = 18  # digits that fit into 64 bits, whatever they are
_WORD = np.frombuffer(b"null.0", np.uint8)
_PRIME = _U(1099511628211)


@kernel
def cells_of(data, names, starts, kinds, begins, lengths, forms):
    """The number of lines read before the end or before one that is not of the plain kind, and whether all was ASCII.

    ``names[starts[j] : starts[j + 1]]`` is the name of column j, ``kinds[j]`` its type; ``begins``, ``lengths`` and
    ``forms`` have a row per line and a column per name. O(bytes).
    """
    at, size = _ZERO, _U(data.size)  # unsigned: a place that may be negative is checked at every step
    high = np.uint8(0)
    line = 0
    # keys of the line before, by their turn: where each began, its length, and the column it names
    before, longs, order = np.zeros(_KEYS, np.uint64), np.zeros(_KEYS, np.uint64), np.zeros(_KEYS, np.int64)
    turn = np.full(kinds.size, -1, np.int64)
    while at < size:
        forms[line] = NULL
        at = _beyond(data, at)
        if data[at] != OPENS:
            return line, high < 128
        at = _beyond(data, at + _ONE)
        key, more = 0, data[at] != CLOSES
        while more:
            if data[at] != QUOTE:
                return line, high < 128
            begin = at + _ONE
            at, column = _again(data, begin, before[key], longs[key]), order[key]
            if at == begin:
                at, high = _text(data, begin, high)
                column = _column(data, begin, at, names, starts)
                before[key], longs[key], order[key] = begin, at - begin, column
            kind = np.int64(UNASKED)
            if column >= 0:
                if turn[column] == line:
                    return line, high < 128  # named twice
                turn[column] = line
                kind = kinds[column]
            key = min(key + 1, _KEYS - 1)
            at = _beyond(data, at + _ONE) if data[at] == QUOTE else at
            if data[at] != COLON:
                return line, high < 128
            at = _beyond(data, at + _ONE)
            begin = at
            if data[at] == QUOTE:
                begin = at + _ONE
                at, high = _text(data, begin, high)
                if data[at] != QUOTE or not (kind == TEXT or kind >= ANY):
                    return line, high < 128
                form, end = QUOTED, at
                at += _ONE
            elif data[at] == MINUS or 48 <= data[at] < 58:
                at, form = _spelled(data, at, kind)
                end = at
                if form == NULL:
                    return line, high < 128
            else:
                at, word = _word(data, at)
                end = at
                form = SPELLED if word > 0 else NULL
                if at == begin or (word > 0 and kind != BOOL and kind < ANY):
                    return line, high < 128
            if column >= 0:
                begins[line, column] = np.int64(begin)
                lengths[line, column] = np.int64(end - begin)
                forms[line, column] = form
            at = _beyond(data, at)
            more = data[at] == COMMA
            if more:
                at = _beyond(data, at + _ONE)
        if data[at] != CLOSES:
            return line, high < 128
        at = _beyond(data, at + _ONE)
        if data[at] != NEWLINE:
            return line, high < 128
        at += _ONE
        line += 1
    return line, high < 128


@kernel
def _spelled(data, at, kind):
    """Behind a number, and its form as the kind asks; NULL if a decoder has to look at it."""
    odd = at, NULL
    minus = data[at] == MINUS
    if minus:
        at += _ONE
    begin, zero = at, True
    while 48 <= data[at] < 58:
        zero &= data[at] == 48
        at += _ONE
    count, decimals, usual = at - begin, _ZERO, True
    if count == _ZERO or (count > _ONE and data[begin] == 48):
        return odd  # no digit, or a zero before others
    if data[at] == POINT:
        point = at + _ONE
        # an encoder may write what is below 0.001 with an exponent
        usual = not zero or data[point] != 48 or data[point + _ONE] != 48
        at = point
        while 48 <= data[at] < 58:
            zero &= data[at] == 48
            at += _ONE
        decimals = at - point
        if decimals == _ZERO:
            return odd
        usual &= data[at - _ONE] != 48 or decimals == _ONE  # 1.10 is written as 1.1
    if data[at] | 32 == 101:  # e or E: an exponent
        return odd
    if kind == UNASKED:
        return at, SPELLED
    if kind == TEXT or kind == BOOL or not usual or (minus and zero):  # minus zero is zero to some
        return odd
    if decimals == _ZERO and kind != FLOAT:
        return (at, SPELLED) if count <= _U(_INTEGER) else odd
    if kind == INT or count + decimals > _U(_DIGITS):
        return odd
    return at, WHOLE if decimals == _ZERO else SPELLED


@kernel
def look_up(data, begins, lengths, forms, column, basis, slots, prints, keys, ends, found):
    """The entry of each line's cell among known values, UNKNOWN, or ABSENT where there is no value.

    ``slots`` holds entries by hash (a power of two of them, UNKNOWN where there is none), ``prints`` their hashes,
    ``keys[ends[e] : ends[e + 1]]`` their values. ``basis`` is drawn anew by each process, so that nobody can send
    values that all fall into one place. O(lines).
    """
    mask = _U(slots.size - 1)
    for line in range(found.size):
        if forms[line, column] == NULL:
            found[line] = ABSENT
            continue
        begin, long = begins[line, column], lengths[line, column]
        mark = hashed(data, begin, long, basis)
        place = mark & mask
        found[line] = UNKNOWN
        while slots[place] != UNKNOWN:
            entry = slots[place]
            if prints[entry] == mark and ends[entry + 1] - ends[entry] == long:
                z = 0
                while z < long and keys[ends[entry] + z] == data[begin + z]:
                    z += 1
                if z == long:
                    found[line] = entry
                    break
            place = (place + _ONE) & mask


@kernel
def learn(keys, ends, first, last, basis, slots, prints):
    """Put entries ``first`` to ``last`` where :func:`look_up` finds them."""
    mask = _U(slots.size - 1)
    for entry in range(first, last):
        mark = hashed(keys, ends[entry], ends[entry + 1] - ends[entry], basis)
        prints[entry] = mark
        place = mark & mask
        while slots[place] != UNKNOWN:
            place = (place + _ONE) & mask
        slots[place] = entry


@kernel
def hashed(data, begin, long, basis):
    """A hash of some bytes (FNV-1a, its high bits mixed into the low ones)."""
    mark = basis
    for z in range(begin, begin + long):
        mark = (mark ^ _U(data[z])) * _PRIME
    return mark ^ (mark >> _U(29))


@kernel
def measured(begins, lengths, forms, lines, fields, fixed_ends, found, answer_ends):
    """How many bytes :func:`write` will write."""
    total = fixed_ends[fields.shape[0] + 1] * lines
    for f in range(fields.shape[0]):
        how, column, which = fields[f]
        if how == FIXED:
            continue
        for line in range(lines):
            if how == CLEAR:
                form = forms[line, column]
                total += 4 if form == NULL else lengths[line, column] + (2 if form == QUOTED or form == WHOLE else 0)
                continue
            entry = which
            if how == ANSWER:
                entry = found[which, line]
            elif forms[line, column] == NULL:
                entry = ABSENT
            total += 4 if entry == ABSENT else answer_ends[entry + 1] - answer_ends[entry]
    return total


@kernel
def write(data, begins, lengths, forms, lines, fields, fixed, fixed_ends, found, answers, answer_ends, out, sizes):
    """All lines of one role: the fixed bytes before each field, the field, and the fixed bytes of the end.

    ``fields[f]`` says how, which column, and which answer (of a constant) or row of ``found`` (of a mask); ``sizes``
    gets the length of each line without its end. O(bytes).
    """
    at = 0
    count = fields.shape[0]
    for line in range(lines):
        begun = at
        for f in range(count):
            at = _copy(fixed, fixed_ends[f], fixed_ends[f + 1], out, at)
            how, column, which = fields[f]
            if how == CLEAR:
                form, begin = forms[line, column], begins[line, column]
                if form == NULL:
                    at = _copy(_WORD, 0, 4, out, at)
                    continue
                if form == QUOTED:
                    out[at] = QUOTE
                    at += 1
                at = _copy(data, begin, begin + lengths[line, column], out, at)
                if form == QUOTED:
                    out[at] = QUOTE
                    at += 1
                elif form == WHOLE:
                    at = _copy(_WORD, 4, 6, out, at)
            elif how != FIXED:
                entry = which
                if how == ANSWER:
                    entry = found[which, line]
                elif forms[line, column] == NULL:
                    entry = ABSENT
                if entry == ABSENT:
                    at = _copy(_WORD, 0, 4, out, at)
                else:
                    at = _copy(answers, answer_ends[entry], answer_ends[entry + 1], out, at)
        at = _copy(fixed, fixed_ends[count], fixed_ends[count + 1], out, at)
        sizes[line] = at - begun - 1
    return at


@kernel(inline="always")
def _copy(source, begin, end, out, at):
    for z in range(begin, end):
        out[at] = source[z]
        at += 1
    return at
