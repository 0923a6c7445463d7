"""Plan all held tuples together: groups that keep every promise, and tuples left to boxes published before.

1. The price of a tuple is the loss of the cheapest published box that contains it (:data:`NONE` if none does).
2. Seeds from the outside in: outliers and rare values first. A group grows by least widening, less a share of the
   newcomer's price: tuples without a cheap box are the better companions.
3. A group stands if its seed has no box, or if the prices it saves, with what recent tuples would save, exceed its
   cost.
4. What is left joins a group or keeps its box, whichever is cheaper; then a local search moves and swaps members.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.held import count_arrival, horizon_of, refresh, when_due
from shoal.kernels.delay.plan import FAR, NOBODY, NONE, ZERO, join_rest, link, measure, new_plan, rows_of, search
from shoal.kernels.delay.published import HELD, WITHHELD, cheapest, release_again, release_group, retire
from shoal.kernels.delay.recent import cheapen, remember, saved
from shoal.kernels.delay.stream_boxes import box_of
from shoal.kernels.delay.window import widen, widen_more, width, window_of
from shoal.kernels.shared.promises import DISTINCT, T_EQUAL, count_values, holds, judge_counts

STEPS = 48_000_000  # cells looked at by one plan, after which tuples that have a box already seed no further group


class Knobs(NamedTuple):
    """How the plan is made; every number counts steps or shares, never seconds."""

    lean: float  # how much a newcomer's price counts against widening
    passes: int  # of the local search
    near: float  # companions farther than this share of the seed's price are not looked at
    future: float  # how much the savings of recent tuples count
    skip: float  # share of k: how many neighbours of a seed without a group need not be tried
    candidates: int  # times k: how many companions are looked at


@kernel
def plan_windows(
    tuples, prints, rules, work, published, released, counts, recent, knobs, table, seq, clock, finish
):  # fmt: skip
    """Cut the tuples into windows, each ending where its oldest tuple is due; plan and release them one by one.

    ``seq`` counts the tuples decided on. O(m² x columns) per window of m at worst.
    """
    start = ZERO
    n = clock.event.shape[0]
    last = clock.number.shape[0] - 1
    while start < n:
        at = when_due(clock, start)
        if at > last and not finish:
            break
        at = min(at, last)
        # all that arrived until then are planned together, not only who is due: more companions, less loss
        stop = n if finish and at == last else np.searchsorted(clock.event, clock.number[at], side="right")
        for row in range(start, stop):
            count_arrival(rules, counts, row)
        refresh(rules, counts)
        seq[0] += stop - start
        horizon = horizon_of(clock, at, seq[0])
        slots, groups, plan = plan_window(
            tuples, prints, rules, work, published, horizon, recent, knobs, start, stop, table
        )
        released.count[2] = clock.number[at]
        release_plan(
            tuples, prints, rules, work, published, horizon, recent, knobs, start, slots, groups, plan, released
        )
        released.count[1] += 1
        start = stop


@kernel
def plan_window(tuples, prints, rules, work, published, horizon, recent, knobs, start, stop, table):
    """Plan tuples ``start`` to ``stop``: the slot of the box each might reuse, how many groups, and the groups."""
    m = stop - start
    price = np.full(m, NONE, np.float32)
    slots = np.full(m, -1, np.int64)
    if horizon.usable:
        retire(tuples, published, horizon.since)
        cheapest(tuples, prints, rules, work, published, horizon, start, stop, slots)
        for i in range(m):
            if slots[i] >= 0:
                price[i] = published.loss[slots[i]]
    if knobs.future > 0:
        remember(
            tuples.tree, tuples.number, tuples.node, start, price,
            recent.number, recent.node, recent.price, recent.count, recent.ceiling,
        )  # fmt: skip
    window = window_of(tuples, start, stop, table)
    plan = new_plan(m, m // rules.k + 1, tuples.tree.shape[0])
    groups = _form(tuples, window, price, start, rules, work, knobs, recent, plan)
    join_rest(window, price, start, rules, work, groups, plan)
    search(window, price, start, rules, work, knobs.passes, groups, plan)
    return slots, groups, plan


@kernel
def _seeds(window):
    """All tuples, the most unusual first."""
    q, m = window.x.shape
    score = np.zeros(m, np.float32)
    for j in range(q):
        column = window.x[j]
        if window.kind[j] > 0:
            often = np.zeros(window.size[j], np.float32)
            for i in range(m):
                often[int(column[i])] += np.float32(1)
            for i in range(m):
                # frequent values are usual, far numbers unusual: a low score comes first
                score[i] += window.weight[j] * often[int(column[i])] / np.float32(m)
        else:
            mean = np.float32(0)
            for i in range(m):
                mean += column[i]
            mean /= np.float32(m)
            for i in range(m):
                score[i] -= abs(column[i] - mean)
    return np.argsort(score, kind="mergesort")


@kernel
def _form(tuples, window, price, base, rules, work, knobs, recent, plan):
    """Groups around seeds; how many. A group grows to k people and further until every promise holds."""
    x, kind, size, table, steps = window.x, window.kind, window.size, window.table, window.steps
    q, m = x.shape
    k = rules.k
    ceiling = recent.ceiling[0]
    lean = np.float32(knobs.lean)
    free = np.empty(m, np.int64)
    # columns of the free tuples side by side: distances are then read without jumps, in single precision
    columns = np.empty((q, m), np.float32)
    few = np.empty((q, m), np.float32)
    who = np.empty(m, np.int64)
    near = np.zeros(m, np.float32)
    tried = np.zeros(m, np.bool_)
    ends = np.zeros((2, q), np.float32)
    scratch = np.zeros((2, size.max()), np.float32)
    picked = np.empty(recent.price.shape[0] + 1, np.int64)
    left = ZERO
    stale = True
    groups = ZERO
    spent = ZERO  # where k is large, each seed looks at many cells: what need not be tried is bounded by a count
    for seed in _seeds(window):
        if plan.label[seed] >= 0 or tried[seed] or (spent > STEPS and price[seed] < NONE):
            continue
        # gathered anew only after a group took tuples away
        if stale:
            left = _free(x, plan.label, free, columns)
            stale = False
        if left < k:
            break
        tried[seed] = True
        for c in range(left):
            near[c] = 0
        for j in range(q):
            widen(kind, size, table, steps, j, x[j, seed], x[j, seed], columns[j], near, left, scratch[0])
        # every member of a box of loss c lies within c of the seed: drop what is too far to pay off
        reach = price[seed] * np.float32(knobs.near) if price[seed] < NONE else FAR
        if left > knobs.candidates * k:
            reach = min(reach, _nearest(near, left, knobs.candidates * k))
        found = ZERO
        for c in range(left):
            if near[c] <= reach and free[c] != seed:
                who[found] = free[c]
                near[found] = near[c] - lean * min(price[free[c]], ceiling)
                for j in range(q):
                    few[j, found] = columns[j, c]
                found += 1
        if found < k - 1:
            continue
        spent += found * k * q
        count = _grow(
            x, kind, size, table, steps, seed, base, rules, work, few, who, near, found, ends, scratch, plan.rows
        )
        if count == 0:
            continue
        gain = np.float32(0)
        for z in range(count):
            gain += min(price[plan.rows[z] - base], ceiling)
        loss = np.float32(0)
        for j in range(q):
            loss += width(kind, table, steps, j, ends[0, j], ends[1, j])
        loss *= np.float32(count)
        if price[seed] < NONE and knobs.future > 0 and gain <= loss:
            gain += np.float32(knobs.future) * _saved(tuples, recent, plan.rows, count, picked)
        if price[seed] >= NONE or gain > loss:
            for z in range(count):
                link(plan.label, plan.first, plan.after, plan.before, plan.size, groups, plan.rows[z] - base)
            measure(x, kind, table, steps, plan.first, plan.after, plan.edge, plan.loss, groups)
            groups += 1
            stale = True
        else:
            for z in range(1, min(count, int(k * knobs.skip))):
                other = plan.rows[z] - base
                if price[other] < NONE:
                    tried[other] = True  # its nearest would grow the same box
    return groups


@bare
def _free(x, label, free, columns):
    """Side by side, the tuples that are in no group."""
    left = ZERO
    for i in range(label.shape[0]):
        if label[i] < 0:
            free[left] = i
            for j in range(x.shape[0]):
                columns[j, left] = x[j, i]
            left += 1
    return left


@kernel
def _nearest(near, left, wanted):
    """A distance within which at least ``wanted`` tuples lie, and not many more. O(left)."""
    most = np.float32(0)
    for c in range(left):
        most = max(most, near[c])
    if most <= 0:
        return most
    # a histogram instead of a sort; the last bucket must stay below 256
    scale = np.float32(255.99) / most
    often = np.zeros(256, np.int64)
    for c in range(left):
        often[int(near[c] * scale)] += 1
    within = 0
    for bucket in range(256):
        within += often[bucket]
        if within >= wanted:
            return np.float32(bucket + 1) / scale
    return most


@kernel
def _grow(x, kind, size, table, steps, seed, base, rules, work, few, who, near, found, ends, scratch, picked):
    """Members around a seed, as rows, into ``picked``; how many, 0 if no group keeps the promises."""
    q = x.shape[0]
    for j in range(q):
        ends[0, j] = x[j, seed]
        ends[1, j] = x[j, seed]
    picked[0] = base + seed
    count = ZERO + 1
    people = ZERO + 1
    promise = NOBODY  # one about sensitive values that the members do not keep yet
    _stamp(rules.person, work.stamp, work.seen_person, picked, count)
    while True:
        if people >= rules.k:
            promise = broken(rules, picked, count, work)
            if promise < 0:
                return count
            _stamp(rules.person, work.stamp, work.seen_person, picked, count)
        best = -1
        least = FAR
        if promise < 0:
            for c in range(found):
                if near[c] < least:
                    least = near[c]
                    best = c
        else:
            for c in range(found):
                if near[c] < least and work.count[rules.value[promise, base + who[c]]] < 0:
                    least = near[c]
                    best = c
            for v in range(rules.size[promise]):
                work.count[v] = 0.0
        if best < 0:
            return ZERO
        near[best] = FAR
        row = base + who[best]
        if rules.people:
            person = rules.person[row]
            if work.seen_person[person] == work.stamp[0]:
                continue  # a person repeated does not fill a group
            work.seen_person[person] = work.stamp[0]
        people += 1
        picked[count] = row
        count += 1
        for j in range(q):
            value = few[j, best]
            a = ends[0, j]
            b = ends[1, j]
            if value < a or value > b:
                c = min(a, value)
                d = max(b, value)
                ends[0, j] = c
                ends[1, j] = d
                widen_more(kind, size, table, steps, j, c, d, a, b, few[j], near, found, scratch[0], scratch[1])


@bare
def _stamp(person, stamp, seen, picked, count):
    stamp[0] += 1
    if person.shape[0]:
        for z in range(count):
            seen[person[picked[z]]] = stamp[0]


@kernel
def broken(rules, picked, count, work):
    """The first promise about sensitive values these members break, -1 if none.

    ``work.count`` is then negative for the values of which more would help; the caller clears it.
    """
    for s in range(rules.kind.shape[0]):
        total, holders = count_values(rules, s, picked, 0, count, work, work.count)
        counts = work.count
        fine = judge_counts(rules, s, counts, total, holders)
        most = 0.0
        for v in range(rules.size[s]):
            most = max(most, counts[v])
            if fine:
                counts[v] = 0.0
        if fine:
            continue
        for v in range(rules.size[s]):
            if rules.kind[s] >= T_EQUAL:
                rare = counts[v] / holders < rules.overall[s, v]
            else:
                rare = counts[v] == 0 or ((rules.kind[s] != DISTINCT or rules.people) and counts[v] < most)
                rare = rare and v != rules.missing[s]
            counts[v] = -1.0 if rare else 0.0
        return NOBODY + 1 + s
    return NOBODY


@kernel
def _saved(tuples, recent, rows, count, picked):
    """What recent tuples would have saved with the box of these members, on average."""
    q = tuples.tree.shape[0]
    low = np.empty(q)
    high = np.empty(q)
    level = np.empty(q, np.int8)
    node = np.empty(q, np.int64)
    loss = np.float32(box_of(tuples, rows, ZERO, count, low, high, level, node))
    known = min(recent.count[0], recent.price.shape[0])
    return saved(
        tuples.tree, recent.number, recent.node, recent.price, known, loss, low, high, level, node, picked
    )  # fmt: skip


@kernel
def release_plan(tuples, prints, rules, work, published, horizon, recent, knobs, start, slots, groups, plan, released):
    """First those who keep their box, then the groups; who fits neither joins a group or is withheld."""
    m = plan.label.shape[0]
    orphans = np.empty(m, np.int64)
    where = np.empty(m, np.int64)
    picked = np.empty(recent.price.shape[0] + 1, np.int64)
    alone = ZERO
    for i in range(m):
        if plan.label[i] < 0:
            orphans[alone] = start + i
            where[alone] = slots[i]
            alone += 1
    release_again(tuples, prints, rules, work, published, horizon, released, orphans, where, alone)
    count = alone
    alone = ZERO
    for z in range(count):
        if released.box[orphans[z]] == HELD:
            orphans[alone] = orphans[z]
            alone += 1
    if alone > 0:
        alone = _adopt(orphans, alone, start, rules, work, groups, plan)
    for g in range(groups):
        count = rows_of(plan.first, plan.after, plan.rows, g, start, NOBODY, NOBODY)
        if release_group(tuples, prints, rules, work, published, horizon, released, plan.rows, count):
            b = released.count[0] - 1
            loss = np.float32(released.loss[b])
            # a slow mean of what groups cost: a price above four times that is as good as none
            recent.ceiling[0] += (loss * np.float32(4) - recent.ceiling[0]) * np.float32(0.02)
            if knobs.future > 0:
                cheapen(
                    tuples.tree, recent.number, recent.node, recent.price,
                    min(recent.count[0], recent.price.shape[0]), loss,
                    released.low[b], released.high[b], released.level[b], released.node[b], picked,
                )  # fmt: skip
        else:
            for z in range(count):
                orphans[alone] = plan.rows[z]
                alone += 1
    if alone > 0 and not release_group(tuples, prints, rules, work, published, horizon, released, orphans, alone):
        for z in range(alone):
            released.box[orphans[z]] = WITHHELD


@kernel
def _adopt(orphans, alone, base, rules, work, groups, plan):
    """Put all orphans into the first group that keeps every promise with them, unless they do alone; who is left."""
    if holds(rules, orphans, ZERO, alone, work):
        return alone
    for g in range(groups):
        count = rows_of(plan.first, plan.after, plan.rows, g, base, NOBODY, NOBODY)
        for z in range(alone):
            plan.rows[count + z] = orphans[z]
        if holds(rules, plan.rows, ZERO, count + alone, work):
            for z in range(alone):
                link(plan.label, plan.first, plan.after, plan.before, plan.size, g, orphans[z] - base)
            return ZERO
    return alone
