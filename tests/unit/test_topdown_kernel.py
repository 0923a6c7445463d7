"""Top-down greedy clustering against a slow twin: powers of two make every sum exact, so no tie hangs on rounding."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.kernels.shared.topdown import top_down


def cost(rows, values, weight):
    box = values[list(rows)]
    return sum(w * (b - a) for w, a, b in zip(weight, box.min(axis=0), box.max(axis=0), strict=True))


def part(order, values, weight, rounds, grown):
    """Two parts around the last of the rows found by going to the farthest one, again and again."""
    first = second = order[0]
    for _ in range(rounds):
        others = [row for row in order if row != second] or [second]
        first, second = second, max(others, key=lambda row: cost([row, second], values, weight))
    left, right = [first], [second]
    sides: tuple[list[int], list[int]] = ([], [])
    for row in order:
        if row in (first, second):
            sides[0 if row == first else 1].append(row)
            continue
        to_group = cost([*left, row], values, weight), cost([*right, row], values, weight)
        to_seed = cost([first, row], values, weight), cost([second, row], values, weight)
        a, b = to_group if grown or to_seed[0] == to_seed[1] else to_seed
        here = a < b or (a == b and len(sides[0]) <= len(sides[1]))
        (left if here else right).append(row)
        sides[0 if here else 1].append(row)
    return sides[0], sides[1][::-1]


def slow_parts(order, values, weight, k, rounds, grown):
    if len(order) < 2 * k:
        return [order]
    a, b = part(order, values, weight, rounds, grown)
    return [g for half in (b, a) for g in slow_parts(half, values, weight, k, rounds, grown)]


def mend(groups, values, weight, k):
    """Small groups take from a large one or join another; a list has the row that came last first."""
    groups = [sorted(g) for g in groups]
    for small in groups:
        others = [h for h in groups if h is not small and h]
        if not 0 < len(small) < k or not others:
            continue
        near = min(others, key=lambda h: cost(small + h, values, weight))
        joined = (len(small) + len(near)) * cost(small + near, values, weight) - len(near) * cost(near, values, weight)
        donors = [h for h in others if len(h) >= 2 * k - len(small)]
        take_cost, taken, donor = np.inf, [], []
        if donors:
            donor = min(donors, key=lambda h: cost(small + h, values, weight))
            while len(small) + len(taken) < k:
                free = [row for row in donor if row not in taken]
                taken.append(min(free, key=lambda row: cost([*small, *taken, row], values, weight)))
            rest = [row for row in donor if row not in taken]
            take_cost = k * cost(small + taken, values, weight) + len(rest) * cost(rest, values, weight)
            take_cost -= len(donor) * cost(donor, values, weight)
        if take_cost < joined:
            for row in taken:
                donor.remove(row)
                small.insert(0, row)
        else:
            for row in small:
                near.insert(0, row)
            small.clear()
    return [g for g in groups if g]


@settings(max_examples=200)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 4), st.booleans(), st.data())
def test_the_groups_are_those_of_the_slow_twin(n, columns, rounds, grown, data):
    values = data.draw(arrays(np.float64, (n, columns), elements=st.integers(0, 16).map(float)))
    weight = 2.0 ** -np.arange(columns)
    k = data.draw(st.integers(1, n))
    order = np.array(data.draw(st.permutations(range(n))))
    label = top_down(values, values, weight, order.copy(), k, rounds, grown)
    slow = mend(slow_parts(order.tolist(), values, weight, k, rounds, grown), values, weight, k)
    expected = np.empty(n, np.int64)
    for g, rows in enumerate(slow):
        expected[rows] = g
    assert label.tolist() == expected.tolist()


@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 3))
def test_every_group_has_k_rows_if_there_are_as_many(n, k, seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([rng.normal(size=(n, 3)), np.zeros((n, 3)), rng.exponential(size=(n, 3)) ** 8])
    label = top_down(values, values, np.ones(3), rng.permutation(n), k, 3)
    sizes = np.bincount(label)
    assert sizes.sum() == n
    assert sizes.min() >= min(n, k)
