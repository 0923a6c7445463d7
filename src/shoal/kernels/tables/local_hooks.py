"""Promises inside `local`: which one fails, which value would help, and which rows of a crowd may stand together."""

import numpy as np

from shoal.kernels.compile import bare, kernel, light
from shoal.kernels.shared.promises import (
    ALPHA,
    BETA,
    DISTINCT,
    SLACK,
    T_EQUAL,
    count_values,
    distance,
    judge_counts,
    people_in,
)

KEPT = -2
FEW = -1  # too few people


@light
def only_counts_rows(rules):
    """Whether k rows are all that is asked."""
    return rules.people == 0 and rules.kind.shape[0] == 0


@light
def grows(rules):
    """Whether a group that keeps the promises keeps them with any row added: k does, and distinct l of single rows.

    Of people who have several rows, another row may give all of them one value in common.
    """
    for s in range(rules.kind.shape[0]):
        if rules.kind[s] != DISTINCT or rules.people:
            return False
    return True


@bare
def failing(rules, rows, start, stop, work, count):
    """The first promise that ``rows[start:stop]`` break as a group: KEPT, FEW, or its number.

    Then ``count`` holds the group's values of that promise; clear it with :func:`clear`.
    """
    # rows are cheaper to count than people, and there are never more people than rows
    if stop - start < rules.k:
        return np.int64(FEW)
    people = people_in(rules, rows, start, stop, work)
    if people < rules.k:
        return np.int64(FEW)
    for s in range(rules.kind.shape[0]):
        total, holders = count_values(rules, s, rows, start, stop, work, count)
        if not judge_counts(rules, s, count, total, holders):
            return np.int64(s)
        clear(rules, s, rows, start, stop, count)
    return np.int64(KEPT)


@bare
def tally(rules, held, row, step):
    """Count a row into ``held[s, value]`` (``step`` 1), or out of it (-1). Only where every row is a person."""
    for s in range(rules.kind.shape[0]):
        held[s, rules.value[s, row]] += step


@bare
def lacking(rules, held, total):
    """The first promise that a group of ``total`` single-row people breaks, and the size to look at it again.

    ``held[s, value]`` are its counts. Of t-closeness, a row more or less moves at most 1 / size of the mass: with a
    distance far above t, as many rows must come before another look can find it kept.
    """
    if total < rules.k:
        return np.int64(FEW), total + 1
    for s in range(rules.kind.shape[0]):
        if T_EQUAL <= rules.kind[s] < BETA:
            # the slack of the judge itself, or the two would disagree about a group that lies on the bound
            over = distance(rules, s, held[s], float(total)) - rules.bound[s] - SLACK
            if over > 0.0:
                return np.int64(s), total + max(1, int(np.ceil(total * over / (1.0 - min(over, 0.999)) - 1e-6)))
        elif not judge_counts(rules, s, held[s], float(total), float(total)):
            return np.int64(s), total + 1
    return np.int64(KEPT), total


@bare
def clear(rules, s, rows, start, stop, count):
    """Undo what :func:`failing` left."""
    for at in range(start, stop):
        count[rules.value[s, rows[at]]] = 0.0


@bare
def peak(rules, s, rows, start, stop, count):
    """The highest count of a value."""
    most = 0.0
    for at in range(start, stop):
        most = max(most, count[rules.value[s, rows[at]]])
    return most


@bare
def wanted(rules, s, count, total, most, value):
    """Whether one more row of ``value`` brings a group nearer to promise s; ``most`` is the highest count."""
    kind = rules.kind[s]
    # a missing value is no diversity
    if kind < T_EQUAL and value == rules.missing[s]:
        return False
    if kind == ALPHA and rules.node[s, value, 0] != 0:
        return True
    if kind == DISTINCT and not rules.people:
        return count[value] == 0.0
    if kind < T_EQUAL:
        return count[value] < most
    # a value below its share of the whole table pulls the group toward the table
    return count[value] < rules.overall[s, value] * total


@kernel
def trim(rules, rows, stop, work, count):
    """Reorder ``rows[:stop]`` so that a front part keeps the promises; its length, or 0.

    Rows of the most over-represented value leave first, a quarter of the surplus at a time. O(rows x values). Of
    t-closeness with equal distances, the size of the largest part is found first, and all surplus rows leave at once;
    of diversity, counts alone say how many rows of each value leave.
    """
    while True:
        s = failing(rules, rows, 0, stop, work, count)
        if s == KEPT:
            return stop
        if s == FEW:
            return 0
        # no row that leaves adds a value
        if rules.kind[s] == DISTINCT:
            clear(rules, s, rows, 0, stop, count)
            return 0
        if rules.kind[s] < ALPHA and rules.people == 0:
            before = stop
            stop = _drop_commonest(rules, s, rows, stop, count)
            clear(rules, s, rows, 0, before, count)
            if stop < rules.k:
                return 0
            continue
        if rules.kind[s] == T_EQUAL and rules.people == 0:
            keep = _largest(rules, s, count, stop)
            if keep < rules.k:
                clear(rules, s, rows, 0, stop, count)
                return 0
            before = stop
            stop = _drop_surplus(rules, s, rows, stop, keep, count)
            clear(rules, s, rows, 0, before, count)
            if stop < before:
                continue
            # nothing could leave at once: the counts were cleared and are needed again below
            failing(rules, rows, 0, stop, work, count)
        worst = -np.inf
        value = -1
        for v in range(rules.size[s]):
            if count[v] == 0.0 or (rules.kind[s] == ALPHA and rules.node[s, v, 0] != 0):
                continue
            surplus = count[v] - (rules.overall[s, v] * stop if rules.kind[s] >= T_EQUAL else 0.0)
            if rules.kind[s] >= BETA:  # a gain is relative
                surplus = count[v] / max(rules.overall[s, v] * stop, SLACK)
            if surplus > worst:
                worst = surplus
                value = v
        clear(rules, s, rows, 0, stop, count)
        if value < 0:  # nobody holds a value
            return 0
        # not the whole surplus: shares shift as rows leave, and the next look may find another value on top
        leave = max(1, int(worst / 4)) if T_EQUAL <= rules.kind[s] < BETA else 1
        at = stop - 1
        # from the end: rows stand nearest first, so the farthest of the value leave
        while at >= 0 and leave > 0:
            if rules.value[s, rows[at]] == value:
                stop -= 1
                rows[at], rows[stop] = rows[stop], rows[at]
                leave -= 1
            at -= 1


@kernel
def _drop_commonest(rules, s, rows, stop, count):
    """Move rows of the commonest value behind the others, one by one, until promise s is kept; how many stay, or 0.

    Until then no value has more rows than some cap: the lowest that breaks the promise is found by halving, as a lower
    one only makes values more even. Where one row of each value breaks it, nothing keeps it.
    """
    size = rules.size[s]
    whole = count[:size].copy()
    if not judge_counts(rules, s, count, *_capped(whole, 1.0, count)):
        return 0
    kept, broken = 1.0, 0.0
    for v in range(size):
        broken = max(broken, whole[v])
    while broken - kept > 1.0:
        middle = np.floor((kept + broken) / 2.0)
        if judge_counts(rules, s, count, *_capped(whole, middle, count)):
            kept = middle
        else:
            broken = middle
    total, _ = _capped(whole, broken, count)
    while not judge_counts(rules, s, count, total, total):
        value = 0
        for v in range(size):
            if count[v] > count[value]:
                value = v
        if count[value] == 0.0:
            return 0
        count[value] -= 1.0
        total -= 1.0
    for at in range(stop - 1, -1, -1):  # from the end: rows stand nearest first, so the farthest of a value leave
        value = rules.value[s, rows[at]]
        if value != rules.missing[s] and whole[value] > count[value]:
            whole[value] -= 1.0
            stop -= 1
            rows[at], rows[stop] = rows[stop], rows[at]
    return stop


@bare
def _capped(whole, cap, count):
    """Counts cut down to ``cap`` into ``count``; their sum, twice."""
    total = 0.0
    for v in range(whole.shape[0]):
        count[v] = min(whole[v], cap)
        total += count[v]
    return total, total


@kernel
def _largest(rules, s, count, total):
    """Rows of the largest part that may be t-close: the share of mass that its values can match falls as it grows."""
    least, most = 0, total
    while least < most:
        middle = (least + most + 1) // 2
        matched = 0.0
        for v in range(rules.size[s]):
            matched += min(count[v], rules.overall[s, v] * middle)
        if matched >= (1.0 - rules.bound[s] - SLACK) * middle:
            least = middle
        else:
            most = middle - 1
    return least


@kernel
def _drop_surplus(rules, s, rows, stop, keep, count):
    """Move rows of over-represented values behind the others, ``keep`` rows to stay; how many stay."""
    surplus = 0.0
    for v in range(rules.size[s]):
        surplus += max(0.0, count[v] - rules.overall[s, v] * keep)
    if surplus <= 0.0:
        return stop
    # more surplus than rows to drop: every value gives the same share of its own
    share = min(1.0, (stop - keep) / surplus)
    for v in range(rules.size[s]):
        count[v] = np.floor(max(0.0, count[v] - rules.overall[s, v] * keep) * share)
    end = stop
    for at in range(end - 1, -1, -1):
        value = rules.value[s, rows[at]]
        if count[value] > 0.0:
            count[value] -= 1.0
            stop -= 1
            rows[at], rows[stop] = rows[stop], rows[at]
    return stop
