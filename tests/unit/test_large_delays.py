"""What keeps pauses short where very many tuples are held, beside slow and obvious twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels.delay.castle_clusters import clusters_of, members, merge, no_hulls
from shoal.kernels.delay.castle_pieces import pieces
from shoal.kernels.delay.crowds import rank
from shoal.kernels.delay.fads import sketched
from shoal.kernels.delay.near import BLOCK, closest, sketch_of
from shoal.kernels.delay.stream_boxes import Tuples, pair_cost
from shoal.kernels.shared.fingerprint import distinct
from shoal.kernels.shared.heap import drop, heapify
from shoal.kernels.shared.promises import workspace
from shoal.streams.coder import Coded
from shoal.streams.waiting import COLUMNS, Waiting
from tests.unit.test_stream_kernels import rules_of, tuples

NOUGHT = np.int64(0)
KEYS = st.lists(st.integers(0, 9).map(float), max_size=40)


@given(KEYS)
def test_a_heap_gives_the_least_first_and_of_equal_ones_the_first(keys: list[float]) -> None:
    key, number = np.array(keys), np.arange(len(keys))
    heapify(key, number, np.int64(len(keys)))
    left, out = np.int64(len(keys)), []
    while left:
        out.append((float(key[0]), int(number[0])))
        left = drop(key, number, left)
    assert out == sorted(zip(keys, range(len(keys)), strict=True))


def numbers_only(scaled: Any) -> Tuples:
    """Two columns of numbers, each with half of the weight."""
    none, ones, nodes = np.zeros(2), np.ones(2, np.int64), np.zeros((len(scaled), 2, 1), np.int64)
    return Tuples(scaled, scaled, nodes, nodes / 1, none > 0, ones, none + 0.5, none, none + 1)


def slow_near(made: Tuples, box: Any, row: int, known: int) -> list[tuple[float, int]]:
    parts = made.tree, made.weight, made.scaled, made.node, made.cost
    return sorted((float(pair_cost(*parts, row, r)), r) for r in range(row + 1, known) if box[r] == -1)


def near(
    made: Tuples, box: Any, row: int, known: int, reach: float, most: int
) -> tuple[list[tuple[float, int]], float]:
    return near_in(sketch_of(made, box), made, box, row, known, reach, most)


def near_in(
    sketch: Any, made: Tuples, box: Any, row: int, known: int, reach: float, most: int
) -> tuple[list[tuple[float, int]], float]:
    key, number = np.empty(len(box) + BLOCK), np.empty(len(box) + BLOCK, np.int64)
    numbers = np.int64(row), np.int64(known), np.float64(reach), np.int64(most)
    count, within = closest(made, sketch, box, *numbers, key, number)
    return sorted(zip(key[:count].tolist(), number[:count].tolist(), strict=True)), float(within)


@given(tuples(), st.data())
def test_the_nearest_are_all_within_the_distance_that_is_said(made: Any, data: st.DataObject) -> None:
    n = len(made[1])
    box = np.array(data.draw(st.lists(st.sampled_from([-1, -1, -2, -3, 5]), min_size=n, max_size=n)), np.int64)
    known = data.draw(st.integers(1, n))
    row, most = data.draw(st.integers(0, known - 1)), data.draw(st.integers(1, 5))
    reach = data.draw(st.sampled_from([0.0, 0.2, 0.5, np.inf]))
    found, within = near(made[0], box, row, known, reach, most)
    assert within <= reach
    assert found == [pair for pair in slow_near(made[0], box, row, known) if pair[0] < within]
    assert within == reach or len(found) < n


def test_of_many_tuples_few_are_looked_at_and_none_is_missed() -> None:
    rng = np.random.default_rng(4)
    n = 2 * BLOCK + 77
    scaled = rng.integers(0, 1000, (n, 2)) / 2000
    scaled[rng.random(n) < 0.05, 0] = -1.0
    made = numbers_only(scaled)
    box = np.full(n, -1, np.int64)
    for row in (0, 5, BLOCK, n - 2, n - 1):
        found, within = near(made, box, row, n, np.inf, 50)
        assert found == [pair for pair in slow_near(made, box, row, n) if pair[0] < within]
    assert 50 <= len(near(made, box, 0, n, np.inf, 50)[0]) < 400


def test_no_block_that_has_one_of_the_nearest_is_left_out() -> None:
    """Trees beside numbers, some missing, some gone, more blocks than are looked at."""
    rng = np.random.default_rng(6)
    n, weight = 9 * BLOCK + 31, np.array([0.5, 0.3, 0.2])
    scaled, node, cost = np.zeros((n, 3)), np.zeros((n, 3, 3), np.int64), np.zeros((n, 3, 3))
    scaled[:, 0] = rng.integers(0, 1000, n) / 2000
    scaled[rng.random(n) < 0.05, 0] = -1.0
    for j, leaves in ((1, rng.geometric(0.1, n)), (2, rng.integers(0, 6, n))):
        node[:, j] = np.stack([leaves * 7919 + j, leaves // 4 * 104729 + j, np.full(n, j)], axis=1)
        cost[:, j] = np.array([0.0, 0.25, 1.0]) * weight[j]
    tree, depth = np.array([False, True, True]), np.array([1, 3, 3])
    made = Tuples(scaled, scaled, node, cost, tree, depth, weight, np.zeros(3), np.ones(3))
    box = np.where(rng.random(n) < 0.2, 3, -1)
    for row in (0, 7, BLOCK, n - BLOCK, n - 3):
        for most, reach in ((5, np.inf), (300, np.inf), (10_000, np.inf), (300, 0.05), (5, 0.3)):
            found, within = near(made, box, row, n - 2, reach, most)
            slow = slow_near(made, box, row, n - 2)
            assert found == [pair for pair in slow if pair[0] < within]
            assert within == reach or len(found) >= min(most, len(slow)) * 0.9


@given(st.integers(0, 99), st.integers(1, 3 * BLOCK), st.integers(0, BLOCK), st.integers(0, BLOCK))
def test_a_sketch_goes_on_with_who_comes_and_without_who_left(seed: int, old: int, new: int, left: int) -> None:
    rng = np.random.default_rng(seed)
    left = min(left, old - 1)
    scaled = rng.integers(0, 1000, (old + new, 2)) / 2000
    scaled[rng.random(old + new) < 0.05, 0] = -1.0
    before, now = numbers_only(scaled[:old]), numbers_only(scaled[left:])
    sketch = sketch_of(before, np.full(old, -1, np.int64))
    box = np.where(rng.random(old + new - left) < 0.2, 3, -1)
    again = sketched(now, box, sketch, np.int64(left), np.int64(old - left))
    for row in {0, len(box) // 2, len(box) - 1}:
        for most, reach in ((5, np.inf), (300, np.inf), (50, 0.05)):
            found, within = near_in(again, now, box, row, len(box), reach, most)
            assert found == [pair for pair in slow_near(now, box, row, len(box)) if pair[0] < within]
            assert within == reach or len(found) >= min(most, int((box[row + 1 :] == -1).sum())) * 0.9


@given(tuples(), st.integers(1, 3), st.integers(1, 12), st.data())
def test_a_large_cluster_is_cut_into_pieces_that_each_could_leave(
    made: Any, k: int, most: int, data: st.DataObject
) -> None:
    n = len(made[1])
    people = np.array(data.draw(st.lists(st.integers(0, 20), min_size=n, max_size=n)), np.int32)
    rules, rows = rules_of(people, k), np.arange(n)[::-1].copy()
    ends = pieces(made[0], rules, workspace(rules), rows, np.int64(n), np.int64(most)).tolist()
    assert sorted(rows.tolist()) == list(range(n))
    assert ends[-1] == n
    if n <= most:
        assert ends == [n]
        assert rows.tolist() == list(range(n))[::-1]
    if len(ends) > 1:
        for start, end in zip([0, *ends], ends, strict=False):
            assert len(set(people[rows[start:end]].tolist())) >= 2 * k


def test_many_different_tuples_are_cut_into_small_pieces() -> None:
    rng = np.random.default_rng(4)
    n = 3000
    scaled = rng.integers(0, 1000, (n, 2)) / 2000
    made = numbers_only(scaled)
    rules, rows = rules_of(np.arange(n, dtype=np.int32), 5), np.arange(n)
    ends = pieces(made, rules, workspace(rules), rows, np.int64(n), np.int64(100)).tolist()
    sizes = np.diff([0, *ends])
    assert sizes.max() <= 100
    assert sizes.min() >= 20
    widths = [np.ptp(scaled[rows[a:b]], axis=0).sum() for a, b in zip([0, *ends], ends, strict=False)]
    assert np.mean(widths) < 0.3  # of 1: near ones stand together


@given(tuples(), st.data())
def test_clusters_are_merged_as_by_a_plain_search(made: Any, data: st.DataObject) -> None:
    """The cluster that makes the box cheapest, of equal ones the first; also if none is left before there are k."""
    n, parts = len(made[1]), made[0]
    mark = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), np.int64)
    people = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), np.int32)
    k, own = data.draw(st.integers(1, 12)), int(mark[0])
    clusters = clusters_of(mark, np.full(n, -1, np.int64), np.int64(n), no_hulls(6, 3, 3))
    alive = np.isin(np.arange(6), mark)
    sizes, rows, rules = np.ones(6, np.int64), np.empty(n, np.int64), rules_of(people, k)
    count = merge(parts, rules, workspace(rules), alive, sizes, clusters, np.int64(own), rows)

    def loss(group: list[int]) -> float:
        total = 0.0
        for j in range(3):
            values = parts.scaled[group, j]
            there = values[values >= 0]
            if parts.tree[j]:
                total += max(_meet(parts, group[0], m, j) for m in group)
            elif 0 < len(there) < len(values):
                total += float(parts.weight[j])
            else:
                total += float(np.ptp(there)) if len(there) else 0.0
        return total

    group, left = np.flatnonzero(mark == own).tolist(), [c for c in np.flatnonzero(alive).tolist() if c != own]
    merged = {own}
    while len(set(people[group].tolist())) < k and left:
        best = min(left, key=lambda c: round(loss(group + np.flatnonzero(mark == c).tolist()), 9))
        left.remove(best)
        merged.add(best)
        group += np.flatnonzero(mark == best).tolist()
    if len(set(people[group].tolist())) < k:
        assert count == 0
        assert (sizes == 1).all()
        assert members(clusters, np.int64(own), rows, NOUGHT) == (mark == own).sum()
    else:
        assert rows[:count].tolist() == group
        assert {int(c) for c in np.flatnonzero(sizes < 0)} == merged


def _meet(parts: Tuples, a: int, b: int, j: int) -> float:
    level = next(at for at in range(parts.node.shape[2]) if parts.node[a, j, at] == parts.node[b, j, at])
    return float(parts.cost[a, j, level])


@given(st.lists(st.integers(-1, 6), min_size=1, max_size=12), st.integers(1, 12))
def test_the_use_by_the_k_th_latest_person(stamps: list[int], k: int) -> None:
    k = min(k, len(stamps))
    kth = np.zeros(1, np.int64)
    rank(np.array([stamps], np.int64), kth, np.int64(k), NOUGHT)
    assert kth[0] == sorted(stamps, reverse=True)[k - 1]


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 400)),
        st.tuples(st.just("leave"), st.integers(0, 2**31)),
        st.tuples(st.just("oldest"), st.integers(1, 300)),
        st.tuples(st.just("sweep"), st.sampled_from([0, 2, 4])),
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(MOVES)
def test_who_waits_stands_in_order_whatever_was_moved(moves: list[tuple[str, int]]) -> None:
    empty = Coded(
        *(np.zeros((0, 1)) for _ in range(2)), np.zeros((0, 1, 1), np.int64), np.zeros((0, 1, 1)),
        np.zeros(0, np.uint8), np.zeros((0, 1), np.int32), 0,
    )  # fmt: skip
    waiting, there, came = Waiting(empty, 1, 50), [], 0
    for what, number in moves:
        if what == "add":
            new = np.arange(came, came + number)
            part = new.reshape(-1, 1)
            coded = Coded(part / 1, part / 1, part[:, :, None], part[:, :, None] / 1, new.astype(np.uint8), part, 0)
            columns = {name: new.copy() for name in COLUMNS}
            waiting.add(pl.DataFrame({"at": new}), coded, new[None].astype(np.int32), columns)
            there, came = there + new.tolist(), came + number
        elif what == "sweep":
            waiting.sweep(share=number)
        elif there:
            rng = np.random.default_rng(number)
            gone = set(there[:number]) if what == "oldest" else {e for e in there if rng.random() < 0.3}
            waiting.leave(waiting.rows[np.isin(waiting.column("event")[waiting.rows], list(gone))])
            there = [event for event in there if event not in gone]
        rows = waiting.rows
        assert waiting.left == len(there)
        assert waiting.column("event")[rows].tolist() == there
        assert waiting.coded.number[rows, 0].tolist() == there
        assert waiting.codes(rows)[0].tolist() == there
        if there:
            assert waiting.frame(rows)["at"].to_list() == there


def test_numbers_in_runs_are_told_apart_as_fast_as_random_ones() -> None:
    """Two runs that differ by a power of two made every look as long as a run: seconds here, if it were so still."""
    runs = np.concatenate([np.arange(1, 400_000, 2), np.arange(1 << 19, (1 << 19) + 300_000)])
    codes, first = np.empty(len(runs), np.int32), np.empty(len(runs), np.int32)
    assert distinct(runs, codes, first) == len(runs)
    assert codes.tolist() == list(range(len(runs)))
    assert distinct(np.repeat(runs, 2), np.empty(2 * len(runs), np.int32), np.empty(2 * len(runs), np.int32)) == len(
        runs
    )
