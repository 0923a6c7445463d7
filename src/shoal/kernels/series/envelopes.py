"""Group formation of Shou et al.: boxes (envelopes of subgroups) are united into groups of at least k records.

The cost of a group is its instant value loss: records x root mean square of the widths of its envelope.
"""

import numpy as np

from shoal.kernels.compile import kernel

# bounds and costs are computed by different sums; a bound may not cut off an equal cost by a rounding
SLACK = 1e-9
BLOCKS = 8  # of instants, whose means bound a union from below


@kernel()
def hulls(low, high, label, count):
    """The envelope of every label: the least ``low`` and the greatest ``high`` of its rows (label -1: of none)."""
    instants = low.shape[1]
    out_low = np.full((count, instants), np.inf)
    out_high = np.full((count, instants), -np.inf)
    for row in range(len(label)):
        at = label[row]
        if at >= 0:
            for i in range(instants):
                out_low[at, i] = min(out_low[at, i], low[row, i])
                out_high[at, i] = max(out_high[at, i], high[row, i])
    return out_low, out_high


@kernel()
def _joint(low_a, high_a, low_b, high_b, most):
    """The sum of squared widths of the union of two boxes; infinity as soon as it exceeds ``most``."""
    total = 0.0
    for i in range(len(low_a)):
        width = max(high_a[i], high_b[i]) - min(low_a[i], low_b[i])
        total += width * width
        # most unions are far too wide: a few instants show it
        if total > most:
            return np.inf
    return total


@kernel()
def _block_means(rows):
    """The mean of each block of neighbouring instants times the root of its share of all instants."""
    n, instants = rows.shape
    blocks = min(BLOCKS, instants)
    out = np.zeros((n, blocks))
    for row in range(n):
        for block in range(blocks):
            start = block * instants // blocks
            stop = (block + 1) * instants // blocks
            for i in range(start, stop):
                out[row, block] += rows[row, i]
            # so that squared gaps of block means add up to at most the mean square over the instants
            out[row, block] /= np.sqrt((stop - start) * instants)
    return out


@kernel()
def form_groups(low, high, size, k, look):
    """The group of every box: grown greedily from the tightest box until each group has ``k`` records.

    A group takes, as long as it is small, the box that gives the least value loss together with it (the lowest
    number among equals). What remains joins the group whose value loss grows least. Boxes far away in mean are not
    looked at: the mean width of a union is at least the distance of the means, and its root mean square is more. The
    same holds for blocks of instants: most of the others are dropped by the means of theirs. At most ``look`` free
    boxes on either side are looked at, those nearest in mean: so the cost is linear in the boxes.
    """
    boxes, instants = low.shape
    group = np.full(boxes, -1, np.int64)
    mean_low = np.empty(boxes)
    mean_high = np.empty(boxes)
    own = np.empty(boxes)
    for s in range(boxes):
        own[s] = size[s] * np.sqrt(_joint(low[s], high[s], low[s], high[s], np.inf) / instants)
        mean_low[s] = low[s].sum() / instants
        mean_high[s] = high[s].sum() / instants
    block_low = _block_means(low)
    block_high = _block_means(high)
    order = np.argsort(mean_low, kind="mergesort")
    place = np.empty(boxes, np.int64)
    # a doubly linked list over the order, so that taken boxes are stepped over
    after = np.arange(1, boxes + 1)
    before = np.arange(-1, boxes - 1)
    for at in range(boxes):
        place[order[at]] = at
    least = size.min() if boxes else 0
    left = size.sum()
    box_low = np.empty(instants)
    box_high = np.empty(instants)
    groups = 0
    # the tightest first, as published; a stable sort, so that equal ones have one order on every machine
    for seed in np.argsort(own, kind="mergesort"):
        # fewer than k records are left: they cannot make a group of their own
        if left < k:
            break
        if group[seed] >= 0:
            continue
        box_low[:] = low[seed]
        box_high[:] = high[seed]
        members = 0
        s = seed
        while True:
            group[s] = groups
            members += size[s]
            left -= size[s]
            at = place[s]
            if before[at] >= 0:
                after[before[at]] = after[at]
            if after[at] < boxes:
                before[after[at]] = before[at]
            for i in range(instants):
                box_low[i] = min(box_low[i], low[s, i])
                box_high[i] = max(box_high[i], high[s, i])
            if members >= k:
                break
            s = _nearest(
                low,
                high,
                size,
                block_low,
                block_high,
                box_low,
                box_high,
                members,
                at,
                order,
                before,
                after,
                mean_low,
                least,
                look,
            )
        groups += 1
    if left > 0 and groups > 0:
        _join_rest(low, high, size, group, groups)
    return group, groups


@kernel()
def _nearest(
    low, high, size, block_low, block_high, box_low, box_high, members, at, order, before, after, mean_low, least, look
):
    """The free box with the least value loss together with a group, searched outwards from place ``at``."""
    boxes, instants = low.shape
    group_low = box_low.sum() / instants
    group_high = box_high.sum() / instants
    own_low = _block_means(box_low.reshape(1, instants))[0]
    own_high = _block_means(box_high.reshape(1, instants))[0]
    best = np.inf
    chosen = -1
    for side in range(2):
        here = after[at] if side == 0 else before[at]
        looked = 0
        while 0 <= here < boxes and looked < look:
            looked += 1
            s = order[here]
            gap = mean_low[s] - group_low if side == 0 else group_high - mean_low[s]
            # boxes farther out have a wider gap still: nothing on this side can be better
            if gap * (members + least) * (1.0 - SLACK) > best:
                break
            both = members + size[s]
            # the greatest mean square that would still be better, so that sums may stop early
            limit = best / both
            limit = limit * limit * (1.0 + SLACK)
            if _joint(block_low[s], block_high[s], own_low, own_high, limit) < np.inf:
                square = _joint(low[s], high[s], box_low, box_high, limit * instants)
                cost = both * np.sqrt(square / instants)
                if cost < best or (cost == best and s < chosen):
                    best = cost
                    chosen = s
            here = after[here] if side == 0 else before[here]
    return chosen


@kernel()
def _join_rest(low, high, size, group, groups):
    instants = low.shape[1]
    group_low, group_high = hulls(low, high, group, groups)
    members = np.zeros(groups, np.int64)
    for s in range(len(group)):
        if group[s] >= 0:
            members[group[s]] += size[s]
    for s in range(len(group)):
        if group[s] >= 0:
            continue
        best = np.inf
        chosen = 0
        for g in range(groups):
            now = members[g] * np.sqrt(
                _joint(group_low[g], group_high[g], group_low[g], group_high[g], np.inf) / instants
            )
            limit = (best + now) / (members[g] + size[s])
            most = limit * limit * instants * (1.0 + SLACK)
            square = _joint(low[s], high[s], group_low[g], group_high[g], most)
            cost = (members[g] + size[s]) * np.sqrt(square / instants) - now
            if cost < best:
                best = cost
                chosen = g
        group[s] = chosen
        members[chosen] += size[s]
        for i in range(instants):
            group_low[chosen, i] = min(group_low[chosen, i], low[s, i])
            group_high[chosen, i] = max(group_high[chosen, i], high[s, i])
