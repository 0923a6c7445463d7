"""MDAV: maximum distance to average vector (Domingo-Ferrer and Mateo-Sanz 2002; Domingo-Ferrer and Torra 2005)."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.promises import holds, workspace

WIDEST = 8  # a group that still breaks a promise at so many times k rows is left to be merged


@kernel(steps=lambda points, members, rules: 2 * points.size * len(points) / rules.k)
def mdav(points, members, rules):
    """A label for each of ``members`` (rows of the table, whose coordinates are ``points``), and the number of groups.

    As long as there are 3k rows: the row farthest from the mean and its nearest rows make a group, then the row
    farthest from that one and its nearest. A group takes k rows, and more until it keeps the promises. Costs
    O(rows² / k x columns).
    """
    n, m = points.shape
    points = points.copy()
    place = np.arange(n)  # which member stands at each place; taken ones are swapped behind ``left``
    labels = np.full(n, -1, np.int32)
    distance = np.empty(n)
    mean = np.empty(m)
    rows = np.empty(n, np.int32)
    work = workspace(rules)
    left, groups = n, 0
    k = rules.k
    while left >= 2 * k:
        twice = left >= 3 * k
        for j in range(m):
            total = 0.0
            for at in range(left):
                total += points[at, j]
            mean[j] = total / left
        far = _measure(points, left, mean, distance)
        centre = points[far].copy()
        far = _measure(points, left, centre, distance)
        second = points[far].copy()
        left = _take(points, place, labels, members, distance, left, groups, rules, rows, work)
        groups += 1
        if twice and left >= k:
            _measure(points, left, second, distance)
            left = _take(points, place, labels, members, distance, left, groups, rules, rows, work)
            groups += 1
    if left:
        for at in range(left):
            labels[place[at]] = groups
        groups += 1
    return labels, groups


@kernel
def _measure(points, left, centre, distance):
    """Squared distances to ``centre``; where the farthest row stands."""
    far, most = 0, -1.0
    for at in range(left):
        total = 0.0
        for j in range(centre.shape[0]):
            gap = points[at, j] - centre[j]
            total += gap * gap
        distance[at] = total
        if total > most:
            far, most = at, total
    return far


@kernel
def _take(points, place, labels, members, distance, left, group, rules, rows, work):
    """Give the nearest rows to a group until it keeps the promises; how many rows are left."""
    k = rules.k
    near = np.empty(k, np.int64)
    count = 0
    for at in range(left):  # the k nearest, kept sorted
        if count == k and distance[at] >= distance[near[k - 1]]:
            continue
        spot = count if count < k else k - 1
        while spot > 0 and distance[near[spot - 1]] > distance[at]:
            near[spot] = near[spot - 1]
            spot -= 1
        near[spot] = at
        if count < k:
            count += 1
    for i in range(count):
        rows[i] = members[place[near[i]]]
        labels[place[near[i]]] = group
    taken = np.sort(near[:count])
    for i in range(count - 1, -1, -1):
        left = _remove(points, place, distance, left, taken[i])
    if rules.people == 0 and rules.kind.shape[0] == 0:
        return left
    while left and count < WIDEST * k and not holds(rules, rows, 0, count, work):
        nearest = 0
        for at in range(1, left):
            if distance[at] < distance[nearest]:
                nearest = at
        rows[count] = members[place[nearest]]
        labels[place[nearest]] = group
        count += 1
        left = _remove(points, place, distance, left, nearest)
    return left


@kernel
def _remove(points, place, distance, left, at):
    left -= 1
    for j in range(points.shape[1]):
        points[at, j] = points[left, j]
    place[at], distance[at] = place[left], distance[left]
    return left
