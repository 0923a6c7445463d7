"""Promises as compiled checks: may these rows be one group? Used inside methods, never by the verifier.

A :class:`Rules` holds k and one entry per promise about a sensitive column. Where rows of one person repeat, ``person``
and ``pair`` (person and value together) say so, and people are counted instead of rows. What diversity and closeness of
people who hold several values mean is defined in ``shoal.promises.l_diversity`` and ``t_closeness``; :func:`packed` and
:func:`distance` are their twins.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import bare, kernel, light
from shoal.kernels.shared.sorting import ascend

# below T_EQUAL a group is judged by its own values, from there on beside the whole table's
DISTINCT, ENTROPY, RECURSIVE, FREQUENCY, ALPHA, T_EQUAL, T_ORDERED, T_HIERARCHICAL, BETA, BETA_ENHANCED = range(10)
SLACK = 1e-9  # floating point only: sums of shares are not exact


class Rules(NamedTuple):
    """What must hold of a group, as arrays; s entries about sensitive columns."""

    k: int
    person: np.ndarray  # int32[n], or empty: every row is a person
    people: int  # number of distinct persons (0 if rows are people)
    value: np.ndarray  # int32[s, n]: sensitive code of each row
    pair: np.ndarray  # int32[s, n], or [s, 0]: person and value together
    pairs: np.ndarray  # int64[s]
    kind: np.ndarray  # int64[s]
    bound: np.ndarray  # float64[s]: l, t, alpha or beta
    c: np.ndarray  # float64[s]: the c of recursive (c, l)
    size: np.ndarray  # int64[s]: number of distinct values
    overall: np.ndarray  # float64[s, most values]: share of all people (or rows) that hold a value
    # int32[s, most values, most levels]: the hierarchy of the sensitive column; of alpha, 1 where a value is not its
    node: np.ndarray
    depth: np.ndarray  # int64[s]
    missing: np.ndarray  # int64[s]: the code that is no value where people are counted, else -1


class Work(NamedTuple):
    """Scratch space of one thread; stamps make clearing free."""

    stamp: np.ndarray  # int64[1]
    seen_person: np.ndarray  # int64[people]
    seen_pair: np.ndarray  # int64[most pairs]
    count: np.ndarray  # float64[most values], zero between calls


@light
def workspace(rules):
    """Scratch space for :func:`holds`."""
    pairs = 0
    most = 1
    for s in range(rules.kind.shape[0]):
        pairs = max(pairs, rules.pairs[s])
        most = max(most, rules.size[s])
    return Work(
        np.zeros(1, np.int64), np.zeros(rules.people, np.int64), np.zeros(pairs, np.int64), np.zeros(most, np.float64)
    )


@bare
def people_in(rules, rows, start, stop, work):
    """How many people ``rows[start:stop]`` are. O(rows)."""
    if rules.people == 0:
        return stop - start
    work.stamp[0] += 1
    stamp = work.stamp[0]
    found = 0
    for at in range(start, stop):
        person = rules.person[rows[at]]
        if work.seen_person[person] != stamp:
            work.seen_person[person] = stamp
            found += 1
    return found


@kernel(steps=lambda rules, rows, start, stop, work: (stop - start + 8) * (1 + 4 * rules.kind.size))
def holds(rules, rows, start, stop, work):
    """Whether ``rows[start:stop]`` keep every promise as one group. O(rows + values) per promise."""
    if stop - start < rules.k:
        return False
    people = people_in(rules, rows, start, stop, work)
    if people < rules.k:
        return False
    for s in range(rules.kind.shape[0]):
        total, holders = count_values(rules, s, rows, start, stop, work, work.count)
        fine = judge_counts(rules, s, work.count, total, holders)
        for at in range(start, stop):
            work.count[rules.value[s, rows[at]]] = 0.0
        if not fine:
            return False
    return True


@bare
def count_values(rules, s, rows, start, stop, work, count):
    """Count people per value of promise s into ``count``, which the caller clears.

    Returns the sum of the counts, and how many people hold a value at all. For diversity a missing value is none.
    """
    work.stamp[0] += 1
    stamp = work.stamp[0]
    nothing = rules.missing[s] if rules.kind[s] < T_EQUAL else -1
    total = 0.0
    holders = 0.0
    for at in range(start, stop):
        row = rows[at]
        if rules.value[s, row] == nothing:
            continue
        if rules.people:
            pair = rules.pair[s, row]
            if work.seen_pair[pair] == stamp:
                continue
            work.seen_pair[pair] = stamp
            person = rules.person[row]
            if work.seen_person[person] != stamp:
                work.seen_person[person] = stamp
                holders += 1.0
        count[rules.value[s, row]] += 1.0
        total += 1.0
    return total, holders if rules.people else total


@kernel
def packed(count, size, holders):
    """The counts of people who hold several values, as if each held one: the commonest values take their people first.

    Where nobody holds a value, as if all held the same.
    """
    out = descending(count, size)
    if holders == 0.0:
        out[0] = 1.0
        return out
    left = holders
    for v in range(size):
        out[v] = min(out[v], left)
        left -= out[v]
    return out


@kernel
def descending(count, size):
    """The counts of ``size`` values, the largest first."""
    out = np.empty(size)
    for v in range(size):
        out[v] = -count[v]
    ascend(out, np.empty(size))
    for v in range(size):
        out[v] = -out[v]
    return out


@kernel
def is_void(rules, s):
    """Whether every group keeps promise s: l of at most 1 (not recursive), t or alpha of at least 1."""
    if rules.kind[s] >= BETA:
        return False
    if rules.kind[s] >= ALPHA:
        return rules.bound[s] >= 1.0
    return rules.kind[s] != RECURSIVE and rules.bound[s] <= 1.0


@bare
def judge_counts(rules, s, counts, total, holders):
    """Whether a group with these counts per value keeps promise s.

    ``total`` is their sum, ``holders`` the number of people (or rows) that hold a value: fewer if some hold several.
    """
    kind = rules.kind[s]
    bound = rules.bound[s]
    if kind == ALPHA:
        return largest_share(rules, s, counts, holders) <= bound + SLACK
    if kind >= T_EQUAL:
        return distance(rules, s, counts, holders) <= bound + SLACK
    if total > holders or holders == 0.0:
        return _judge_packed(rules, s, counts, holders)
    return _judge_values(rules, s, counts, total)


@kernel
def _judge_packed(rules, s, counts, holders):
    """Diversity of people who hold several values; apart, because it creates arrays."""
    return _judge_values(rules, s, packed(counts, rules.size[s], holders), max(1.0, holders))


@bare
def _judge_values(rules, s, count, total):
    """Diversity by counts of ``total`` people who hold one value each."""
    kind = rules.kind[s]
    size = rules.size[s]
    bound = rules.bound[s]
    if kind == DISTINCT:
        present = 0
        for v in range(size):
            present += count[v] > 0
        return present >= bound
    if kind == ENTROPY:
        entropy = 0.0
        for v in range(size):
            if count[v] > 0:
                entropy -= count[v] / total * np.log(count[v] / total)
        return entropy >= np.log(bound) - SLACK
    if kind == FREQUENCY:
        most = 0.0
        for v in range(size):
            most = max(most, count[v])
        return most * bound <= total
    first = int(bound) - 1
    if first >= size:
        return False
    most, rest = _most_and_rest(count, size, first)
    return most < rules.c[s] * rest - SLACK


@bare
def _most_and_rest(count, size, first):
    """The largest count, and the sum of all but the ``first`` largest; counts are whole numbers, so sums are exact."""
    rest = 0.0
    most, second, place = 0.0, 0.0, -1  # the two largest, which are nearly always all that is asked for
    top = -1
    for v in range(size):
        rest += count[v]
        if count[v] > most or top < 0:
            second, place = most, top
            most, top = count[v], v
        elif count[v] > second or place < 0:
            second, place = count[v], v
    if first > 0:
        rest -= most
    if first > 1:
        rest -= second
    last = second
    for _ in range(2, first):
        if last == 0.0:
            break
        found = -1  # the largest not looked at yet comes after the last one; equal ones stand by their place
        for v in range(size):
            behind = count[v] < last or (count[v] == last and v > place)
            if v != top and behind and (found < 0 or count[v] > count[found]):
                found = v
        last, place = count[found], found
        rest -= last
    return most, rest


@bare
def largest_share(rules, s, count, holders):
    """The largest share of a group's ``holders`` who have one of the values alpha speaks about.

    Where nobody holds a value, as if all held the same one; who speaks about some values only is not concerned.
    """
    most = 0.0
    free = 0
    for v in range(rules.size[s]):
        if rules.node[s, v, 0] != 0:
            free += 1
        elif holders > 0.0:
            most = max(most, count[v] / holders)
    if holders == 0.0 and free == 0:
        return 1.0
    return most


@bare
def gain(rules, s, count, holders):
    """The largest relative gain of a value's share over the whole table's (beta-likeness).

    The enhanced kind also bounds each by -ln of the share in the whole: beyond that it is infinite.
    """
    most = 0.0
    for v in range(rules.size[s]):
        if count[v] == 0.0:
            continue
        whole = rules.overall[s, v]
        if whole == 0.0:
            return np.inf
        more = (count[v] / holders - whole) / whole
        if rules.kind[s] == BETA_ENHANCED and more > SLACK - np.log(whole):
            return np.inf
        most = max(most, more)
    return most


@bare
def distance(rules, s, count, holders):
    """Earth mover's distance between the shares of a group's ``holders`` who have each value, and the whole table's.

    Of people with several values the shares need not add up to the same: the rest comes from outside, from farthest.
    Of beta-likeness it is the largest gain.
    """
    kind = rules.kind[s]
    if kind >= BETA:
        return gain(rules, s, count, holders)
    if kind == T_EQUAL:
        return min(1.0, _moved(rules.overall[s], count, rules.size[s], holders))
    if kind == T_ORDERED:
        return min(1.0, _ordered(rules.overall[s], count, rules.size[s], holders))
    return min(1.0, _hierarchical(rules, s, count, holders))


@bare
def _moved(overall, count, size, holders):
    plus = 0.0
    minus = 0.0
    for v in range(size):
        gap = count[v] / holders - overall[v]
        if gap > 0:
            plus += gap
        else:
            minus -= gap
    return max(plus, minus)


@bare
def _ordered(overall, count, size, holders):
    whole = 0.0
    for v in range(size):
        if overall[v] > 0.0:
            whole += count[v] / holders - overall[v]
    moved = 0.0
    carried = 0.0
    present = 0
    for v in range(size):
        if overall[v] == 0.0:
            continue  # nobody who is released has it: it is no step of the order
        if present:
            moved += max(abs(carried), abs(whole - carried))
        present += 1
        carried += count[v] / holders - overall[v]
    return moved / max(1, present - 1)


@kernel
def _hierarchical(rules, s, count, holders):
    size = rules.size[s]
    moved = 0.0
    nothing = np.zeros(size)
    for level in range(rules.depth[s] - 1):
        below = np.zeros(size)
        for v in range(size):
            below[rules.node[s, v, level]] += count[v] / holders - rules.overall[s, v]
        moved += _moved(nothing, below, size, 1.0) / (rules.depth[s] - 1)
    return moved
