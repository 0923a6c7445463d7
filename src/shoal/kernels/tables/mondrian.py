"""Mondrian's recursion, without recursion: cut a segment of rows in two while both sides keep the promises."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.boxes import bound, box_cost, cell_cost
from shoal.kernels.shared.promises import holds, workspace
from shoal.kernels.tables.local_pairs import draw

LARGE = 1 << 16
SMALL = 4  # times k


@kernel
def mondrian(matrix, shape, rules, strict, tries, heat=0.0, stop_share=0.0, seed=0):
    """A label per row, and the number of groups. Up to ``tries`` cuts are tested per column, the most even ones.

    With ``heat`` the loss of every cut is judged with random noise of about that share, of small segments with three
    times that, and these stay whole with the chance ``stop_share``: who knows the rows cannot tell which cuts were
    possible.

    O(rows x columns² x tries) per level of the recursion, and as many levels as the logarithm of rows / k; segments
    of more than LARGE rows try one cut per column, which costs little: they are cut many times more.
    """
    n, m = matrix.shape
    rows = np.arange(n).astype(np.int32)
    other = np.empty(n, np.int32)
    labels = np.empty(n, np.int32)
    work = workspace(rules)
    most = 1
    for j in range(m):
        most = max(most, shape.size[j])
    count = np.zeros(most, np.int64)
    low, high = np.empty(m, np.int32), np.empty(m, np.int32)
    side_low, side_high = np.empty(m, np.int32), np.empty(m, np.int32)
    stack = np.empty((2 * m + 2 * int(np.log2(n + 1)) + 64 + n // max(1, rules.k), 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth = 1
    groups = 0
    spread = np.empty(m)
    cuts = np.empty(tries, np.int64)
    state = np.full(1, np.uint64(seed), np.uint64)
    while depth:
        depth -= 1
        start, stop = stack[depth, 0], stack[depth, 1]
        bound(matrix, rows, start, stop, low, high)
        for j in range(m):
            spread[j] = -shape.weight[j] * cell_cost(shape, j, low[j], high[j])
        middle = start
        best = np.inf
        best_column, best_cut = -1, -1
        allowed = tries if stop - start <= LARGE else 1
        small = heat > 0 and stop - start < SMALL * rules.k
        warm = 3 * heat if small else heat
        whole = small and draw(state) < stop_share
        if stop - start >= 2 * rules.k and not whole:
            for j in np.argsort(spread, kind="mergesort"):
                if low[j] == high[j]:
                    continue
                found = _cuts(matrix, rows, start, stop, j, low[j], high[j], count, cuts, allowed, rules.k, strict)
                for at in range(found):
                    middle = _part(matrix, rows, other, start, stop, j, cuts[at], strict)
                    if not holds(rules, rows, start, middle, work) or not holds(rules, rows, middle, stop, work):
                        continue
                    bound(matrix, rows, start, middle, side_low, side_high)
                    loss = (middle - start) * box_cost(shape, side_low, side_high)
                    bound(matrix, rows, middle, stop, side_low, side_high)
                    loss += (stop - middle) * box_cost(shape, side_low, side_high)
                    if heat > 0:  # noise of a Gumbel distribution: cuts are drawn by their loss
                        loss *= np.exp(-warm * np.log(-np.log(draw(state) + 1e-300) + 1e-300))
                    if loss < best - 1e-12:
                        best, best_column, best_cut = loss, j, cuts[at]
        if best_column < 0:
            for at in range(start, stop):
                labels[rows[at]] = groups
            groups += 1
        else:
            middle = _part(matrix, rows, other, start, stop, best_column, best_cut, strict)
            stack[depth, 0], stack[depth, 1] = middle, stop
            stack[depth + 1, 0], stack[depth + 1, 1] = start, middle
            depth += 2
    return labels, groups


@kernel
def _cuts(matrix, rows, start, stop, j, low, high, count, cuts, tries, k, strict):
    """Cuts of column j, the most even first: a cut c puts codes <= c to the left."""
    if not strict:
        cuts[0] = -1  # by rank, not by value
        return 1
    for code in range(low, high + 1):
        count[code] = 0
    for at in range(start, stop):
        count[matrix[rows[at], j]] += 1
    total = stop - start
    found = 0
    score = np.empty(cuts.shape[0])
    left = 0
    for code in range(low, high):
        left += count[code]
        if count[code] == 0 or left < k or total - left < k:
            continue
        away = abs(2 * left - total) / total
        at = found
        if found == tries:
            if away >= score[found - 1]:
                continue
            at = found - 1
        else:
            found += 1
        while at > 0 and score[at - 1] > away:
            score[at], cuts[at] = score[at - 1], cuts[at - 1]
            at -= 1
        score[at], cuts[at] = away, code
    return found


@kernel
def _part(matrix, rows, other, start, stop, j, cut, strict):
    """Reorder ``rows[start:stop]`` so that the left side comes first; order within a side is kept."""
    if not strict:
        segment = rows[start:stop].copy()
        keys = np.empty(stop - start, np.int64)
        for at in range(stop - start):
            # ties by row: the same cut must part the same rows, whatever was tried in between
            keys[at] = np.int64(matrix[segment[at], j]) * matrix.shape[0] + segment[at]
        order = np.argsort(keys, kind="mergesort")
        for at in range(stop - start):
            rows[start + at] = segment[order[at]]
        return start + (stop - start) // 2
    left, right = start, 0
    for at in range(start, stop):
        row = rows[at]
        if matrix[row, j] <= cut:
            rows[left] = row
            left += 1
        else:
            other[right] = row
            right += 1
    for at in range(right):
        rows[left + at] = other[at]
    return left
