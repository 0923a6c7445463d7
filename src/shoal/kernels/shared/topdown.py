"""Top-down greedy clustering of Xu et al. (KDD 2006) over float boxes, for tables and for series.

A row is a box ``[low, high]`` (a point where both are equal); the cost of a group is its normalized certainty
penalty: rows x cost of the group's box. ``weight`` says what a box costs (see :mod:`shoal.kernels.shared.union`): the
weights of its widths, or the levels of a table whose codes the boxes hold.
"""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.union import union_cost as _width


@kernel()
def _stretch(box_low, box_high, low, high):
    for i in range(len(low)):
        box_low[i] = min(box_low[i], low[i])
        box_high[i] = max(box_high[i], high[i])


@kernel()
def _farthest(low, high, weight, order, start, stop, origin):
    best = -1.0
    chosen = start
    for at in range(start, stop):
        distance = _width(low[order[at]], high[order[at]], low[origin], high[origin], weight)
        if distance > best and order[at] != origin:
            best = distance
            chosen = at
    return chosen


@kernel()
def _halve(low, high, weight, order, start, stop, rounds, spare, grown):
    """Part ``order[start:stop]`` between two rows far apart; returns where the second part begins."""
    first = start
    second = start
    for _ in range(rounds):
        # the farthest from the farthest: after few rounds the pair is nearly the widest, without comparing all pairs
        first, second = second, _farthest(low, high, weight, order, start, stop, order[second])
    a, b = order[first], order[second]
    low_a, high_a = low[a].copy(), high[a].copy()
    low_b, high_b = low[b].copy(), high[b].copy()
    # one part grows from the left end of the spare, the other from the right: one array holds both
    left, right = start, stop
    for at in range(start, stop):
        row = order[at]
        if row == a:
            to_left = True
        elif row == b:
            to_left = False
        else:
            cost_a, cost_b = 0.0, 0.0
            if not grown:
                cost_a = _width(low[row], high[row], low[a], high[a], weight)
                cost_b = _width(low[row], high[row], low[b], high[b], weight)
            if cost_a == cost_b:
                cost_a = _width(low[row], high[row], low_a, high_a, weight)
                cost_b = _width(low[row], high[row], low_b, high_b, weight)
            # equal rows must not all follow one side: that would peel off one row per split
            to_left = cost_a < cost_b or (cost_a == cost_b and left - start <= stop - right)
        if to_left:
            _stretch(low_a, high_a, low[row], high[row])
            spare[left] = row
            left += 1
        else:
            _stretch(low_b, high_b, low[row], high[row])
            right -= 1
            spare[right] = row
    order[start:stop] = spare[start:stop]
    return left


def _steps(low, high, weight, order, k, rounds, *_):
    n, m = low.shape
    return 3 * n * m * (rounds + 3) * np.log2(n + 2)


@kernel(steps=_steps)
def top_down(low, high, weight, order, k, rounds, grown=True):
    """A label per row; every group has at least ``k`` rows if there are as many.

    ``order`` is the order in which rows are looked at (shuffle it by a seed); it is changed. ``rounds`` is how often
    a farther row is sought before parting: the last pair parts. A row goes to the nearer of the two; ``grown`` means
    nearer to the group grown so far, else to the row it started from (ties by the group).
    """
    n = len(low)
    label = np.full(n, -1, np.int64)
    spare = np.empty_like(order)
    starts = np.empty(n + 1, np.int64)
    stops = np.empty(n + 1, np.int64)
    starts[0], stops[0] = 0, n
    waiting = 1 if n else 0
    groups = 0
    while waiting:
        waiting -= 1
        start, stop = starts[waiting], stops[waiting]
        # two parts of k do not fit into fewer than 2k rows
        if stop - start < 2 * k:
            label[order[start:stop]] = groups
            groups += 1
            continue
        middle = _halve(low, high, weight, order, start, stop, rounds, spare, grown)
        starts[waiting], stops[waiting] = start, middle
        starts[waiting + 1], stops[waiting + 1] = middle, stop
        waiting += 2
    return _adjust(low, high, weight, label, groups, k)


@kernel()
def _adjust(low, high, weight, label, groups, k):
    """Every group below ``k`` takes what it lacks from its nearest large group or joins its nearest group.

    Whichever costs less; each step leaves one small group fewer.
    """
    n, columns = low.shape
    box_low = np.full((groups, columns), np.inf)
    box_high = np.full((groups, columns), -np.inf)
    size = np.zeros(groups, np.int64)
    # the rows of a group as a linked list: groups exchange rows without moving arrays
    first = np.full(groups, -1, np.int64)
    following = np.full(n, -1, np.int64)
    # backward, so that each list names its rows in ascending order
    for row in range(n - 1, -1, -1):
        g = label[row]
        size[g] += 1
        _stretch(box_low[g], box_high[g], low[row], high[row])
        following[row] = first[g]
        first[g] = row
    taken = np.empty(n, np.int64)
    rest_low = np.empty(columns)
    rest_high = np.empty(columns)
    for g in range(groups):
        if size[g] == 0 or size[g] >= k:
            continue
        # what both ways cost, in the same measure: rows x penalty of the box they would get
        need = k - size[g]
        nearest, donor = _neighbours(box_low, box_high, size, weight, g, k)
        if nearest < 0:
            break
        merged = _width(box_low[g], box_high[g], box_low[nearest], box_high[nearest], weight)
        own = _width(box_low[nearest], box_high[nearest], box_low[nearest], box_high[nearest], weight)
        join_cost = (size[g] + size[nearest]) * merged - size[nearest] * own
        take_cost = np.inf
        if donor >= 0:
            take_cost = _plan(
                low, high, weight, box_low[g], box_high[g], first[donor], following, need, k, taken, rest_low, rest_high
            )
            take_cost -= size[donor] * _width(box_low[donor], box_high[donor], box_low[donor], box_high[donor], weight)
        if take_cost < join_cost:
            for at in range(need):
                row = taken[at]
                _unlink(first, following, donor, row)
                following[row] = first[g]
                first[g] = row
                _stretch(box_low[g], box_high[g], low[row], high[row])
            size[g] += need
            size[donor] -= need
            # a box shrinks only by looking at all who stay; the plan has done that
            box_low[donor], box_high[donor] = rest_low, rest_high
        else:
            row = first[g]
            while row >= 0:
                after = following[row]
                following[row] = first[nearest]
                first[nearest] = row
                row = after
            first[g] = -1
            _stretch(box_low[nearest], box_high[nearest], box_low[g], box_high[g])
            size[nearest] += size[g]
            size[g] = 0
    return _number(first, following, label)


@kernel()
def _neighbours(box_low, box_high, size, weight, g, k):
    """The group whose box grows least together with ``g``, and the same among those that can give rows away."""
    nearest, donor = -1, -1
    least, least_donor = np.inf, np.inf
    for h in range(len(size)):
        if h == g or size[h] == 0:
            continue
        union = _width(box_low[g], box_high[g], box_low[h], box_high[h], weight)
        if union < least:
            least, nearest = union, h
        # who gives k - size[g] rows away must itself keep k
        if union < least_donor and size[h] >= 2 * k - size[g]:
            least_donor, donor = union, h
    return nearest, donor


@kernel()
def _plan(low, high, weight, box_low, box_high, head, following, need, k, taken, rest_low, rest_high):
    """Choose ``need`` rows of a donor, each the nearest to the growing box; the cost of both groups after that."""
    grown_low, grown_high = box_low.copy(), box_high.copy()
    for at in range(need):
        best = np.inf
        row = head
        while row >= 0:
            if not _among(taken, at, row):
                cost = _width(low[row], high[row], grown_low, grown_high, weight)
                if cost < best:
                    best = cost
                    taken[at] = row
            row = following[row]
        _stretch(grown_low, grown_high, low[taken[at]], high[taken[at]])
    rest_low[:] = np.inf
    rest_high[:] = -np.inf
    rest = 0
    row = head
    while row >= 0:
        if not _among(taken, need, row):
            _stretch(rest_low, rest_high, low[row], high[row])
            rest += 1
        row = following[row]
    return k * _width(grown_low, grown_high, grown_low, grown_high, weight) + rest * _width(
        rest_low, rest_high, rest_low, rest_high, weight
    )


@kernel()
def _among(taken, count, row):
    for at in range(count):
        if taken[at] == row:
            return True
    return False


@kernel()
def _unlink(first, following, g, row):
    if first[g] == row:
        first[g] = following[row]
        return
    before = first[g]
    while following[before] != row:
        before = following[before]
    following[before] = following[row]


@kernel()
def _number(first, following, label):
    """Labels 0, 1, … for the groups that are left."""
    groups = 0
    for g in range(len(first)):
        row = first[g]
        while row >= 0:
            label[row] = groups
            row = following[row]
        if first[g] >= 0:
            groups += 1
    return label
