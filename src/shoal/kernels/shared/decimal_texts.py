"""Texts that are decimal numbers, read or recognized at once."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.json_flat import decimal

_U = np.uint64


@kernel
def plain_numbers(data, starts, lengths, out):
    """Fills ``out`` with the numbers that texts are, NaN where one is missing; False as soon as one is no plain number.

    Digits, and perhaps a point between some: up to 18 with one, up to 15 without: whole ones are exact. O(bytes).
    """
    for row in range(starts.size):
        if lengths[row] < 0:
            out[row] = np.nan
            continue
        digits, decimals = _U(0), -1
        count = 0
        for at in range(starts[row], starts[row] + lengths[row]):
            byte = data[at]
            if byte == 46 and decimals < 0 and count > 0:
                decimals = 0
            elif 48 <= byte < 58 and count < 18:
                digits = digits * _U(10) + _U(byte - 48)
                count += 1
                decimals += np.int64(decimals >= 0)
            else:
                return False
        if decimals == 0 or count == 0 or (decimals < 0 and count > 15):
            return False
        out[row] = decimal(digits, _U(max(decimals, 0)))
        if out[row] != out[row]:
            return False
    return True


@kernel
def json_numbers(data, starts, lengths):
    """Whether all texts that are there are numbers as JSON spells them, without an exponent. O(bytes)."""
    for row in range(starts.size):
        if lengths[row] < 0:
            continue
        at, end = starts[row], starts[row] + lengths[row]
        if at < end and data[at] == 45:
            at += 1
        begin = at
        while at < end and 48 <= data[at] < 58:
            at += 1
        if at == begin or (data[begin] == 48 and at - begin > 1):
            return False  # no digit, or a zero before others
        if at < end and data[at] == 46:
            begin = at + 1
            at = begin
            while at < end and 48 <= data[at] < 58:
                at += 1
            if at == begin:
                return False
        if at < end:
            return False
    return True
