"""Outliers: rows whose withholding lowers the total loss, a withheld row counted as wholly lost."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.promises import workspace
from shoal.kernels.tables.local_hooks import KEPT, clear, failing
from shoal.kernels.tables.local_pairs import pair_cost


@kernel
def outliers(codes, order, begin, pairs, rules, whole):
    """Per group the row whose withholding gains most and leaves the promises kept: gain (0: none) and row.

    The rows of group g are ``order[begin[g]:begin[g + 1]]``; ``whole`` is the loss of a withheld row.
    O(rows x columns), and one check of the promises per gain.
    """
    m = codes.shape[1]
    count = begin.shape[0] - 1
    gain, found = np.zeros(count), np.full(count, -1, np.int64)
    ends = np.empty((4, m), np.int32)  # lowest, second lowest, second highest, highest code
    rows = np.empty(codes.shape[0], np.int32)
    work = workspace(rules)
    values = np.zeros(work.count.shape[0])
    for g in range(count):
        size = begin[g + 1] - begin[g]
        # one row fewer would be too few
        if size <= rules.k:
            continue
        _ends(codes, order, begin[g], begin[g + 1], ends)
        loss = 0.0
        for j in range(m):
            loss += size * pair_cost(pairs, j, ends[0, j], ends[3, j])
        for at in range(begin[g], begin[g + 1]):
            row = order[at]
            without = whole
            for j in range(m):
                # who stands at an end leaves the box to the next; two rows with the lowest code make it the second, too
                low = ends[1, j] if codes[row, j] == ends[0, j] else ends[0, j]
                high = ends[2, j] if codes[row, j] == ends[3, j] else ends[3, j]
                without += (size - 1) * pair_cost(pairs, j, low, high)
            # asked first, because the check of the promises looks at all members
            if loss - without <= gain[g] + 1e-9:
                continue
            members = np.int64(0)
            for other in range(begin[g], begin[g + 1]):
                if other != at:
                    rows[members] = order[other]
                    members += 1
            lack = failing(rules, rows, 0, members, work, values)
            if lack >= 0:
                clear(rules, lack, rows, 0, members, values)
            if lack == KEPT:
                gain[g] = loss - without
                found[g] = row
    return gain, found


@kernel
def _ends(codes, order, start, stop, ends):
    for j in range(codes.shape[1]):
        first, second = np.iinfo(np.int32).max, np.iinfo(np.int32).max
        last, before = -1, -1
        for at in range(start, stop):
            code = codes[order[at], j]
            if code < first:
                first, second = code, first
            elif code < second:
                second = code
            if code > last:
                last, before = code, last
            elif code > before:
                before = code
        ends[0, j], ends[1, j], ends[2, j], ends[3, j] = first, second, before, last


@kernel
def broken(order, begin, rules):
    """The first group that breaks a promise, or -1."""
    work = workspace(rules)
    values = np.zeros(work.count.shape[0])
    for g in range(begin.shape[0] - 1):
        lack = failing(rules, order, begin[g], begin[g + 1], work, values)
        if lack >= 0:
            clear(rules, lack, order, begin[g], begin[g + 1], values)
        if lack != KEPT:
            return g
    return -1
