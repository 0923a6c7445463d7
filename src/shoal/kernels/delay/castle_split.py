"""Splitting a large cluster of CASTLE into parts that each keep every promise."""

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.published import ZERO
from shoal.kernels.delay.stream_boxes import pair_cost
from shoal.kernels.shared.heap import drop, heapify
from shoal.kernels.shared.promises import holds, people_in


@bare
def pick(salt, number, count):
    """A keyed choice among ``count``, the same at every replay (splitmix64)."""
    z = np.uint64(salt) ^ (np.uint64(number) * np.uint64(0x9E3779B97F4A7C15))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) % np.uint64(count))


@kernel
def split(tuples, prints, rules, work, rows, count, salt, label):
    """Labels of the parts of ``rows[:count]``; how many parts. A cluster of fewer than 2k people stays whole.

    A tuple chosen at random and its k - 1 nearest, one per person, make a part; if those break a promise about
    sensitive values, each value gives its share of the k (bucketize, in the paper always). What is left goes to the
    nearest part. If a part breaks a promise the cluster is not split. O(count² / k x columns).
    """
    for z in range(count):
        label[z] = 0
    if people_in(rules, rows, ZERO, count, work) < 2 * rules.k:
        return 1
    # one work space for all parts: a split may have thousands, and each would allocate its own
    near = np.empty(count)
    seeds = np.empty(count, np.int64)
    part = np.empty(count, np.int64)
    for z in range(count):
        label[z] = -1
    parts = 0
    while True:
        left = _left(rules, rows, count, label, part, work)
        if left < rules.k:
            break
        size = ZERO
        for z in range(count):
            if label[z] < 0:
                part[size] = z
                size += 1
        # the choice hangs on the records alone, so a replay after a crash publishes the same parts
        seed = part[pick(salt, prints[rows[part[0]]] + parts, size)]
        seeds[parts] = rows[seed]
        if not _part(tuples, rules, work, rows, count, seed, near, label, parts, part):
            break
        parts += 1
    # one part is the cluster itself; it keeps one label, so that nothing looks split
    if parts < 2:
        return _whole(label, count)
    _spread(tuples, rows, count, label, seeds, parts)
    # k holds by construction, but whoever was spread may have brought too much of one sensitive value
    if rules.kind.shape[0] > 0 and not _all_hold(rules, work, rows, count, label, parts, part):
        return _whole(label, count)
    return parts


@kernel
def _spread(tuples, rows, count, label, seeds, parts):
    """Who is in no part joins the one whose loss grows least; all tuples of a person fit in any."""
    q = tuples.tree.shape[0]
    low = np.full((parts, q), np.inf)
    high = np.full((parts, q), -np.inf)
    gap = np.zeros((parts, q), np.bool_)
    level = np.zeros((parts, q), np.int64)
    for z in range(count):
        if label[z] >= 0:
            stretch(tuples.tree, tuples.scaled, tuples.node, low, high, gap, level, seeds, label[z], rows[z])
    for z in range(count):
        if label[z] >= 0:
            continue
        best = ZERO
        least = np.inf
        for p in range(parts):
            grown = 0.0
            for j in range(q):
                grown += _growth(tuples, low, high, gap, level, seeds, p, j, rows[z])
            if grown < least:
                least = grown
                best = p
        label[z] = best
        stretch(tuples.tree, tuples.scaled, tuples.node, low, high, gap, level, seeds, best, rows[z])


@bare
def stretch(tree, scaled, path, low, high, gap, level, seeds, p, row):
    """Part p takes in a tuple; ``seeds[p]`` is one of its members."""
    for j in range(tree.shape[0]):
        if tree[j]:
            # one member stands for the part: all of them agree at its level. The root is common, so this ends
            while path[seeds[p], j, level[p, j]] != path[row, j, level[p, j]]:
                level[p, j] += 1
        elif scaled[row, j] < 0:
            # a missing number: together with numbers only the whole column covers it
            gap[p, j] = True
        else:
            low[p, j] = min(low[p, j], scaled[row, j])
            high[p, j] = max(high[p, j], scaled[row, j])


@bare
def _growth(tuples, low, high, gap, level, seeds, p, j, row):
    """How much the loss of column j of part p grows with a tuple."""
    if tuples.tree[j]:
        at = level[p, j]
        while tuples.node[seeds[p], j, at] != tuples.node[row, j, at]:
            at += 1
        return tuples.cost[seeds[p], j, at] - tuples.cost[seeds[p], j, level[p, j]]
    value = tuples.scaled[row, j]
    if gap[p, j] or value < 0:
        # a part costs the whole column once it mixes missing and present numbers: was it so before, is it so now?
        mixed = gap[p, j] and low[p, j] <= high[p, j]
        mixes = (gap[p, j] or value < 0) and (low[p, j] <= high[p, j] or value >= 0)
        before = tuples.weight[j] if mixed else max(0.0, high[p, j] - low[p, j])
        return (tuples.weight[j] if mixes else 0.0) - before
    return max(high[p, j], value) - min(low[p, j], value) - (high[p, j] - low[p, j])


@bare
def _whole(label, count):
    for z in range(count):
        label[z] = 0
    return 1


@kernel
def _left(rules, rows, count, label, part, work):
    """How many people have a tuple in no part."""
    size = ZERO
    for z in range(count):
        if label[z] < 0:
            part[size] = rows[z]
            size += 1
    return people_in(rules, part, ZERO, size, work)


@kernel
def _part(tuples, rules, work, rows, count, seed, near, label, number, part):
    """The k nearest people around a seed; if they break a promise, each value at most its share. Whether all hold.

    The paper gives every value its share at once. That costs loss where the nearest people are diverse anyway.
    """
    taken = np.empty(rules.k, np.int64)
    quota = np.full(work.count.shape[0], count, np.int64)
    found = _nearest_people(tuples, rules, work, rows, count, seed, near, label, part, taken, quota)
    fine = found and holds(rules, part, ZERO, rules.k, work)
    if found and not fine and rules.kind.shape[0] > 0:
        quota[:] = 0
        free = 0
        for z in range(count):
            if label[z] < 0:
                quota[rules.value[0, rows[z]]] += 1
                free += 1
        for v in range(quota.shape[0]):
            # rounded up: rounded down, the shares of rare values would not add up to k
            quota[v] = -((-rules.k * quota[v]) // max(1, free))
        found = _nearest_people(tuples, rules, work, rows, count, seed, near, label, part, taken, quota)
        fine = found and holds(rules, part, ZERO, rules.k, work)
    if fine:
        for y in range(rules.k):
            label[taken[y]] = number
    return fine


@kernel
def _nearest_people(tuples, rules, work, rows, count, seed, near, label, part, taken, quota):
    """The k nearest people around a seed, of each value of the first promise at most ``quota``; whether there are k."""
    tree, weight, scaled, path, cost = tuples.tree, tuples.weight, tuples.scaled, tuples.node, tuples.cost
    who = np.empty(count, np.int64)
    left = ZERO
    for z in range(count):
        if label[z] < 0:
            near[left] = pair_cost(tree, weight, scaled, path, cost, rows[seed], rows[z])
            # first of all, also among tuples that are equal to it
            if z == seed:
                near[left] = -1.0
            who[left] = z
            left += 1
    heapify(near, who, left)
    work.stamp[0] += 1
    size = ZERO
    while size < rules.k:
        if left == 0:
            return False
        best = who[0]
        # looked at once, whether it is taken or not
        left = drop(near, who, left)
        value = rules.value[0, rows[best]] if rules.kind.shape[0] > 0 else 0
        if quota[value] <= 0:
            continue
        # a second tuple of a person adds nobody to the crowd; _spread finds a part for it
        if rules.people > 0:
            if work.seen_person[rules.person[rows[best]]] == work.stamp[0]:
                continue
            work.seen_person[rules.person[rows[best]]] = work.stamp[0]
        quota[value] -= 1
        part[size] = rows[best]
        taken[size] = best
        size += 1
    return True


@kernel
def _all_hold(rules, work, rows, count, label, parts, part):
    for p in range(parts):
        size = ZERO
        for z in range(count):
            if label[z] == p:
                part[size] = rows[z]
                size += 1
        if not holds(rules, part, ZERO, size, work):
            return False
    return True
