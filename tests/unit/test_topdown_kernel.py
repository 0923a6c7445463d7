"""Top-down greedy clustering against a slow twin of its parting and its mending."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.kernels.topdown import top_down


def cost(rows, values, weight):
    box = values[list(rows)]
    return sum(w * (b - a) for w, a, b in zip(weight, box.min(axis=0), box.max(axis=0), strict=True))


def part(order, values, weight, rounds):
    """Two parts around the last of the rows found by going to the farthest one, again and again."""
    first = second = order[0]
    for _ in range(rounds):
        others = [row for row in order if row != second] or [second]
        first, second = second, max(others, key=lambda row: cost([row, second], values, weight))
    left, right = [first], [second]
    sides: tuple[list[int], list[int]] = ([], [])
    for row in order:
        if row == first:
            sides[0].append(row)
            continue
        if row == second:
            sides[1].append(row)
            continue
        a, b = cost([*left, row], values, weight), cost([*right, row], values, weight)
        here = a < b or (a == b and len(sides[0]) <= len(sides[1]))
        (left if here else right).append(row)
        sides[0 if here else 1].append(row)
    return sides[0], sides[1][::-1]


def slow_parts(order, values, weight, k, rounds):
    if len(order) < 2 * k:
        return [order]
    a, b = part(order, values, weight, rounds)
    return slow_parts(b, values, weight, k, rounds) + slow_parts(a, values, weight, k, rounds)


def mend(groups, values, weight, k):
    groups = [sorted(g) for g in groups]
    for g in range(len(groups)):
        small = groups[g]
        if not 0 < len(small) < k or sum(map(bool, groups)) < 2:
            continue
        others = [h for h in range(len(groups)) if h != g and groups[h]]
        near = min(others, key=lambda h: cost(small + groups[h], values, weight))
        joined = (len(small) + len(groups[near])) * cost(small + groups[near], values, weight)
        join_cost = joined - len(groups[near]) * cost(groups[near], values, weight)
        donors = [h for h in others if len(groups[h]) >= 2 * k - len(small)]
        take_cost, grown, donor = np.inf, small, -1
        if donors:
            donor = min(donors, key=lambda h: cost(small + groups[h], values, weight))
            grown = list(small)
            while len(grown) < k:
                free = [row for row in groups[donor] if row not in grown]
                grown.append(min(free, key=lambda row: cost([*grown, row], values, weight)))
            rest = [row for row in groups[donor] if row not in grown]
            take_cost = k * cost(grown, values, weight) + len(rest) * cost(rest, values, weight)
            take_cost -= len(groups[donor]) * cost(groups[donor], values, weight)
        if take_cost < join_cost:
            groups[donor] = [row for row in groups[donor] if row not in grown]
            groups[g] = grown
        else:
            groups[near], groups[g] = groups[near] + small, []
    return {frozenset(g) for g in groups if g}


@given(st.integers(1, 20), st.integers(1, 4), st.integers(1, 4), st.data())
def test_one_parting_is_the_slow_one(n, columns, rounds, data):
    # less than 4k rows are parted once or twice, and powers of two make every sum exact: no tie hangs on rounding
    values = data.draw(arrays(np.float64, (n, columns), elements=st.integers(0, 16).map(float)))
    weight = 2.0 ** -np.arange(columns)
    k = max(1, n // 3)
    order = np.array(data.draw(st.permutations(range(n))))
    label = top_down(values, values, weight, order.copy(), k, rounds)
    found = {frozenset(np.flatnonzero(label == g).tolist()) for g in range(int(label.max()) + 1)}
    parts = slow_parts(order.tolist(), values, weight, k, rounds)
    if all(len(g) >= k for g in parts) or len(parts) == 1:
        assert found == {frozenset(g) for g in parts}
    else:
        assert sorted(map(sorted, found)) == sorted(map(sorted, mend(parts, values, weight, k))) or ties(values)


def ties(values):
    """Equal rows may change places among themselves: which one a donor gives away then depends on the chain."""
    return len(np.unique(values, axis=0)) < len(values)


@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 3))
def test_every_group_has_k_rows_if_there_are_as_many(n, k, seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([rng.normal(size=(n, 3)), np.zeros((n, 3)), rng.exponential(size=(n, 3)) ** 8])
    label = top_down(values, values, np.ones(3), rng.permutation(n), k, 3)
    sizes = np.bincount(label)
    assert sizes.sum() == n
    assert sizes.min() >= min(n, k)
