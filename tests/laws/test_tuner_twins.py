"""Every tuner beside its slow twin on random windows: the definition alone, and p_k by comparing sets."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shoal.measures.zk_model import Model
from shoal.streams.steering import Evaluation, Found, Goal, by_model, incremental, search

Row = tuple[int, int, int, int]  # person, leaf, and how many people show the leaf and its parent
rows = st.lists(
    st.tuples(st.integers(0, 7), st.integers(1, 6), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=30
)
goals = st.builds(Goal, st.integers(2, 4), st.sampled_from([0.2, 0.5, 0.8, 1.0]))


def window(given_rows: list[Row]) -> list[Row]:
    """A value has one count, and its parent at least as much."""
    count = {leaf: c for _, leaf, c, _ in given_rows}
    more = {leaf: d for _, leaf, _, d in given_rows}
    parent = {p: max(count[v] + more[v] for v in count if v % 2 == p) for p in {v % 2 for v in count}}
    return [(who, leaf, count[leaf], parent[leaf % 2]) for who, leaf, _, _ in given_rows]


def evaluation_of(part: list[Row], goal: Goal) -> Evaluation:
    people = np.array([r[0] + 1 for r in part], np.int64)
    chains = np.array([[r[1], 100 + r[1] % 2] for r in part], np.int64)
    counts = np.array([[r[2], r[3]] for r in part], np.int32)
    return Evaluation((people, chains, counts), goal, True, 64)


def slow_p(part: list[Row], z: int, k: int) -> float:
    """Every person's set of released nodes, and how many have the same one."""
    shown: dict[int, set[int]] = {r[0]: set() for r in part}
    for who, leaf, own, above in part:
        if own >= z:
            shown[who].add(leaf)
        elif above >= z:
            shown[who].add(100 + leaf % 2)
    sets = [frozenset(s) for s in shown.values()]
    return sum(sets.count(s) >= k for s in sets) / len(sets)


def ended(steps: Generator[None, None, Found]) -> Found:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@settings(max_examples=150, deadline=None)
@given(rows, goals, st.integers(1, 5), st.integers(0, 12))
def test_search_finds_a_z_that_reaches_the_goal_beside_one_that_does_not(given_rows, goal, low, start):
    part = window(given_rows)
    z, p, reached, lower = ended(search(evaluation_of(part, goal), low, 1000, start))
    most = max(low, max(max(r[2], r[3]) for r in part) + 1)
    slow = {at: slow_p(part, at, goal.k) for at in range(low, most + 1)}
    assert low <= z <= most
    assert p == slow[z]
    assert reached == (slow[z] >= goal.probability)
    if reached:
        assert z == low or slow[z - 1] < goal.probability
        assert lower == (None if z == low else slow[z - 1])
    else:
        assert slow[most] < goal.probability  # releasing nothing at all would not do, either


@settings(max_examples=150, deadline=None)
@given(rows, goals, st.integers(1, 4), st.integers(1, 15), st.floats(0, 1), st.integers(1, 3))
def test_incremental_moves_one_step_towards_the_goal(given_rows, goal, low, z, measured, step):
    part = window(given_rows)
    found = ended(incremental(evaluation_of(part, goal), low, 1000, z, measured, step, False))
    most = max(low, max(max(r[2], r[3]) for r in part) + 1)
    wanted = z
    if measured < goal.probability:
        wanted = z + step
    elif measured > goal.probability:
        wanted = z - step
    wanted = min(max(wanted, low), most)
    assert found.z == wanted
    assert found.p == slow_p(part, wanted, goal.k)
    later = slow_p(part, most, goal.k)
    assert found.reached == (found.p >= goal.probability or (wanted != most and later >= goal.probability))


@settings(max_examples=15, deadline=None)
@given(rows, st.sampled_from([0.3, 0.8]))
def test_the_model_tuner_takes_the_least_z_the_model_says(given_rows, target):
    shown = {leaf: len({r[0] for r in given_rows if r[1] == leaf}) for _, leaf, _, _ in given_rows}
    above = {half: len({r[0] for r in given_rows if r[1] % 2 == half}) for half in (0, 1)}
    part = [(who, leaf, shown[leaf], above[leaf % 2]) for who, leaf, _, _ in given_rows]
    found = ended(by_model(evaluation_of(part, Goal(2, target)), 1, 1000, 1, target))
    people = len({r[0] for r in part})
    model = Model(users=max(2, people), exposed=np.array([c / people for c in shown.values()]), windows=1)
    most = max(max(r[2], r[3]) for r in part) + 1
    told = {z: model.p_k(z, 2, samples=2000) for z in range(1, most + 1)}
    # drawn from samples, in an order of the attributes that may be another: on the border either answer is right
    assume(all(abs(p.value - target) > 4 * p.error for p in told.values() if p.error))
    reach = [z for z, p in told.items() if p.value >= target]
    assert found.z == (reach[0] if reach else most)
