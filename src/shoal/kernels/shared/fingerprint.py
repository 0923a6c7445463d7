"""Keyed 64-bit fingerprints of texts (SipHash-2-4, Aumasson and Bernstein 2012), and distinct fingerprints.

Texts come as one buffer of bytes with their starts and lengths. Without the 128-bit key nobody can test a
fingerprint for a name. Zero means "none" everywhere, so a fingerprint is never zero.
"""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.address import bytes_at, words_at
from shoal.kernels.shared.words import get_word

MOST_STEPS = 4096  # of a path that are looked at
_U = np.uint64
_M0, _M1 = _U(0x736F6D6570736575), _U(0x646F72616E646F6D)
_M2, _M3 = _U(0x6C7967656E657261), _U(0x7465646279746573)


@kernel(inline="always")
def _turn(x, by):
    return (x << _U(by)) | (x >> _U(64 - by))


@kernel(inline="always")
def _round(a, b, c, d):
    a = a + b
    c = c + d
    b = _turn(b, 13) ^ a
    d = _turn(d, 16) ^ c
    a = _turn(a, 32) + d
    c = c + b
    d = _turn(d, 21) ^ a
    b = _turn(b, 17) ^ c
    c = _turn(c, 32)
    return a, b, c, d


@kernel
def fingerprint(data, start, length, key0, key1):
    """The fingerprint of ``data[start : start + length]``."""
    a, b, c, d = key0 ^ _M0, key1 ^ _M1, key0 ^ _M2, key1 ^ _M3
    at = _U(start)
    end = at + _U(length - length % 8)
    while at < end:
        word = get_word(data, at)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a ^= word
        at += _U(8)
    # the length is part of the last word, so that texts which differ by zero bytes at their end differ
    word = _U(length & 0xFF) << _U(56)
    for j in range(length % 8):
        word |= _U(data[at + _U(j)]) << _U(8 * j)
    d ^= word
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= word
    c ^= _U(0xFF)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    out = np.int64(a ^ b ^ c ^ d)
    # zero means none; that one text in 2^64 shares its print with another is within the error of any print
    return out if out != 0 else np.int64(1)


@kernel
def fingerprints(data, starts, lengths, key0, key1, out):
    """Fingerprints of many texts into ``out``; a negative length gives 0. O(bytes)."""
    for i in range(starts.size):
        out[i] = 0 if lengths[i] < 0 else fingerprint(data, starts[i], lengths[i], key0, key1)


@kernel
def distinct(prints, codes, first):
    """Number equal fingerprints alike, in order of appearance; 0 gets code -1. Returns how many. O(n) expected."""
    capacity = 16
    shift = 28
    # at most half full: probes of one or two slots on average
    while capacity < 2 * prints.size:
        capacity *= 2
        shift -= 1
    table = np.full(capacity, -1, np.int32)
    mask = capacity - 1
    count = 0
    for i in range(prints.size):
        p = prints[i]
        if p == 0:
            codes[i] = -1
            continue
        # prints are random, but numbers of events stand for people, too: runs of those would lie upon each other
        slot = (((p & 0x7FFFFFFF) * 2654435769) & 0xFFFFFFFF) >> max(shift, 0)
        while table[slot] >= 0 and prints[first[table[slot]]] != p:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            first[count] = i
            count += 1
        codes[i] = table[slot]
    return count


@kernel
def path_cuts(data, starts, lengths, separator, depth, reverse, cuts):
    """Where the labels of paths end, most specific first: ``cuts[i, level]`` bytes are kept, 0 for none.

    ``depth`` steps are kept at most (0: all). Of a path with more steps than ``cuts`` has columns, the whole and
    the most general ones are kept. Returns the most steps seen.
    """
    most = 0
    ends = np.empty(MOST_STEPS, np.int64)
    for i in range(starts.size):
        cuts[i, :] = 0
        most = max(most, _cut(data, starts[i], lengths[i], separator, depth, reverse, ends, cuts[i]))
    return most


@kernel
def _cut(data, start, length, separator, depth, reverse, ends, cuts):
    """The cuts of one path; how many steps it has."""
    if length <= 0:
        return 0
    size = separator.size
    # every place where a step ends, most general first
    steps = 0
    at = 0
    while at + size <= length and steps < ends.size - 1:
        place = start + (length - size - at if reverse else at)
        same = True
        for j in range(size):
            if data[place + j] != separator[j]:
                same = False
                break
        if same:
            ends[steps] = at
            steps += 1
            at += size
        else:
            at += 1
    ends[steps] = length
    steps += 1
    if depth > 0 and steps > depth:
        steps = depth
    level = 0
    for s in range(steps - 1, -1, -1):
        # an empty step at the front names nothing, and too long a path loses steps from its middle
        if ends[s] > 0 and (s == steps - 1 or s < cuts.size - 1):
            cuts[level] = ends[s]
            level += 1
    return steps


@kernel
def print_next(address, length):
    """The fingerprint of the text at hand: the first ``length`` bytes of array 0, under the key in array 1."""
    keys = words_at(address, 1)
    return fingerprint(bytes_at(address, 0), 0, length, _U(keys[0]), _U(keys[1]))


@kernel
def prints_next(address, length):
    """The fingerprints (array 2) of the texts at hand, a zero byte between them; how many."""
    data, keys, prints = bytes_at(address, 0), words_at(address, 1), words_at(address, 2)
    count, start = 0, 0
    for at in range(length + 1):
        if at == length or data[at] == 0:
            prints[count] = fingerprint(data, start, at - start, _U(keys[0]), _U(keys[1]))
            count += 1
            start = at + 1
    return count


@kernel
def chain_next(address, length):
    """Cuts (array 5) and fingerprints (array 6) of the path at hand; how many. The others: see ``streams.texts``."""
    data, keys, separator, form = bytes_at(address, 0), words_at(address, 1), bytes_at(address, 2), words_at(address, 3)
    ends, cuts, prints = words_at(address, 4), words_at(address, 5), words_at(address, 6)
    cuts[:] = 0
    _cut(data, 0, length, separator, form[0], form[1] != 0, ends, cuts)
    count = 0
    while count < cuts.size and cuts[count] > 0:
        start = length - cuts[count] if form[1] != 0 else 0
        prints[count] = fingerprint(data, start, cuts[count], _U(keys[0]), _U(keys[1]))
        count += 1
    return count
