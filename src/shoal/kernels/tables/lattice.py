"""The search for the level vector with the least loss, by chains and bounds (after Flash, Kohlmayer et al. 2012).

Level vectors are numbered by mixed radix: ``index = sum(level[j] * stride[j])``. What is found of one spreads: where
too many rows would be suppressed, every vector below suppresses as many; where few enough are, so does all above.
"""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.promises import DISTINCT, workspace
from shoal.kernels.tables.full_domain import judge_level, room_for

UNKNOWN, TOO_LOW, ENOUGH, FAILED, PASSED = range(5)
CELLS, DISCERNIBILITY, AVERAGE = range(3)
SLACK = 1e-12  # floating point only


@kernel
def search(nodes, rules, limit, measure, floor, height, by_height, by_floor, stride):
    """The index of the best level vector (-1: none keeps the promises), its loss, and how many vectors were judged.

    ``floor`` is what each vector loses at least (0 if that is not known), ``height`` the sum of its levels; the last
    two are their orders. Vectors are judged along chains by halving until all are known to suppress too much or few
    enough; then those that might still win, cheapest first. Where a promise does not spread (an entropy, recursive or
    frequency l or a t beside suppressed rows; any l or t beside counted people), only k and too few different values
    rule vectors out, and all others within the bound are judged.
    """
    m = stride.shape[0]
    total = floor.shape[0]
    state = np.zeros(total, np.int8)
    level = np.zeros(m, np.int64)
    # without suppressed rows a coarser vector only unites groups, and a union of groups that keep a promise keeps it
    spreads = rules.people == 0 and limit == 0
    if not spreads:
        spreads = True
        for s in range(rules.kind.shape[0]):
            spreads = spreads and rules.kind[s] == DISTINCT and rules.people == 0
    room, work = room_for(nodes), workspace(rules)
    stack = np.empty(total, np.int64)
    chain = np.empty(int(height[total - 1]) + 1, np.int64)
    best, winner, judged = np.inf, -1, 0
    for index in by_height:
        most = best * (1.0 + SLACK)
        if state[index] != UNKNOWN or floor[index] > most:
            continue
        low, high = 0, _chain(index, stride, nodes.depth, state, floor, chain, most)
        while low < high:
            middle = (low + high) // 2
            at = chain[middle]
            _level(at, stride, nodes.depth, level)
            found = judge_level(nodes, rules, level, room, work, limit)
            judged += 1
            state[at] = PASSED if found.suppressed <= limit else FAILED
            if found.suppressed <= limit:
                loss = _loss(found, measure, nodes)
                if _better(loss, height[at], best, height[winner]):
                    best, winner = loss, at
            # halving is sound only for what spreads along the chain; otherwise for its part that does
            if (found.suppressed if spreads else found.weak) > limit:
                _spread(at, stride, nodes.depth, state, stack, -1)
                low = middle + 1
            else:
                _spread(at, stride, nodes.depth, state, stack, 1)
                high = middle
    for index in by_floor:
        if state[index] != ENOUGH:
            continue  # an unknown one was left out because its bound cannot win
        if floor[index] > best * (1.0 + SLACK):
            break
        if limit == 0 and spreads and not _lowest(index, stride, nodes.depth, state):
            continue  # a vector below suppresses nothing either and loses no more
        _level(index, stride, nodes.depth, level)
        found = judge_level(nodes, rules, level, room, work, limit)
        judged += 1
        if found.suppressed <= limit:
            loss = _loss(found, measure, nodes)
            if _better(loss, height[index], best, height[winner]):
                best, winner = loss, index
    return winner, best, judged


@kernel
def _better(loss, height, best, best_height):
    """Less loss, or as much at a lower height: sums in another order differ by a rounding."""
    if loss < best * (1.0 - SLACK):
        return True
    return loss <= best * (1.0 + SLACK) and height < best_height


@kernel
def _loss(found, measure, nodes):
    rows = nodes.first[nodes.tuples.shape[0]]
    if measure == DISCERNIBILITY:
        return found.squares + float(found.suppressed) * rows
    if measure == AVERAGE:
        return (rows - found.suppressed) / max(1, found.kept)
    return found.cells


@kernel
def _level(index, stride, depth, level):
    for j in range(stride.shape[0]):
        level[j] = index // stride[j] % depth[j]


@kernel
def _chain(index, stride, depth, state, floor, chain, most):
    """Unknown vectors from ``index`` upwards, each a level above the last, cheapest first; how many.

    A vector whose bound exceeds ``most`` cannot win, nor can any above it.
    """
    count = 0
    at = index
    while at >= 0:
        chain[count] = at
        count += 1
        # the cheapest way up: its vectors are the likeliest winners
        best = -1
        for j in range(stride.shape[0]):
            if at // stride[j] % depth[j] + 1 < depth[j]:
                up = at + stride[j]
                if state[up] == UNKNOWN and floor[up] <= most and (best < 0 or floor[up] < floor[best]):
                    best = up
        at = best
    return count


@kernel
def _spread(index, stride, depth, state, stack, side):
    """Every unknown vector above (side 1) suppresses few enough, every one below (side -1) too much."""
    top = 0
    stack[0] = index
    while top >= 0:
        at = stack[top]
        top -= 1
        for j in range(stride.shape[0]):
            next_level = at // stride[j] % depth[j] + side
            beside = at + side * stride[j]
            if 0 <= next_level < depth[j] and state[beside] == UNKNOWN:
                state[beside] = ENOUGH if side > 0 else TOO_LOW
                top += 1
                stack[top] = beside


@kernel
def _lowest(index, stride, depth, state):
    """Whether no vector just below is known to suppress few enough."""
    for j in range(stride.shape[0]):
        if index // stride[j] % depth[j] > 0:
            below = state[index - stride[j]]
            if below == ENOUGH or below == PASSED:
                return False
    return True
