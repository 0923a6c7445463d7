"""The forest's kernels beside slow and obvious twins, and its bounds beside brute force."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.kernels.tables.decompose import decompose
from shoal.kernels.tables.forest import build, plant
from shoal.kernels.tables.neighbours import _scan, edge_cost, edge_part, nearest_outside, pair_costs
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules
from shoal.tables.base import groups_of
from shoal.tables.forest import Forest, crowd_of, largest, oversized

CODES = st.tuples(st.integers(0, 9), st.sampled_from(["aa", "ab", "ba", "bb", "cc"]), st.sampled_from("xyz"))
WEIGHTS = st.sampled_from([{}, {"n": 2.5}, {"s": 0.25, "p": 3.0}])


def make(rows: list[tuple], weights: dict[str, float]) -> Table:
    frame = pl.DataFrame(rows, schema=["n", "p", "s"], orient="row")
    quasi = {"n": Range(min=0, max=9), "p": Prefix(2), "s": Suppress()}
    return code(frame, Schema.build(quasi=quasi, weights=weights))


def distance(table: Table, a: int, b: int) -> float:
    """The cost of an edge by its definition, level by level."""
    total = 0.0
    for j, levels in enumerate(table.levels):
        x, y = table.matrix[a, j], table.matrix[b, j]
        level = next(at for at in range(levels.depth) if levels.codes[x, at] == levels.codes[y, at])
        total += table.weights[j] * level / (levels.depth - 1) if levels.depth > 1 else 0.0
    return total


@settings(max_examples=40)
@given(rows=st.lists(CODES, min_size=2, max_size=25), weights=WEIGHTS, data=st.data())
def test_the_nearest_row_outside_is_the_nearest(rows, weights, data):
    table = make(rows, weights)
    n = table.size
    component = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    row = data.draw(st.integers(0, n - 1))
    start, cost = pair_costs(table.shape())
    found, length = nearest_outside(crowd_of(table), table.shape(), start, cost, component, row)
    outside = [distance(table, row, other) for other in range(n) if component[other] != component[row]]
    if not outside:
        assert found == -1
        return
    assert component[found] != component[row]
    assert abs(length - min(outside)) < 1e-9
    assert abs(distance(table, row, int(found)) - length) < 1e-9
    assert abs(edge_cost(table.shape(), table.matrix[row], table.matrix[found]) - length) < 1e-9


@settings(max_examples=60)
@given(rows=st.lists(CODES, min_size=2, max_size=60), weights=WEIGHTS, data=st.data())
def test_of_equally_near_rows_the_same_is_found_by_search_and_by_looking_at_all(rows, weights, data):
    table = make(rows, weights)
    shape, crowd, n = table.shape(), crowd_of(table), table.size
    component = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    row = data.draw(st.integers(0, n - 1))
    mine = crowd.tuples[crowd.of_row[row]]

    def visited(other: int) -> tuple:
        """How far in all; then column by column how far, on which side, and how many codes away."""
        total, keys = 0.0, []
        for d, j in enumerate(crowd.column):
            code = int(crowd.tuples[crowd.of_row[other], d])
            total += edge_part(shape, j, mine[d], code)
            keys += [total, code < mine[d], abs(code - int(mine[d]))]
        return total, keys

    outside = [int(other) for other in crowd.members if component[other] != component[row]]
    expected = min(outside, key=visited, default=-1)
    far = visited(expected)[0] if outside else np.inf
    start, cost = pair_costs(shape)
    assert nearest_outside(crowd, shape, start, cost, component, row) == (expected, far)
    assert _scan(crowd, shape, start, cost, component, row, -1, np.inf) == (expected, far)


@settings(max_examples=40)
@given(rows=st.lists(CODES, min_size=2, max_size=25), weights=WEIGHTS, k=st.integers(1, 6), seed=st.integers(0, 9))
def test_the_forest_grows_by_the_cheapest_edge_out_of_a_small_component(rows, weights, k, seed):
    table = make(rows, weights)
    n = table.size
    k = min(k, n)
    order = np.random.default_rng(seed).permutation(n)
    target, length, component = build(crowd_of(table), table.shape(), compile_rules(table, [KAnonymity(k)]), order)
    parts = [{row} for row in range(n)]  # replayed with sets
    where = list(range(n))
    for row in order:
        while len(parts[where[row]]) < k:
            own = parts[where[row]]
            (u,) = [x for x in own if target[x] < 0 or target[x] not in own]  # one vertex has no edge within
            v = int(target[u])
            assert v not in own, "no cycle"
            assert abs(length[u] - min(distance(table, u, x) for x in range(n) if x not in own)) < 1e-9
            other = parts[where[v]]
            own |= other
            for x in other:
                where[x] = where[row]
    used = [parts[w] for w in set(where)]
    assert all(len(part) >= k for part in used)
    assert {frozenset(np.flatnonzero(component == c).tolist()) for c in component} == {frozenset(p) for p in used}
    assert all(sum(target[x] < 0 for x in part) == 1 for part in used), "a tree has one vertex without an edge out"


@settings(max_examples=60)
@given(parents=st.lists(st.integers(0, 10**6), min_size=1, max_size=45), k=st.integers(2, 8))
def test_components_are_cut_while_they_can_be(parents, k):
    """Random trees: every part has k real rows, and none is larger than proven."""
    n = len(parents) + 1
    if n < k:
        return
    target = np.array([-1, *[p % (at + 1) for at, p in enumerate(parents)]])
    rows = [(i % 10, "aa", "x") for i in range(n)]
    rules = compile_rules(make(rows, {}), [KAnonymity(k)])
    labels, groups = decompose(plant(target, k), rules, oversized(k))
    sizes = np.bincount(labels, minlength=groups)
    assert sizes.sum() == n
    assert sizes.min() >= k
    assert sizes.max() <= largest(k)


def partitions(rows: tuple[int, ...], k: int):
    """All partitions of rows into groups of k to 2k - 1 (a larger group can be parted without cost)."""
    if not rows:
        yield []
        return
    first, rest = rows[0], rows[1:]
    for size in range(k - 1, min(len(rest), 2 * k - 2) + 1):
        for others in itertools.combinations(rest, size):
            left = tuple(r for r in rest if r not in others)
            if 0 < len(left) < k:
                continue
            for more in partitions(left, k):
                yield [(first, *others), *more]


def optimum(table: Table, k: int) -> float:
    """The least generalization cost of any k-anonymous grouping."""

    @cache
    def cost(group: tuple[int, ...]) -> float:
        return generalization(table, group)

    return min(sum(cost(g) for g in p) for p in partitions(tuple(range(table.size)), k))


def generalization(table: Table, group) -> float:
    """c(h) of section 1.4.3 for one group."""
    total = 0.0
    for j, levels in enumerate(table.levels):
        codes = table.matrix[list(group), j]
        level = next(at for at in range(levels.depth) if len(set(levels.codes[codes, at].tolist())) == 1)
        total += table.weights[j] * level / max(1, levels.depth - 1)
    return total * len(group)


@settings(max_examples=25)
@given(rows=st.lists(CODES, min_size=4, max_size=8), weights=WEIGHTS, k=st.integers(2, 3), seed=st.integers(0, 3))
def test_the_forest_costs_no_more_than_the_optimum(rows, weights, k, seed):
    """The lemma of section 2.3.3."""
    table = make(rows, weights)
    order = np.random.default_rng(seed).permutation(table.size)
    _, length, _ = build(crowd_of(table), table.shape(), compile_rules(table, [KAnonymity(k)]), order)
    assert length.sum() <= optimum(table, k) + 1e-9


@settings(max_examples=25)
@given(rows=st.lists(CODES, min_size=4, max_size=8), weights=WEIGHTS, k=st.integers(2, 3), seed=st.integers(0, 3))
def test_the_groups_cost_at_most_the_bound_times_the_optimum(rows, weights, k, seed):
    """The theorem of section 2.3.5: max(2k - 1, 3k - 5)."""
    table = make(rows, weights)
    labels = Forest().group(table, [KAnonymity(k)], seed=seed).labels
    cost = sum(generalization(table, np.flatnonzero(labels == g)) for g in np.unique(labels))
    assert cost <= oversized(k) * optimum(table, k) + 1e-9


@pytest.mark.parametrize("asked", [[KAnonymity(3)], [KAnonymity(2), LDiversity(2, "d")]])
def test_regions_of_a_large_table_keep_promises(monkeypatch, asked):
    import shoal.tables.forest as forest

    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {"n": rng.integers(0, 10, 120), "s": rng.choice(list("abc"), 120), "d": rng.integers(0, 3, 120)}
    )
    table = code(frame, Schema.build(quasi={"n": Range(min=0, max=9), "s": Suppress()}, sensitive=["d"]))
    monkeypatch.setattr(forest, "MOST_CELLS", 10)
    monkeypatch.setattr(forest, "REGION", 20)
    made = forest.Forest().group(table, asked, seed=1)
    groups = groups_of(table, made.labels)
    assert groups.count > 6  # not one group per region
    assert all(promise.judge(groups).kept for promise in asked)
    assert (made.labels >= 0).all()
