"""The plan of a window beside a slow twin: every number is a small multiple of a power of two, so sums are exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels.delay.batches import Knobs, _form, _nearest
from shoal.kernels.delay.plan import join_rest, new_plan, search
from shoal.kernels.delay.recent import Recent, cheapen, remember, saved
from shoal.kernels.delay.stream_boxes import HULL, MISSING, ROOT, Tuples
from shoal.kernels.delay.window import TABLE, window_of
from shoal.kernels.shared.promises import Rules, workspace

DEPTH = 3
WEIGHT = np.array([0.5, 0.25, 0.25])
COST = (0.0, 0.25, 1.0)
ZERO = np.int64(0)
Row = tuple[float | None, int, int]


def path(value: int) -> list[int]:
    return [value, 100 + (value - 1) // 2, 1000]


def tuples_of(rows: Sequence[Row]) -> Tuples:
    """A number in [0, 16] and two trees of eight leaves."""
    n = len(rows)
    number, scaled = np.full((n, 3), np.nan), np.zeros((n, 3))
    node, cost = np.zeros((n, 3, DEPTH), np.int64), np.zeros((n, 3, DEPTH))
    for i, (value, *leaves) in enumerate(rows):
        number[i, 0] = np.nan if value is None else value
        scaled[i, 0] = -1.0 if value is None else value / 16 * WEIGHT[0]
        for j, leaf in enumerate(leaves, 1):
            node[i, j] = path(leaf)
            cost[i, j] = np.array(COST) * WEIGHT[j]
    tree, depth = np.array([False, True, True]), np.array([1, DEPTH, DEPTH])
    return Tuples(number, scaled, node, cost, tree, depth, WEIGHT, np.zeros(3), np.array([16.0, 1.0, 1.0]))


def rules_of(people: Sequence[int], k: int) -> Rules:
    none, n = np.zeros(0, np.int64), len(people)
    return Rules(
        k, np.array(people, np.int32), max(people) + 1, np.zeros((0, n), np.int32), np.zeros((0, n), np.int32), none,
        none, np.zeros(0), np.zeros(0), none, np.zeros((0, 1)), np.zeros((0, 1, 1), np.int32), none, none,
    )  # fmt: skip


def loss(rows: Sequence[Row]) -> float:
    """The loss of a box as the plan sees it: a missing number stands one whole domain below all others."""
    numbers = [-1.0 if r[0] is None else r[0] / 16 for r in rows]
    total = (max(numbers) - min(numbers)) * 0.5
    for j in (1, 2):
        paths = [path(int(r[j] or 0)) for r in rows]
        total += 0.25 * COST[next(at for at in range(DEPTH) if len({p[at] for p in paths}) == 1)]
    return total


def seeds(rows: Sequence[Row]) -> list[int]:
    """The most unusual first, in the arithmetic of the kernel."""
    m = len(rows)
    one = np.float32
    score = [one(0)] * m
    numbers = [one(-0.5) if r[0] is None else one(r[0] / 16 * 0.5) for r in rows]
    mean = one(0)
    for v in numbers:
        mean += v
    mean /= one(m)
    for i in range(m):
        score[i] -= abs(numbers[i] - mean)
        for j in (1, 2):
            often = one(sum(r[j] == rows[i][j] for r in rows))
            score[i] += one(0.25) * often / one(m)
    return sorted(range(m), key=lambda i: score[i])


class SlowPlan:
    """Groups as plain lists, the member added last first."""

    def __init__(
        self, rows: Sequence[Row], price: Sequence[float], people: Sequence[int], k: int, knobs: Knobs
    ) -> None:
        self.rows, self.price, self.people, self.k, self.knobs = rows, price, people, k, knobs
        self.groups: list[list[int]] = []

    def cost(self, members: Sequence[int]) -> float:
        return loss([self.rows[i] for i in members])

    def total(self, members: Sequence[int]) -> float:
        return self.cost(members) * len(members) if members else 0.0

    @property
    def free(self) -> list[int]:
        return [i for i in range(len(self.rows)) if not any(i in g for g in self.groups)]

    def form(self, ceiling: float) -> None:
        tried: set[int] = set()
        for seed in seeds(self.rows):
            free = self.free
            if seed not in free or seed in tried:
                continue
            if len(free) < self.k:
                break
            tried.add(seed)
            boxed = self.price[seed] < 2
            reach = self.price[seed] * self.knobs.near if boxed else 1e9
            able = [c for c in free if c != seed and self.cost([seed, c]) <= reach]
            group, who = [seed], {self.people[seed]}
            while len(who) < self.k and able:
                best = min(
                    able, key=lambda c: self.cost([*group, c]) - self.knobs.lean * min(self.price[c], ceiling)
                )  # fmt: skip
                able.remove(best)
                if self.people[best] not in who:
                    who.add(self.people[best])
                    group.append(best)
            if len(who) < self.k:
                continue
            gain = sum(min(self.price[i], ceiling) for i in group)
            if not boxed or gain > self.total(group):
                self.groups.append(group[::-1])
            else:
                tried |= {i for i in group[1 : min(len(group), int(self.k * self.knobs.skip))] if self.price[i] < 2}

    def join(self) -> None:
        for i in self.free:
            most = self.price[i] if self.price[i] < 2 else 1e9
            more = [self.total([*g, i]) - self.total(g) for g in self.groups]
            if more and min(more) < most:
                self.groups[more.index(min(more))].insert(0, i)

    def fine(self, members: Sequence[int]) -> bool:
        return len({self.people[i] for i in members}) >= self.k

    def search(self) -> None:
        for _ in range(self.knobs.passes):
            if not sum(self.improve(g, i) for g in self.groups for i in list(g)):
                break

    def improve(self, group: list[int], i: int) -> bool:
        if i not in group or len(group) < 2:
            return False
        rest = [m for m in group if m != i]
        if not self.cost(rest) < self.cost(group):
            return False
        best, where, other = -1e-5, None, None
        before = self.total(group)
        if len(group) > self.k:
            moves: list[list[int]] = [*([[]] if self.price[i] < 2 else []), *[h for h in self.groups if h is not group]]
            for to in moves:
                more = self.total([*to, i]) - self.total(to) if to else self.price[i]
                if self.total(rest) - before + more < best:
                    best, where = self.total(rest) - before + more, to
        for y in range(len(self.rows)):
            home = next((h for h in self.groups if y in h), [])
            change = self.total([*rest, y]) - before
            if home is group or self.cost([*rest, y]) >= self.cost(group) or (not home and self.price[i] >= 2):
                continue
            if home:
                change += self.total([*[m for m in home if m != y], i]) - self.total(home)
            else:
                change += self.price[i] - self.price[y]
            if change < best:
                best, where, other = change, home, y
        return where is not None and self.change(group, i, where, other)

    def change(self, group: list[int], i: int, where: list[int], other: int | None) -> bool:
        new = [m for m in group if m != i] + ([other] if other is not None else [])
        if not self.fine(new) or (where and not self.fine([m for m in where if m != other] + [i])):
            return False
        group.remove(i)
        if other is not None:
            if where:
                where.remove(other)
            group.insert(0, other)
        if where:
            where.insert(0, i)
        return True


cells = st.tuples(
    st.one_of(st.none(), st.integers(0, 16).map(float)), st.integers(1, 8), st.integers(1, 8)
)  # fmt: skip


@settings(max_examples=150)
@given(st.data())
def test_a_window_is_planned_as_the_slow_twin_plans_it(data: st.DataObject) -> None:
    rows = data.draw(st.lists(cells, min_size=1, max_size=24))
    n = len(rows)
    people = [data.draw(st.integers(0, n)) for _ in rows] if data.draw(st.booleans()) else list(range(n))
    prices = [data.draw(st.sampled_from([2.0, 2.0, 0.125, 0.25, 0.5, 0.0])) for _ in rows]
    k = data.draw(st.integers(1, 4))
    knobs = Knobs(0.0625, data.draw(st.integers(0, 3)), 0.75, 0.0, data.draw(st.sampled_from([0.5, 1.0])), 1000)
    held, rules = tuples_of(rows), rules_of(people, k)
    work, price = workspace(rules), np.array(prices, np.float32)
    window = window_of(held, ZERO, np.int64(n), np.zeros((3, TABLE, TABLE), np.float32))
    plan = new_plan(np.int64(n), np.int64(n // k + 1), np.int64(3))
    recent = nothing(8)
    groups = _form(held, window, price, ZERO, rules, work, knobs, recent, plan)
    slow = SlowPlan(rows, prices, people, k, knobs)
    slow.form(float(recent.ceiling[0]))
    assert labels(slow) == plan.label.tolist()
    join_rest(window, price, ZERO, rules, work, groups, plan)
    slow.join()
    assert labels(slow) == plan.label.tolist()
    search(window, price, ZERO, rules, work, knobs.passes, groups, plan)
    slow.search()
    assert labels(slow) == plan.label.tolist()
    for g in range(groups):
        assert plan.loss[g] == slow.cost(slow.groups[g])


def labels(plan: SlowPlan) -> list[int]:
    return [next((g for g, members in enumerate(plan.groups) if i in members), -1) for i in range(len(plan.rows))]


def nothing(size: int) -> Recent:
    return Recent(
        np.zeros((3, size)), np.zeros((3, DEPTH, size), np.int64), np.zeros(size, np.float32), np.zeros(1, np.int64),
        np.full(1, 0.5, np.float32),
    )  # fmt: skip


@given(st.data())
def test_recent_tuples_save_and_cheapen_as_a_plain_list_would(data: st.DataObject) -> None:
    rows = data.draw(st.lists(cells, min_size=1, max_size=20))
    prices = [data.draw(st.sampled_from([2.0, 0.25, 0.5, 0.125])) for _ in rows]
    held, recent = tuples_of(rows), nothing(8)
    cut = data.draw(st.integers(0, len(rows)))
    for start, stop in ((0, cut), (cut, len(rows))):
        part = np.array(prices[start:stop], np.float32)
        remember(held.tree, held.number, held.node, np.int64(start), part, *recent)
    plain = [(row, min(p, 0.5)) for row, p in zip(rows, prices, strict=True)][-8:]
    box: list[Any] = [
        data.draw(st.sampled_from([HULL, MISSING, ROOT])),
        *[data.draw(st.integers(0, 2)) for _ in (1, 2)],
    ]
    low, high = sorted(data.draw(st.tuples(st.integers(0, 16), st.integers(0, 16))))
    leaves = [0, data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8))]
    meet = np.array([0, path(leaves[1])[box[1]], path(leaves[2])[box[2]]])
    cost = data.draw(st.sampled_from([0.0, 0.125, 0.25]))

    def inside(row: Row) -> bool:
        number = row[0]
        fits = {ROOT: True, MISSING: number is None, HULL: number is not None and low <= number <= high}[box[0]]
        return fits and all(path(int(row[j] or 0))[box[j]] == meet[j] for j in (1, 2))

    wanted = [p - cost for row, p in plain if p > cost and inside(row)]
    arrays = (
        held.tree, recent.number, recent.node, recent.price, np.int64(len(plain)), np.float32(cost),
        np.array([float(low), 0, 0]), np.array([float(high), 0, 0]), np.array(box, np.int8), meet,
        np.zeros(9, np.int64),
    )  # fmt: skip
    assert saved(*arrays) == np.float32(sum(wanted)) / np.float32(len(plain))
    cheapen(*arrays)
    kept = sorted(min(p, cost) if inside(row) else p for row, p in plain)
    assert sorted(recent.price[: len(plain)].tolist()) == kept


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=60), st.integers(1, 60))
def test_the_reach_holds_those_wanted_and_not_many_more(near: list[float], wanted: int) -> None:
    reach = _nearest(np.array(near, np.float32), np.int64(len(near)), np.int64(wanted))
    ranked = sorted(near)
    assert sum(v <= reach for v in near) >= min(wanted, len(near))
    if wanted <= len(near):  # at most one of 256 parts of the range beyond the last one wanted
        assert reach <= ranked[wanted - 1] + max(near) / 250 + 1e-30
