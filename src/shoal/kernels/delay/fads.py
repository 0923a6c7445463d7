"""FADS: a due tuple leaves with its k - 1 nearest, or with a published box that costs less (Guo and Zhang 2013)."""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.delay.held import count_arrival, horizon_of, is_due, refresh
from shoal.kernels.delay.published import HELD, WITHHELD, ZERO, cheapest, release_again, release_group, retire
from shoal.kernels.delay.stream_boxes import box_of, pair_cost
from shoal.kernels.shared.promises import holds


@kernel
def fads(tuples, prints, rules, work, published, released, counts, seq, clock, fresh, finish):
    """Run FADS over events. O(δ x (k + columns)) per group."""
    n = released.box.shape[0]
    head = ZERO
    known = ZERO + fresh
    rows = np.empty(n, np.int64)
    near = np.empty(n)
    for at in range(clock.number.shape[0]):
        row = clock.row[at]
        if row >= 0:
            count_arrival(rules, counts, row)
            seq[0] += 1
            known = row + 1
        last = finish and at == clock.number.shape[0] - 1
        # tuples are due in the order in which they came, so one pointer is enough
        while head < known and (released.box[head] != HELD or last or is_due(clock, head, at)):
            if released.box[head] == HELD:
                refresh(rules, counts)
                released.count[2] = clock.number[at]
                horizon = horizon_of(clock, at, seq[0])
                _publish(tuples, prints, rules, work, published, horizon, released, head, known, rows, near)
                released.count[1] += 1
            head += 1


@kernel
def _publish(tuples, prints, rules, work, published, horizon, released, row, known, rows, near):
    """Release the tuple with the cheaper of a published box and its nearest held tuples; withhold it if neither is."""
    q = tuples.tree.shape[0]
    one = np.full(1, row, np.int64)
    slot = np.full(1, -1, np.int64)
    if horizon.usable:
        retire(tuples, published, horizon.since)
        cheapest(tuples, prints, rules, work, published, horizon, row, row + 1, slot)
    count = _nearest(tuples, prints, rules, work, released.box, row, known, rows, near)
    if count > 0:
        low = np.empty(q)
        high = np.empty(q)
        level = np.empty(q, np.int8)
        node = np.empty(q, np.int64)
        loss = box_of(tuples, rows, ZERO, count, low, high, level, node)
        # a new group serves others, too, but the paper lets the due tuple alone decide
        if slot[0] < 0 or loss < published.loss[slot[0]]:
            if release_group(tuples, prints, rules, work, published, horizon, released, rows, count):
                return
    if slot[0] >= 0:
        if release_again(tuples, prints, rules, work, published, horizon, released, one, slot, ZERO + 1) > 0:
            return
    # the box was refused in the meantime: better the dearer group than nothing
    if count == 0 or not release_group(tuples, prints, rules, work, published, horizon, released, rows, count):
        released.box[row] = WITHHELD


@kernel
def _nearest(tuples, prints, rules, work, box, row, known, rows, near):
    """The tuple and its nearest held tuples of other people, until every promise holds; 0 if it never does."""
    tree, weight, scaled, path, cost = tuples.tree, tuples.weight, tuples.scaled, tuples.node, tuples.cost
    for r in range(row, known):
        near[r] = np.inf
        if box[r] == HELD and r != row:
            near[r] = pair_cost(tree, weight, scaled, path, cost, row, r)
    rows[0] = row
    count = ZERO + 1
    while True:
        if count >= rules.k and holds(rules, rows, ZERO, count, work):
            return count
        best = ZERO - 1
        least = np.inf
        for r in range(row, known):
            if near[r] < least:
                least = near[r]
                best = r
        if best < 0:
            return ZERO
        near[best] = np.inf
        # a second tuple of a person adds nobody to the crowd
        known_person = False
        for z in range(count):
            if prints[rows[z]] == prints[best]:
                known_person = True
                break
        if not known_person:
            rows[count] = best
            count += 1
