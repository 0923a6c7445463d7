"""A plan being made: groups as linked lists of tuples, and the moves that make it cheaper."""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.delay.window import widen, width
from shoal.kernels.shared.promises import holds

NONE = np.float32(2)  # the price of a tuple that no published box contains
FAR = np.float32(1e9)
NOBODY = np.int64(-1)
ZERO = np.int64(0)  # typed, because a literal would compile every kernel once more
STAY = -2  # where a member may go: nowhere, back to its published box (-1), or to another group
LEAST = np.float32(-1e-5)  # a change that saves less is no change


class Plan(NamedTuple):
    """The groups so far: members as linked lists, and the two outermost values of each column at both ends."""

    label: np.ndarray  # int64[m]: group, -1 for none
    first: np.ndarray  # int64[groups]
    after: np.ndarray  # int64[m]
    before: np.ndarray  # int64[m]
    size: np.ndarray  # int64[groups]
    edge: np.ndarray  # float32[groups, q, 4]: least, second least, second greatest, greatest
    loss: np.ndarray  # float32[groups]
    rows: np.ndarray  # int64[m]: scratch for members, as rows of all tuples


@kernel
def new_plan(m, groups, q):
    """A plan of m tuples without groups."""
    return Plan(
        np.full(m, -1, np.int64),
        np.full(groups, -1, np.int64),
        np.full(m, -1, np.int64),
        np.full(m, -1, np.int64),
        np.zeros(groups, np.int64),
        np.zeros((groups, q, 4), np.float32),
        np.zeros(groups, np.float32),
        np.empty(m, np.int64),
    )


@bare
def link(label, first, after, before, size, group, i):
    """Put a tuple into a group."""
    label[i] = group
    before[i] = -1
    after[i] = first[group]
    if after[i] >= 0:
        before[after[i]] = i
    first[group] = i
    size[group] += 1


@bare
def _unlink(label, first, after, before, size, i):
    group = label[i]
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        first[group] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]
    label[i] = -1
    size[group] -= 1


@bare
def measure(x, kind, table, steps, first, after, edge, loss, group):
    """The loss of a group's box and its outermost values. O(members x columns)."""
    total = np.float32(0)
    for j in range(x.shape[0]):
        low = FAR
        low2 = FAR
        high = -FAR
        high2 = -FAR
        i = first[group]
        while i >= 0:
            value = x[j, i]
            if value < low:
                low2 = low
                low = value
            elif value < low2:
                low2 = value
            if value > high:
                high2 = high
                high = value
            elif value > high2:
                high2 = value
            i = after[i]
        edge[group, j, 0] = low
        edge[group, j, 1] = low2
        edge[group, j, 2] = high2
        edge[group, j, 3] = high
        total += width(kind, table, steps, j, low, high)
    loss[group] = total


@bare
def swapped(x, kind, table, steps, edge, group, out, come):
    """The loss of a group's box without member ``out`` and with tuple ``come`` (-1: nobody). O(columns)."""
    total = np.float32(0)
    for j in range(x.shape[0]):
        low = edge[group, j, 0]
        high = edge[group, j, 3]
        if out >= 0:
            value = x[j, out]
            if value == low:
                low = edge[group, j, 1]
            if value == high:
                high = edge[group, j, 2]
        if come >= 0:
            value = x[j, come]
            low = min(low, value)
            high = max(high, value)
        total += width(kind, table, steps, j, low, high)
    return total


@bare
def rows_of(first, after, rows, group, base, out, come):
    """The rows of a group without ``out`` and with ``come``, into ``rows``; how many."""
    count = ZERO
    i = first[group]
    while i >= 0:
        if i != out:
            rows[count] = base + i
            count += 1
        i = after[i]
    if come >= 0:
        rows[count] = base + come
        count += 1
    return count


@kernel
def join_rest(window, price, base, rules, work, groups, plan):
    """What is in no group joins the one it costs least, if that beats its price and keeps every promise.

    O(groups x columns) per tuple.
    """
    x, kind, table, steps = window.x, window.kind, window.table, window.steps
    first, after, size, edge, loss = plan.first, plan.after, plan.size, plan.edge, plan.loss
    for i in range(plan.label.shape[0]):
        if plan.label[i] >= 0:
            continue
        best = NOBODY
        most = price[i] if price[i] < NONE else FAR
        for g in range(groups):
            with_it = swapped(x, kind, table, steps, edge, g, NOBODY, i)
            more = with_it * np.float32(size[g] + 1) - loss[g] * np.float32(size[g])
            if more < most:
                most = more
                best = g
        if best < 0:
            continue
        if rules.kind.shape[0] > 0:  # one more never breaks k, but may make a group less diverse
            count = rows_of(first, after, plan.rows, best, base, NOBODY, i)
            if not holds(rules, plan.rows, ZERO, count, work):
                continue
        link(plan.label, first, after, plan.before, size, best, i)
        measure(x, kind, table, steps, first, after, edge, loss, best)


@kernel
def search(window, price, base, rules, work, passes, groups, plan):
    """Move or swap the outermost members of groups while that saves something. O(groups x m x columns) per pass."""
    x, kind, codes, table, steps = window.x, window.kind, window.size, window.table, window.steps
    label, first, after, before = plan.label, plan.first, plan.after, plan.before
    size, edge, loss, rows = plan.size, plan.edge, plan.loss, plan.rows
    gain = np.zeros(x.shape[1], np.float32)
    scratch = np.zeros(codes.max(), np.float32)
    likely = np.zeros(x.shape[1] + 1, np.int64)
    choice = np.zeros(2, np.int64)
    saving = np.zeros(1, np.float32)
    easy = rules.kind.shape[0] == 0 and not _repeats(rules, base, x.shape[1], work)
    for _ in range(passes):
        changes = 0
        for g in range(groups):
            i = first[g]
            while i >= 0:
                following = after[i]
                without = swapped(x, kind, table, steps, edge, g, i, NOBODY) if size[g] > 1 else FAR
                if without < loss[g]:
                    rest = without * np.float32(size[g] - 1) - loss[g] * np.float32(size[g])
                    _move(x, kind, table, steps, edge, size, loss, price, groups, rules.k, g, i, rest, choice, saving)
                    count = _without(x, kind, codes, table, steps, edge, loss, g, i, gain, scratch, likely)
                    _swap(
                        x, kind, table, steps, label, edge, size, loss, price, g, i, gain, likely, count, choice, saving
                    )
                    if choice[0] != STAY and (easy or _fine(first, after, rows, rules, work, base, g, i, choice)):
                        _make(label, first, after, before, size, g, i, choice)
                        measure(x, kind, table, steps, first, after, edge, loss, g)
                        if choice[0] >= 0:
                            measure(x, kind, table, steps, first, after, edge, loss, choice[0])
                        changes += 1
                i = following
        if changes == 0:
            break


@kernel
def _repeats(rules, base, m, work):
    if rules.people == 0:
        return False
    work.stamp[0] += 1
    for i in range(m):
        person = rules.person[base + i]
        if work.seen_person[person] == work.stamp[0]:
            return True
        work.seen_person[person] = work.stamp[0]
    return False


@bare
def _move(x, kind, table, steps, edge, size, loss, price, groups, k, g, i, rest, choice, saving):
    """The best place for member i outside its group; what that saves goes to ``saving``."""
    best = LEAST
    choice[0] = STAY
    choice[1] = -1
    if size[g] > k:
        if price[i] < NONE and rest + price[i] < best:
            best = rest + price[i]
            choice[0] = -1
        for h in range(groups):
            if h != g:
                more = swapped(x, kind, table, steps, edge, h, NOBODY, i) * np.float32(size[h] + 1)
                change = rest + more - loss[h] * np.float32(size[h])
                if change < best:
                    best = change
                    choice[0] = h
    saving[0] = best


@bare
def _without(x, kind, codes, table, steps, edge, loss, g, i, gain, scratch, likely):
    """``gain[y]``: the loss of group g with tuple y in place of member i; those below its loss go to ``likely``.

    O(m x columns), many at a time.
    """
    m = gain.shape[0]
    for y in range(m):
        gain[y] = 0
    for j in range(x.shape[0]):
        value = x[j, i]
        low = edge[g, j, 1] if value == edge[g, j, 0] else edge[g, j, 0]
        high = edge[g, j, 2] if value == edge[g, j, 3] else edge[g, j, 3]
        widen(kind, codes, table, steps, j, low, high, x[j], gain, m, scratch)
    count = np.int64(0)
    for y in range(m):
        likely[count] = y
        count += gain[y] < loss[g]
    return count


@bare
def _swap(x, kind, table, steps, label, edge, size, loss, price, g, i, gain, likely, count, choice, saving):
    """The tuple that had better stand in member i's place, if that saves more than moving it."""
    best = saving[0]
    members = np.float32(size[g])
    old = loss[g] * members
    for p in range(count):
        y = likely[p]
        h = label[y]
        if h == g:
            continue
        change = gain[y] * members - old
        if h >= 0:
            change += (swapped(x, kind, table, steps, edge, h, y, i) - loss[h]) * np.float32(size[h])
        elif price[i] < NONE:
            change += price[i] - price[y]
        else:
            continue
        if change < best:
            best = change
            choice[0] = h
            choice[1] = y


@kernel
def _fine(first, after, rows, rules, work, base, g, i, choice):
    """Whether both groups keep every promise after the change."""
    count = rows_of(first, after, rows, g, base, i, choice[1])
    if not holds(rules, rows, ZERO, count, work):
        return False
    if choice[0] < 0:
        return True
    count = rows_of(first, after, rows, choice[0], base, choice[1], i)
    return holds(rules, rows, ZERO, count, work)


@bare
def _make(label, first, after, before, size, g, i, choice):
    _unlink(label, first, after, before, size, i)
    other = choice[1]
    if other >= 0:
        if choice[0] >= 0:
            _unlink(label, first, after, before, size, other)
        link(label, first, after, before, size, g, other)
    if choice[0] >= 0:
        link(label, first, after, before, size, choice[0], i)
