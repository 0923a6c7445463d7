"""Records that found no subgroup join cells (one group, one word) of their own word that stay diverse with them."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.series.diverse import add, clear, keeps, tally_of

REACH = 8  # cells of one word that are looked at, nearest in height first


@kernel()
def _growth(values, row, low, high, size):
    """How much the value loss of a group of ``size`` grows when a record joins it."""
    instants = values.shape[1]
    now = 0.0
    then = 0.0
    for i in range(instants):
        width = high[i] - low[i]
        now += width * width
        width = max(high[i], values[row, i]) - min(low[i], values[row, i])
        then += width * width
    return (size + 1) * np.sqrt(then / instants) - size * np.sqrt(now / instants)


@kernel()
def _takes(rules, tally, first, following, cell, row, spare):
    """Whether a cell keeps the rules with one record more."""
    size = 0
    member = first[cell]
    while member >= 0:
        spare[size] = member
        size += 1
        member = following[member]
    spare[size] = row
    size += 1
    for at in range(size):
        add(tally, rules, spare[at])
    fine = keeps(tally, rules, size)
    clear(tally, rules, spare, 0, size)
    return fine


@kernel()
def join_cells(values, total, codes, rules, group, word, cell, cell_word, cell_group, cell_height, most):
    """Let loose records (group -1) join; changes ``group``, ``word`` and ``cell``; returns how many joined.

    Cells are numbered by word and then by height. Each record takes the finest of its own words at which a cell near
    in height keeps the rules with it; of several the one whose group's value loss grows least, if by at most ``most``.
    """
    n, instants = values.shape
    groups = cell_group.max() + 1
    low = np.full((groups, instants), np.inf)
    high = np.full((groups, instants), -np.inf)
    size = np.zeros(groups, np.int64)
    # members of a cell as a linked list: records join without moving arrays
    first = np.full(len(cell_word), -1, np.int64)
    following = np.full(n, -1, np.int64)
    for row in range(n):
        g = group[row]
        if g >= 0:
            size[g] += 1
            following[row] = first[cell[row]]
            first[cell[row]] = row
            for i in range(instants):
                low[g, i] = min(low[g, i], values[row, i])
                high[g, i] = max(high[g, i], values[row, i])
    tally = tally_of(rules)
    spare = np.empty(n + 1, np.int64)
    joined = 0
    for row in range(n):
        if group[row] >= 0:
            continue
        chosen = -1
        # finest first: a coarser word would cost more of the shape
        for level in range(codes.shape[0] - 1, -1, -1):
            mine = codes[level, row]
            begin = np.searchsorted(cell_word, mine, side="left")
            end = np.searchsorted(cell_word, mine, side="right")
            if begin == end:
                continue
            # near in height is near in value: most of the loss of a union is its height
            above = begin + np.searchsorted(cell_height[begin:end], total[row])
            below = above - 1
            best = most
            for _ in range(REACH):
                # the nearer of the next ones on either side
                if below < begin and above >= end:
                    break
                up = below < begin or (
                    above < end and cell_height[above] - total[row] < total[row] - cell_height[below]
                )
                here = above if up else below
                if up:
                    above += 1
                else:
                    below -= 1
                g = cell_group[here]
                cost = _growth(values, row, low[g], high[g], size[g])
                # the cost is asked first: the rules look at all members
                if cost <= best and _takes(rules, tally, first, following, here, row, spare):
                    best = cost
                    chosen = here
            if chosen >= 0:
                word[row] = mine
                break
        if chosen < 0:
            continue
        g = cell_group[chosen]
        group[row] = g
        cell[row] = chosen
        following[row] = first[chosen]
        first[chosen] = row
        size[g] += 1
        joined += 1
        for i in range(instants):
            low[g, i] = min(low[g, i], values[row, i])
            high[g, i] = max(high[g, i], values[row, i])
    return joined
