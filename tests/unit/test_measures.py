"""Loss, risk and utility beside slow definitions."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.release import boxes_of, dense, read_alike
from shoal.core.schema import Column, Schema
from shoal.core.table import code
from shoal.measures.attack import join, members
from shoal.measures.loss import loss
from shoal.measures.risk import risk
from shoal.measures.utility import utility

NODES = {"n": {"x": ["a", "b"], "y": ["c"]}, "s": {"z": ["d", "e"]}}
PATHS = {leaf: [leaf, mid, top, "*"] for top, below in NODES.items() for mid, ls in below.items() for leaf in ls}
SCHEMA = Schema(
    {"town": Column("quasi", hierarchy=Tree(nodes=NODES)), "age": Column("quasi", hierarchy=Range(min=0, max=20))}
)
ROWS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(0, 20), st.integers(-1, 3)), min_size=1, max_size=30
).filter(lambda rows: any(g >= 0 for *_, g in rows))


def _case(rows):
    frame = pl.DataFrame({"town": [r[0] for r in rows], "age": [r[1] for r in rows]})
    table = code(frame, SCHEMA)
    labels = dense(np.array([rows[i][2] for i in table.rows], np.int32))
    ordered = [rows[i] for i in table.rows]
    return table, labels, boxes_of(table, labels), ordered


def _node(towns: set[str]) -> tuple[int, set[str]]:
    for level in range(4):
        labels = {PATHS[t][level] for t in towns}
        if len(labels) == 1:
            return level, {leaf for leaf, path in PATHS.items() if path[level] in labels}
    raise AssertionError


@settings(max_examples=60)
@given(ROWS, st.integers(1, 4))
def test_loss_is_its_definition(rows, k):
    table, labels, boxes, ordered = _case(rows)
    found = loss(table, labels, boxes, k=k)
    n = len(rows)
    groups = {g: [r for r, at in zip(ordered, labels, strict=True) if at == g] for g in set(labels.tolist()) - {-1}}
    gone = int((labels < 0).sum())
    town = age = cost = 0.0
    for members_of in groups.values():
        level, leaves = _node({t for t, *_ in members_of})
        town += len(members_of) * (len(leaves) / 5 if len(leaves) > 1 else 0)
        ages = [a for _, a, _ in members_of]
        age += len(members_of) * (max(ages) - min(ages)) / 20
        cost += len(members_of) * level / 3 + len(members_of) * _range_level(min(ages), max(ages)) / 5
    assert found.columns["town"] == pytest.approx((town + gone) / n)
    assert found.columns["age"] == pytest.approx((age + gone) / n)
    assert found.gcp == pytest.approx(((town + gone) / n + (age + gone) / n) / 2)
    assert found.discernibility == sum(len(g) ** 2 for g in groups.values()) + gone * n
    assert found.average_group == pytest.approx((n - gone) / len(groups) / k)
    assert found.generalization_cost == pytest.approx(cost + 2 * gone)
    assert found.entropy == pytest.approx(_entropy(ordered, groups, gone, labels))
    assert (found.rows, found.suppressed) == (n, gone)


def _range_level(low: int, high: int) -> int:
    """Levels above the leaves at which [0..20] halved at ⌈(lo+hi)/2⌉ no longer parts two numbers."""
    a, b, level = 0, 20, 5
    while level and low < high:
        middle = -((a + b) // -2)
        if (low >= middle) != (high >= middle):
            return level
        a, b = (middle, b) if low >= middle else (a, middle - 1)
        level -= 1
    return level if low < high else 0


def _entropy(ordered, groups, gone, labels) -> float:
    n = len(ordered)
    towns, ages = Counter(t for t, *_ in ordered), Counter(a for _, a, _ in ordered)
    lost = most = 0.0
    for (town, age, _), g in zip(ordered, labels.tolist(), strict=True):
        most += math.log2(n / towns[town]) + math.log2(n / ages[age])
        if g < 0:
            lost += math.log2(n / towns[town]) + math.log2(n / ages[age])
            continue
        leaves = _node({t for t, *_ in groups[g]})[1]
        inside = [a for _, a, _ in groups[g]]
        lost += math.log2(sum(c for t, c in towns.items() if t in leaves) / towns[town])
        lost += math.log2(sum(c for a, c in ages.items() if min(inside) <= a <= max(inside)) / ages[age])
    return lost / most if most else 0.0


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_risk_is_its_definition(sizes):
    found = risk(np.array(sizes))
    people = [1 / s for s in sizes for _ in range(s)]
    assert found.prosecutor == pytest.approx(max(people))
    assert found.average == found.marketer == pytest.approx(sum(people) / len(people))
    assert found.journalist == found.prosecutor
    assert found.unique == sizes.count(1)
    assert found.at_risk == pytest.approx(sum(p > 0.2 for p in people) / len(people))
    assert (found.people, found.groups) == (sum(sizes), len(sizes))


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), min_size=1, max_size=20))
def test_a_journalist_looks_at_the_population(pairs):
    sizes, world = np.array(pairs).T
    found = risk(sizes, world)
    real = [max(s, w) for s, w in pairs]
    assert found.journalist == pytest.approx(1 / min(real))
    assert found.marketer == pytest.approx(sum(s / w for s, w in zip(sizes, real, strict=True)) / sizes.sum())


@settings(max_examples=60)
@given(ROWS)
def test_utility_is_its_definition(rows):
    table, labels, boxes, ordered = _case(rows)
    found = utility(table, labels, boxes)
    # what a withheld row says is in no figure
    ordered = [row for row, g in zip(ordered, labels.tolist(), strict=True) if g >= 0]
    labels = labels[labels >= 0]
    ages = [a for _, a, _ in ordered]
    spread = []
    for (_, _, _), g in zip(ordered, labels.tolist(), strict=True):
        if g >= 0:
            own = [a for (_, a, _), at in zip(ordered, labels.tolist(), strict=True) if at == g]
            inside = [a for a in ages if min(own) <= a <= max(own)]
            spread.append(sum(inside) / len(inside))
    if len(set(ages)) > 1:
        before, after = found.means["age"]
        assert before == pytest.approx(np.mean(ages))
        assert after == pytest.approx(np.mean(spread))
    assert set(found.cross_tables) == {"town, age"}
    assert found.cross_tables["town, age"] == pytest.approx(_cross(ordered, labels.tolist()))


def _cross(ordered, labels) -> float:
    truth = Counter((t, a) for t, a, _ in ordered)
    towns, ages = Counter(t for t, *_ in ordered), Counter(a for _, a, _ in ordered)
    seen: Counter = Counter()
    for g in labels:
        if g < 0:
            continue
        own = [r for r, at in zip(ordered, labels, strict=True) if at == g]
        leaves = _node({t for t, *_ in own})[1]
        low, high = min(a for _, a, _ in own), max(a for _, a, _ in own)
        ts = {t: c for t, c in towns.items() if t in leaves}
        as_ = {a: c for a, c in ages.items() if low <= a <= high}
        for t, ct in ts.items():
            for a, ca in as_.items():
                seen[t, a] += ct / sum(ts.values()) * ca / sum(as_.values())
    n, m = sum(truth.values()), sum(seen.values())
    return sum(abs(truth[c] / n - seen[c] / m) for c in set(truth) | set(seen)) / 2


@settings(max_examples=30)
@given(st.lists(st.tuples(*[st.integers(0, 50)] * 3), min_size=3, max_size=30), st.data())
def test_correlations_are_numpys(rows, data):
    frame = pl.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    table = code(frame, Schema.build(quasi=dict.fromkeys("abc")))
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows))), np.int32)
    labels, boxes = read_alike(table, labels)
    found = utility(table, labels, boxes)
    for a, b in combinations([c for c in "abc" if frame[c].n_unique() > 1], 2):
        before, _ = found.correlations[f"{a}, {b}"]
        assert before == pytest.approx(np.corrcoef(frame[a], frame[b])[0, 1], abs=1e-9)


def test_an_attacker_with_the_hierarchy_knows_more_than_one_without():
    released = pl.DataFrame({"town": ["x", "c", "*"], "age": ["[3, 5]", "7", "≥18"]})
    register = pl.DataFrame({"town": ["a", "b", "c", "d"], "age": [4.0, 4.0, 7.0, 19.0]})
    nodes = {"town": members(Tree(nodes=NODES).compile(register["town"])[0])}
    found = join(released, register, ["town", "age"], nodes)
    assert (found.unique, found.none, found.smallest) == (2, 0, 1)
    assert found.expected == 2.5


def test_an_exact_number_finds_the_same_number_of_another_type():
    released = pl.DataFrame({"age": ["34", "35"]})
    register = pl.DataFrame({"age": [34.0, 36.0]})
    found = join(released, register, ["age"])
    assert (found.unique, found.none) == (1, 1)
