"""Mondrian's recursion, without recursion: cut a segment of rows while all parts keep the promises."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.boxes import bound, box_cost, cell_cost
from shoal.kernels.shared.promises import holds, workspace
from shoal.kernels.shared.sorting import ascend
from shoal.kernels.tables.local_pairs import draw
from shoal.kernels.tables.mondrian_nodes import by_node

LARGE = 1 << 16
SMALL = 4  # times k


def _steps(matrix, shape, rules, strict, tries, *_):
    n, m = matrix.shape
    return 0.2 * n * m * m * tries * np.log2(n + 2)


@kernel(steps=_steps)
def mondrian(matrix, shape, rules, strict, tries, heat=0.0, stop_share=0.0, seed=0):
    """A label per row, and the number of groups.

    Numbers are cut in two, up to ``tries`` cuts per column being tested, the most even ones; columns with a hierarchy
    are parted by its nodes. The cut that saves most loss per bit it spends is made: a table of n rows can be parted
    about log2(n / k) times, and one that parts it finely has spent as much of that as several cuts in two.

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
    order, ends = np.empty(most, np.int64), np.empty(most + 2, np.int64)
    low, high = np.empty(m, np.int32), np.empty(m, np.int32)
    stack = np.empty((2 * m + 2 * int(np.log2(n + 1)) + 64 + n // max(1, rules.k), 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth = 1
    groups = 0
    spread, columns = np.empty(m), np.empty(m, np.int64)
    cuts = np.empty(tries, np.int64)
    state = np.full(1, np.uint64(seed), np.uint64)
    while depth:
        depth -= 1
        start, stop = stack[depth, 0], stack[depth, 1]
        bound(matrix, rows, start, stop, low, high)
        total = 0.0
        for j in range(m):
            spread[j] = -shape.weight[j] * cell_cost(shape, j, low[j], high[j])
            total += spread[j]
        before = (stop - start) * -total
        best = -np.inf
        best_column, best_cut = -1, -1
        allowed = tries if stop - start <= LARGE else 1
        small = heat > 0 and stop - start < SMALL * rules.k
        warm = 3 * heat if small else heat
        whole = small and draw(state) < stop_share
        if stop - start >= 2 * rules.k and not whole:
            _widest_first(spread, columns)
            for j in columns:
                if low[j] == high[j]:
                    continue
                nodes = strict and not shape.hull[j]
                found = 1
                if not nodes:
                    found = _cuts(matrix, rows, start, stop, j, low[j], high[j], count, cuts, allowed, rules.k, strict)
                for at in range(found):
                    if nodes:
                        cuts[0] = -1
                        parts = by_node(
                            matrix, shape, rules, rows, other, start, stop, j, low[j], high[j], work, count, order, ends
                        )
                        if parts == 0:
                            continue
                    else:
                        middle = _part(matrix, rows, other, start, stop, j, cuts[at], strict)
                        if not holds(rules, rows, start, middle, work) or not holds(rules, rows, middle, stop, work):
                            continue
                        parts = 2
                        ends[0], ends[1], ends[2] = start, middle, stop
                    after, bits = _worth(matrix, shape, rows, parts, ends)
                    if heat > 0:  # noise of a Gumbel distribution: cuts are drawn by their loss
                        after *= np.exp(-warm * np.log(-np.log(draw(state) + 1e-300) + 1e-300))
                    saved = (before - after) / bits
                    if saved > best + 1e-12 * before:
                        best, best_column, best_cut = saved, j, cuts[at]
        if best_column < 0:
            for at in range(start, stop):
                labels[rows[at]] = groups
            groups += 1
            continue
        j = best_column
        if strict and not shape.hull[j]:
            parts = by_node(
                matrix, shape, rules, rows, other, start, stop, j, low[j], high[j], work, count, order, ends
            )
        else:
            parts = 2
            ends[0], ends[2] = start, stop
            ends[1] = _part(matrix, rows, other, start, stop, j, best_cut, strict)
        for part in range(parts - 1, -1, -1):
            stack[depth, 0], stack[depth, 1] = ends[part], ends[part + 1]
            depth += 1
    return labels, groups


@kernel
def _widest_first(spread, columns):
    """The columns into ``columns``, the least ``spread`` first, equal ones as they stand."""
    for j in range(spread.shape[0]):
        at = j
        while at > 0 and spread[columns[at - 1]] > spread[j]:
            columns[at] = columns[at - 1]
            at -= 1
        columns[at] = j


@kernel
def _worth(matrix, shape, rows, parts, ends):
    """The loss of all parts together, and the bits that it takes to tell whose part a row is in."""
    m = matrix.shape[1]
    low, high = np.empty(m, np.int32), np.empty(m, np.int32)
    loss, bits = 0.0, 0.0
    for part in range(parts):
        size = ends[part + 1] - ends[part]
        bound(matrix, rows, ends[part], ends[part + 1], low, high)
        loss += size * box_cost(shape, low, high)
        share = size / (ends[parts] - ends[0])
        bits -= share * np.log2(share)
    return loss, bits


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
        keys = np.empty(stop - start, np.int64)
        for at in range(stop - start):
            # ties by row: the same cut must part the same rows, whatever was tried in between
            keys[at] = np.int64(matrix[rows[start + at], j]) * matrix.shape[0] + rows[start + at]
        ascend(keys, np.empty(stop - start, np.int64))
        for at in range(stop - start):
            rows[start + at] = keys[at] % matrix.shape[0]
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
