"""The rebuilding of `local` beside a slow twin that recomputes every cost from the rows themselves.

All costs here are sums of halves, quarters and eighths, which floats add without rounding: the twin and the kernel see
the same ties, and draw the same numbers to break them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.kernels.shared.promises import workspace
from shoal.kernels.tables.local_groups import make_groups, new_draft
from shoal.kernels.tables.local_hooks import grows, only_counts_rows
from shoal.kernels.tables.local_pairs import make_pairs
from shoal.kernels.tables.local_rebuild import _rebuild
from shoal.kernels.tables.local_rest import LEAST, NEAREST, _nearest_rows, grow_region
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules

EIGHT = {"ad": {"ab": ["a", "b"], "cd": ["c", "d"]}, "eh": {"ef": ["e", "f"], "gh": ["g", "h"]}}
QUASI = {"n": Range(min=0, max=8), "t": Tree(nodes=EIGHT), "s": Suppress()}
ROWS = st.tuples(
    st.integers(0, 8), st.sampled_from("abcdefgh"), st.sampled_from("xy"), st.sampled_from("123"), st.integers(0, 7)
)
TABLES = st.lists(ROWS, min_size=6, max_size=20).map(
    lambda rows: code(
        pl.DataFrame(rows, schema=["n", "t", "s", "ill", "who"], orient="row"),
        Schema.build(quasi=QUASI, sensitive=["ill"], subject="who", weights={"n": 2.0}),
    )
)
MASK = (1 << 64) - 1


class Draws:
    """SplitMix64, as its definition says."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, count: int) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return min(count - 1, int(((z ^ (z >> 31)) >> 11) / 2**53 * count))


def cost(table: Table, rows: list[int]) -> float:
    """What one row of a group costs, by the definition."""
    codes = table.matrix[rows]
    low, high = codes.min(0, keepdims=True), codes.max(0, keepdims=True)
    return float(
        sum(
            w * x.ncp(low[:, j], high[:, j])[0]
            for j, (w, x) in enumerate(zip(table.weights, table.levels, strict=True))
        )
    )


def slowly(table: Table, k: int, l: int, draws: Draws) -> tuple[list[list[int]], float]:
    """All rows as one pool: groups grown from random rows by their cheapest rows, the rest to where it costs least."""
    person, ill = table.people, table.sensitive["ill"].codes
    rest = list(range(table.size))
    groups: list[list[int]] = []
    while len(rest) >= k:
        before, group = list(rest), [take(rest, draws.below(len(rest)))]
        while lack := lacking(group, person, ill, k, l):
            best = None
            first = draws.below(len(rest)) if rest else 0
            for step in range(1, len(rest) + 1):
                z = (first + step) % len(rest)
                helps = {
                    "rows": True,
                    "people": person is None or person[rest[z]] not in {person[r] for r in group},
                    "values": wants(group, person, ill, ill[rest[z]]),
                }[lack]
                if helps and (best is None or cost(table, [*group, rest[z]]) < cost(table, [*group, rest[best]])):
                    best = z
            if best is None:
                break
            group.append(take(rest, best))
        if lacking(group, person, ill, k, l):
            rest = [*rest, *reversed(group)]  # they stay where they were put: behind the rows left, last taken first
            assert sorted(rest) == sorted(before)
            if groups:
                break
            return [], np.inf
        groups.append(group)
    total = sum(len(g) * cost(table, g) for g in groups)
    for row in rest:
        prices = [
            np.inf  # of people with several values, one more row may make one value common to all
            if lacking([*g, row], person, ill, k, l)
            else len(g) * (cost(table, [*g, row]) - cost(table, g)) + cost(table, [*g, row])
            for g in groups
        ]
        if min(prices, default=np.inf) == np.inf:
            return [], np.inf
        at = prices.index(min(prices))
        total += prices[at]
        groups[at] = [*groups[at], row]
    return groups, total


def take(rest: list[int], z: int) -> int:
    """The last one moves to the place of the one that goes."""
    rest[z], rest[-1] = rest[-1], rest[z]
    return rest.pop()


def lacking(group, person, ill, k: int, l: int) -> str:
    if len(group) < k:
        return "rows"
    if person is not None and len({person[r] for r in group}) < k:
        return "people"
    return "values" if diversity(group, person, ill) < l else ""


def holders(group, person, ill) -> dict[int, int]:
    """How many people of a group hold each value."""
    pairs = {(ill[r], r if person is None else person[r]) for r in group}
    return Counter(value for value, _ in pairs)


def diversity(group, person, ill) -> int:
    """Different values, the commonest taken by their holders first, until nobody is left."""
    left, found = len(group) if person is None else len({person[r] for r in group}), 0
    for count in sorted(holders(group, person, ill).values(), reverse=True):
        found += left > 0
        left -= count
    return found


def wants(group, person, ill, value) -> bool:
    """Whether one more row of a value may help: a new one, or of people, one that fewer hold than the commonest."""
    held = holders(group, person, ill)
    return value not in held if person is None else held.get(value, 0) < max(held.values())


@given(TABLES, st.integers(2, 4), st.integers(1, 3), st.booleans(), st.integers(0, 1 << 40))
@settings(max_examples=120)
def test_a_rebuild_is_the_slow_one(table: Table, k: int, l: int, people: bool, seed: int) -> None:
    if not people:
        table = dataclasses.replace(table, people=None)
    rules = compile_rules(table, [KAnonymity(k), *([LDiversity(l, "ill")] if l > 1 else [])])
    pairs = make_pairs(table.shape())
    n, m = table.matrix.shape
    groups = make_groups(table.matrix, pairs, np.zeros(n, np.int32), n)
    draft, work = new_draft(n + k + 1, m), workspace(rules)
    ids = np.arange(n, dtype=np.int32)
    rest, part = np.arange(n + k + 1, dtype=np.int32), np.zeros((m, n + k + 1), np.int32)
    part[:, :n] = table.matrix.T

    def rebuilt(limit: float) -> tuple[int, float]:
        return _rebuild(
            table.matrix,
            ids,
            pairs,
            rules,
            bool(only_counts_rows(rules)),
            bool(grows(rules)),
            groups,
            np.zeros(5, np.int32),
            np.full(5, n, np.int64),
            1,
            ids,
            n,
            limit,
            draft,
            rest.copy(),
            part.copy(),
            np.empty(n + k + 1),
            np.empty(n + 1, np.int32),
            work,
            np.zeros(work.count.shape[0]),
            np.zeros((n + 1, rules.kind.shape[0], work.count.shape[0])),
            np.array([seed], np.uint64),
        )

    made, loss = rebuilt(np.inf)
    expected, total = slowly(table, k, l, Draws(seed))
    assert made == len(expected)
    if made:
        assert loss == total
        found = [np.flatnonzero(draft.label[:n] == g).tolist() for g in range(made)]
        assert found == [sorted(g) for g in expected]
        if loss > 0 and only_counts_rows(rules):  # a limit ends what would cost more, and nothing else
            assert rebuilt(loss + 1 / 64) == (made, loss)
            assert [np.flatnonzero(draft.label[:n] == g).tolist() for g in range(made)] == found
            assert rebuilt(loss - 1 / 64)[0] == 0


@given(st.integers(2, 60), st.integers(2, 7), st.integers(0, 1 << 40))
@settings(max_examples=40)
def test_a_region_grows_as_slowly(n: int, k: int, seed: int) -> None:
    """No two costs are equal here, so that only first rows are drawn."""
    random = np.random.default_rng(seed % 1000)
    frame = pl.DataFrame({"x": random.normal(size=n), "y": random.normal(size=n)})
    table = code(frame, Schema.build(quasi={"x": None, "y": None}))
    draws, line, expected = Draws(seed), list(range(n)), []
    while len(line) >= k:
        start = line[draws.below(len(line))]
        near = sorted(line, key=lambda row: cost(table, [start, row]) if row != start else -1)
        near = near[1 : max(LEAST, NEAREST * k)]
        group = [start]
        while len(group) < k:
            draws.below(1)  # where equal rows would be looked at first
            group.append(min(near, key=lambda row: cost(table, [*group, row])))
            near.remove(group[-1])
        expected.append(sorted(group))
        for place in sorted((line.index(row) for row in group), reverse=True):
            last = line.pop()
            if place < len(line):
                line[place] = last
    rules, labels = compile_rules(table, [KAnonymity(k)]), np.empty(n, np.int32)
    ids = np.arange(n, dtype=np.int32)
    made = grow_region(
        table.matrix, ids, make_pairs(table.shape()), rules, True, labels, 3, np.array([seed], np.uint64)
    )
    assert made == len(expected)
    assert [np.flatnonzero(labels == g + 3).tolist() for g in range(made)] == expected
    assert np.flatnonzero(labels < 0).tolist() == sorted(line)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.data())
@settings(max_examples=60)
def test_the_nearest_rows_are_those_of_the_least_prices(prices: list[int], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, len(prices)))
    near, heap = np.empty(len(prices), np.int64), np.empty(len(prices))
    _nearest_rows(np.array(prices, np.float64), len(prices), size, near, heap)
    assert len(set(near[:size].tolist())) == size
    assert sorted(prices[z] for z in near[:size]) == sorted(prices)[:size]
    assert prices[near[0]] == min(prices)
