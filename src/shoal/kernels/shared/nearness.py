"""Whose masked number lies nearest: for each record, whether somebody else's is at least as near as its own."""

import numpy as np

from shoal.kernels.compile import kernel


@kernel()
def nearest_own(order, starts, a, b, out):
    """Into ``out``, per row, how far the nearest number of ``b`` lies from its own of ``a``, among rows of one run.

    ``order`` are the rows by run, within a run by ``b``; run i begins at ``starts[i]``.
    """
    for run in range(len(starts) - 1):
        low, high = starts[run], starts[run + 1]
        for at in range(low, high):
            row = order[at]
            left, right = low, high
            while left < right:
                middle = (left + right) // 2
                if b[order[middle]] < a[row]:
                    left = middle + 1
                else:
                    right = middle
            far = np.inf
            if left > low:
                far = abs(b[order[left - 1]] - a[row])
            if left < high:
                far = min(far, abs(b[order[left]] - a[row]))
            out[row] = far


@kernel()
def undominated(order, starts, a, b, own, people, most):
    """Per row, whether no other person's row of ``b`` is, in every column, at least as near to ``a`` as ``own``.

    ``order`` are the rows by block, within a block by the first column of ``b``; block i begins at ``starts[i]``. Only
    rows of one block are compared. After ``most`` steps without an answer a row counts as undominated: the safe side.
    """
    n, columns = a.shape
    out = np.ones(n, np.bool_)
    for block in range(len(starts) - 1):
        low, high = starts[block], starts[block + 1]
        for at in range(low, high):
            row = order[at]
            left, right = low, high
            while left < right:  # where the number of mine would stand among theirs
                middle = (left + right) // 2
                if b[order[middle], 0] < a[row, 0]:
                    left = middle + 1
                else:
                    right = middle
            left, right = left - 1, left
            for _ in range(most):
                before = abs(b[order[left], 0] - a[row, 0]) if left >= low else np.inf
                after = abs(b[order[right], 0] - a[row, 0]) if right < high else np.inf
                if left < low and right >= high:
                    break
                if right >= high or (left >= low and before <= after):
                    other, far = order[left], before
                    left -= 1
                else:
                    other, far = order[right], after
                    right += 1
                if far > own[row, 0]:
                    break
                if people[other] == people[row]:
                    continue
                near = True
                for c in range(1, columns):
                    if abs(b[other, c] - a[row, c]) > own[row, c]:
                        near = False
                        break
                if near:
                    out[row] = False
                    break
    return out
