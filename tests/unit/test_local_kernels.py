"""The kernels of `local` beside slow and obvious twins."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.kernels.shared.promises import holds, workspace
from shoal.kernels.tables import local_lattice as lattice
from shoal.kernels.tables.local_groups import make_groups
from shoal.kernels.tables.local_hooks import trim, wanted
from shoal.kernels.tables.local_index import nearest
from shoal.kernels.tables.local_line import best_cuts
from shoal.kernels.tables.local_pairs import make_pairs, mixed
from shoal.kernels.tables.local_rest import absorb, grow_region, union_costs
from shoal.kernels.tables.local_withhold import broken, outliers
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules
from shoal.promises.t_closeness import TCloseness
from shoal.tables import improve as python
from shoal.tables.local_prices import _levels, every_vector, open_tuples
from shoal.tables.local_withhold import members

QUASI = {"age": Range(), "zip": Prefix(3), "job": Tree(nodes={"office": ["clerk", "judge"], "sea": ["pilot"]})}
ROWS = st.tuples(
    st.none() | st.integers(0, 9),
    st.sampled_from(["101", "102", "119", "201"]),
    st.sampled_from(["clerk", "judge", "pilot"]),
    st.sampled_from("abc"),
)
TABLES = st.lists(ROWS, min_size=4, max_size=24).map(
    lambda rows: code(
        pl.DataFrame(rows, schema={"age": pl.Int64, "zip": str, "job": str, "ill": str}, orient="row"),
        Schema.build(quasi=QUASI, sensitive=["ill"], weights={"age": 2.0}),
    )
)


def cost(table: Table, rows: np.ndarray) -> float:
    """What one row of a group costs, by the definition."""
    codes = table.matrix[rows]
    low, high = codes.min(0, keepdims=True), codes.max(0, keepdims=True)
    return sum(
        w * x.ncp(low[:, j], high[:, j])[0] for j, (w, x) in enumerate(zip(table.weights, table.levels, strict=True))
    )


@given(st.lists(st.none() | st.integers(0, 12), min_size=1, max_size=10), st.integers(1, 4))
@settings(max_examples=60)
def test_cuts_of_one_column_cost_least_of_all_cuts(values: list[int | None], k: int) -> None:
    frame = pl.DataFrame({"age": values}, schema={"age": pl.Int64})
    table = code(frame, Schema.build(quasi={"age": Range()}))
    codes = np.sort(table.matrix[:, 0])
    table = replace(table, matrix=codes[:, None])

    def total(labels: np.ndarray) -> float:
        return sum(float((labels == g).sum()) * cost(table, labels == g) for g in np.unique(labels))

    labels = best_cuts(codes, make_pairs(table.shape()), k)
    assert (np.diff(labels) >= 0).all()
    every = [np.cumsum([0, *ends]) for ends in itertools.product([0, 1], repeat=table.size - 1)]
    kept = [one for one in every if np.bincount(one).min() >= k] or [np.zeros(table.size, int)]
    assert abs(total(labels) - min(map(total, kept))) < 1e-9
    assert np.bincount(labels).min() >= min(k, table.size)
    boxes = [(codes[labels == g].min(), codes[labels == g].max()) for g in np.unique(labels)]
    assert len(set(boxes)) == len(boxes)  # groups that read alike are one


def grouped(table: Table, data: st.DataObject) -> np.ndarray:
    return python.dense(
        np.array(data.draw(st.lists(st.integers(0, 4), min_size=table.size, max_size=table.size)), np.int32)
    )


@given(TABLES)
@settings(max_examples=40)
def test_pair_tables_equal_the_loss_of_levels(table: Table) -> None:
    pairs = make_pairs(table.shape())
    for j, levels in enumerate(table.levels):
        for low in range(levels.size):
            for high in range(low, levels.size):
                ends = np.array([low], np.int32), np.array([high], np.int32)
                at = pairs.table[pairs.start[j] + low * levels.size + high]
                assert abs(at - table.weights[j] * levels.ncp(*ends)[0]) < 1e-12


@given(TABLES, st.data())
@settings(max_examples=60)
def test_nearest_equals_a_search_of_all_groups(table: Table, data: st.DataObject) -> None:
    labels = grouped(table, data)
    pairs = make_pairs(table.shape())
    groups = make_groups(table.matrix, pairs, labels, labels.max() + 3)
    row = data.draw(st.integers(0, table.size - 1))
    crowd = float(data.draw(st.integers(1, 6)))
    best, score = np.empty(2, np.int32), np.empty(2)
    found = nearest(
        python.make_index(pairs, groups), pairs, groups.size, table.matrix, row, labels[row], crowd, best, score
    )
    prices = []
    for g in set(labels.tolist()) - {int(labels[row])}:
        own = np.flatnonzero(labels == g)
        joined = cost(table, np.append(own, row))
        prices.append(joined + (joined - cost(table, own)) * max(crowd, len(own)))
    assert found == min(2, len(prices))
    assert np.allclose(score[:found], sorted(prices)[:found])


@given(TABLES, st.data())
@settings(max_examples=40)
def test_groups_hold_boxes_costs_and_members(table: Table, data: st.DataObject) -> None:
    labels = grouped(table, data)
    pairs = make_pairs(table.shape())
    groups = make_groups(table.matrix, pairs, labels, labels.max() + 1)
    costs = union_costs(pairs, groups.low, groups.high, 0)
    for g in range(labels.max() + 1):
        rows = np.flatnonzero(labels == g)
        seen, at = [], groups.head[g]
        while at >= 0:
            seen.append(at)
            at = groups.next[at]
        assert sorted(seen) == rows.tolist()
        assert groups.size[g] == len(rows)
        assert abs(groups.cost[g] - cost(table, rows)) < 1e-12
        assert abs(costs[g] - cost(table, np.flatnonzero((labels == g) | (labels == 0)))) < 1e-12


@given(TABLES)
@settings(max_examples=40)
def test_marks_are_equal_where_codes_share_a_node(table: Table) -> None:
    pairs = make_pairs(table.shape())
    chosen, depth = _levels(pairs)
    tree = lattice.make_tree(pairs, chosen, depth)
    for j, levels in enumerate(table.levels):
        for at in range(depth[j]):
            node = levels.codes[:, chosen[j, at]]
            mark = tree.mark[tree.offset[j] + np.arange(levels.size) * depth[j] + at]
            assert ((node[:, None] == node) == (mark[:, None] == mark)).all()
    assert len({tuple(v) for v in every_vector(depth)}) == np.prod(depth)


@given(TABLES, st.integers(1, 4))
@settings(max_examples=40)
def test_opened_tuples_keep_k_and_leave_fewer_than_k_rows(table: Table, k: int) -> None:
    rules = compile_rules(table, [KAnonymity(k)])
    labels = open_tuples(table.matrix, make_pairs(table.shape()), rules)
    assert (np.bincount(labels[labels >= 0]) >= k).all()
    assert (labels < 0).sum() < k


@given(TABLES, st.sampled_from(["t", "entropy", "frequency", "recursive", "distinct"]), st.integers(1, 4))
@settings(max_examples=80)
def test_trim_leaves_a_part_that_keeps_the_promises(table: Table, kind: str, k: int) -> None:
    promise = TCloseness(0.2, "ill") if kind == "t" else LDiversity(2, "ill", kind=kind)
    rules = compile_rules(table, [KAnonymity(k), promise])
    rows = np.arange(table.size, dtype=np.int32)
    whole = holds(rules, rows, 0, table.size, workspace(rules))
    work = workspace(rules)
    count = np.zeros(len(work.count))
    size = trim(rules, rows, table.size, work, count)
    assert sorted(rows) == list(range(table.size))
    assert size == table.size or not whole
    assert size == 0 or holds(rules, rows, 0, size, work)
    assert not count.any()


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=60),
    st.sampled_from(["entropy", "frequency", "recursive"]),
    st.sampled_from([1.3, 2.0, 2.7, 3.0]),
    st.integers(1, 8),
)
@settings(max_examples=150)
def test_trim_of_diversity_drops_rows_of_the_commonest_value_one_by_one(
    held: list[int], kind: str, l: float, k: int
) -> None:
    """The slow twin: a row of the commonest value leaves, the last one first, until the definition is kept."""
    l = float(np.ceil(l)) if kind == "recursive" else l
    promise = LDiversity(l, "s", kind=kind, c=1.5)
    frame = pl.DataFrame({"x": range(len(held)), "s": [f"v{v}" for v in held]})
    table = code(frame, Schema.build(quasi={"x": None}, sensitive=["s"]))
    rules = compile_rules(table, [KAnonymity(k), promise])
    work = workspace(rules)
    rows = np.arange(table.size, dtype=np.int32)
    size = trim(rules, rows, table.size, work, np.zeros(len(work.count)))
    stay = list(range(table.size))
    codes = table.sensitive["s"].codes
    while len(stay) >= k and not holds(rules, np.array(stay, np.int32), 0, len(stay), workspace(rules)):
        counts = np.bincount(codes[stay], minlength=6)
        stay.remove([row for row in stay if codes[row] == counts.argmax()][-1])
    assert sorted(rows[:size].tolist()) == (stay if len(stay) >= k else [])


@given(TABLES, st.sampled_from(["t", "entropy", "distinct"]))
@settings(max_examples=40)
def test_a_wanted_value_never_takes_a_group_away_from_its_promise(table: Table, kind: str) -> None:
    promise = TCloseness(0.0, "ill") if kind == "t" else LDiversity(3, "ill", kind=kind)
    rules = compile_rules(table, [promise])
    size = len(table.sensitive["ill"].values)
    count = np.bincount(table.sensitive["ill"].codes[: table.size // 2], minlength=size).astype(float)
    total = count.sum()

    def far(counts: np.ndarray) -> float:
        share = counts / counts.sum()
        if kind == "t":
            return float(np.maximum(share - rules.overall[0, :size], 0).sum())
        present = share[share > 0]
        return float((present * np.log(present)).sum()) if kind == "entropy" else -float((counts > 0).sum())

    for value in range(size):
        after = count.copy()
        after[value] += 1
        one_step = 1 / (total + 1) if kind == "t" else 1e-12  # a rare value may overshoot by less than one row
        # of entropy, "less frequent than the most frequent" is a rule of thumb; up to the mean it is certain to rise
        certain = kind != "entropy" or after[value] <= max(1, total / (count > 0).sum())
        if wanted(rules, 0, count, total, count.max(), value) and certain:
            assert far(after) <= far(count) + one_step


@given(TABLES, st.integers(1, 3), st.data())
@settings(max_examples=60)
def test_outliers_equal_trying_every_row(table: Table, k: int, data: st.DataObject) -> None:
    labels = grouped(table, data)
    rules = compile_rules(table, [KAnonymity(k)])
    order, begin = members(labels)
    whole = float(table.weights.sum())
    gain, row = outliers(table.matrix, order, begin, make_pairs(table.shape()), rules, whole)
    for g in range(labels.max() + 1):
        rows = np.flatnonzero(labels == g)
        gains = [0.0]
        if len(rows) > k:
            now = len(rows) * cost(table, rows)
            gains += [now - whole - (len(rows) - 1) * cost(table, rows[rows != r]) for r in rows]
        assert abs(gain[g] - max(gains)) < 1e-8
        assert (row[g] >= 0) == (max(gains) > 1e-8)
    sizes = np.bincount(labels)
    first = int(np.argmax(sizes < 3)) if (sizes < 3).any() else -1
    assert broken(order, begin, compile_rules(table, [KAnonymity(3)])) == first


@given(TABLES, st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=40)
def test_grown_regions_keep_the_promises_and_absorb_places_the_rest(table: Table, k: int, seed: int) -> None:
    rules = compile_rules(table, [KAnonymity(k), LDiversity(2, "ill")])
    pairs = make_pairs(table.shape())
    labels = np.empty(table.size, np.int32)
    ids = np.arange(table.size, dtype=np.int32)
    made = grow_region(table.matrix, ids, pairs, rules, False, labels, 0, np.array([seed], np.uint64))
    work = workspace(rules)
    assert made == labels.max() + 1
    for g in range(made):
        rows = np.flatnonzero(labels == g).astype(np.int32)
        assert holds(rules, rows, 0, len(rows), work)
    if made:
        groups = make_groups(table.matrix, pairs, labels, made)
        rest = np.flatnonzero(labels < 0)
        absorb(table.matrix, ids, rest, groups, python.make_index(pairs, groups), pairs, rules, True)
        assert groups.label.min() >= 0
        for g in range(made):
            assert abs(groups.cost[g] - cost(table, np.flatnonzero(groups.label == g))) < 1e-9


@given(st.integers(0, 2**64 - 1))
def test_random_numbers_are_those_of_their_definition(number: int) -> None:
    mask = 2**64 - 1
    z = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    expected = z ^ z >> 31
    assert int(mixed(np.uint64(number))) == expected
    assert int(python.mixed(np.array([number], np.uint64))[0]) == expected
