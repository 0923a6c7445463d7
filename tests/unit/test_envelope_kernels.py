"""Group formation and exchange against slow twins; pattern loss against its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.kernels.series.envelopes import form_groups, hulls
from shoal.kernels.series.exchange import exchange
from shoal.kernels.series.shape import correlation_loss
from shoal.series import envelopes
from shoal.series.envelopes import _near, unite
from shoal.series.method import SeriesGrouping
from shoal.series.subgroups import split_by_total

small = st.integers(-9, 9).map(float)


def rms(low, high):
    total = 0.0
    for a, b in zip(low, high, strict=True):
        total += (b - a) * (b - a)
    return np.sqrt(total / len(low))


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 9), st.data())
def test_groups_are_those_of_the_search_without_bounds(boxes, instants, k, data):
    one = data.draw(arrays(np.float64, (boxes, instants), elements=small))
    two = data.draw(arrays(np.float64, (boxes, instants), elements=small))
    low, high = np.minimum(one, two), np.maximum(one, two)
    size = data.draw(arrays(np.int64, boxes, elements=st.integers(1, 4)))
    group, groups = form_groups(low, high, size, k, len(size))
    assert (group.tolist(), groups) == slow_groups(low, high, size, k)
    if size.sum() >= k:
        assert np.bincount(group, weights=size).min() >= k


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 3), st.integers(0, 5))
def test_who_looks_at_few_boxes_still_makes_groups_of_k(boxes, k, look, seed):
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(boxes, 5))
    high = low + rng.uniform(size=low.shape)
    size = rng.integers(1, 4, boxes)
    group, groups = form_groups(low, high, size, k, look)
    if size.sum() < k:
        assert groups == 0
    else:
        assert np.bincount(group, weights=size).min() >= k
        assert sorted(set(group.tolist())) == list(range(groups))


def slow_groups(low, high, size, k):
    boxes = len(size)
    group = [-1] * boxes

    def loss(members):
        rows = list(members)
        return int(size[rows].sum()) * rms(low[rows].min(axis=0), high[rows].max(axis=0))

    groups = 0
    for seed in sorted(range(boxes), key=lambda s: (loss([s]), s)):
        free = [s for s in range(boxes) if group[s] < 0]
        if size[free].sum() < k:
            break
        if group[seed] >= 0:
            continue
        members = [seed]
        while size[members].sum() < k:
            rest = [s for s in free if s not in members]
            members.append(min(rest, key=lambda s: (loss([*members, s]), s)))
        for s in members:
            group[s] = groups
        groups += 1
    for s in range(boxes):
        if group[s] < 0 and groups:
            now = [[t for t in range(boxes) if group[t] == g] for g in range(groups)]
            group[s] = min(range(groups), key=lambda g: loss([*now[g], s]) - loss(now[g]))
    return group, groups


@given(arrays(np.float64, (9, 3), elements=small), arrays(np.int64, 9, elements=st.integers(-1, 3)))
def test_hulls_cover_their_rows_and_nothing_more(values, label):
    low, high = hulls(values, values, label, 4)
    for g in range(4):
        rows = values[label == g]
        if len(rows):
            assert np.array_equal(low[g], rows.min(axis=0))
            assert np.array_equal(high[g], rows.max(axis=0))
        else:
            assert np.isposinf(low[g]).all()


@st.composite
def placed(draw):
    """Curves in groups and cells that keep k and p."""
    p = draw(st.integers(1, 3))
    k = draw(st.integers(p, 5))
    word, group = [], []
    for g in range(draw(st.integers(1, 4))):
        here: list[int] = []
        while len(here) < k:
            here += [draw(st.integers(0, 2))] * draw(st.integers(p, p + 2))
        word += here
        group += [g] * len(here)
    values = draw(arrays(np.float64, (len(word), draw(st.integers(1, 4))), elements=small))
    return values, np.array(group, np.int32), np.array(word), k, p


def cells_of(group, word):
    pairs = sorted({(int(w), int(g)) for w, g in zip(word, group, strict=True)})
    number = {pair: at for at, pair in enumerate(pairs)}
    cell = np.array([number[int(w), int(g)] for w, g in zip(word, group, strict=True)])
    return cell, np.array([g for _, g in pairs]), _near(np.array([w for w, _ in pairs]))


def total_loss(values, group):
    rows = [np.flatnonzero(group == g) for g in np.unique(group)]
    return sum(len(r) * rms(values[r].min(axis=0), values[r].max(axis=0)) for r in rows)


@settings(max_examples=200)
@given(placed())
def test_exchange_is_the_slow_one_and_keeps_k_p_and_words(drawn):
    values, group, word, k, p = drawn
    cell, cell_group, near = cells_of(group, word)
    slow = SlowExchange(values, cell, cell_group, near, group, k, p)
    before = total_loss(values, group)
    fast_cell, fast_group = cell.copy(), group.copy()
    changes = exchange(values, fast_cell, cell_group, near, fast_group, k, p, np.zeros(len(values), np.int64), True)
    assert total_loss(values, fast_group) <= before + 1e-9
    assert np.bincount(fast_group).min() >= k
    held = np.unique(np.stack([fast_group, word]), axis=1, return_counts=True)[1]
    assert held.min() >= p
    assert np.array_equal(cell_group[fast_cell], fast_group)
    found = [slow.change(record) for record in range(len(values))]
    assume(not slow.doubtful)  # two changes that save the same but for rounding: either is right
    assert changes == sum(found)
    assert fast_cell.tolist() == [slow.where(record) for record in range(len(values))]


class SlowExchange:
    """Every record tries every move and swap by measuring whole groups anew; in a cell, who came last stands first."""

    def __init__(self, values, cell, cell_group, near, group, k, p):
        self.values, self.near, self.k, self.p = values, near, k, p
        self.group_of = cell_group.tolist()
        self.cells = [np.flatnonzero(cell == c).tolist() for c in range(len(cell_group))]
        self.doubtful = False

    def where(self, record):
        return next(c for c, members in enumerate(self.cells) if record in members)

    def members(self, g):
        return [r for c, members in enumerate(self.cells) if self.group_of[c] == g for r in members]

    def loss(self, rows, size=None):
        """Values are whole numbers: the sum is exact, and the rest is one division and one root."""
        box = self.values[rows]
        return (size or len(rows)) * np.sqrt(((box.max(axis=0) - box.min(axis=0)) ** 2).sum() / box.shape[1])

    def change(self, record):
        own = self.where(record)
        mine = self.members(self.group_of[own])
        rest = [r for r in mine if r != record]
        if not rest:
            return False
        best, choice = 1e-9 * self.loss(mine), None
        may_leave = len(mine) > self.k and len(self.cells[own]) > self.p
        for other in self.near[own][self.near[own] >= 0].tolist():
            theirs = self.members(self.group_of[other])
            both = self.loss(mine) + self.loss(theirs)
            tries = [None] if may_leave and len(self.cells[other]) >= self.p else []
            for partner in [*tries, *self.cells[other]]:
                if partner is None:
                    leaving = self.loss(mine) - self.loss(rest, len(mine)) / len(mine) * len(rest)
                    saved = leaving + self.loss(theirs) - self.loss([*theirs, record])
                else:
                    swapped = [r for r in theirs if r != partner]
                    saved = both - (self.loss([*rest, partner]) + self.loss([*swapped, record]))
                self.doubtful |= saved != best and abs(saved - best) < 1e-9
                if saved > best:
                    best, choice = saved, (other, partner)
        if choice is None:
            return False
        other, partner = choice
        self.cells[own].remove(record)
        self.cells[other].insert(0, record)
        if partner is not None:
            self.cells[other].remove(partner)
            self.cells[own].insert(0, partner)
        return True


def test_exchange_swaps_two_records_that_stand_in_each_others_group():
    values = np.array([[0.0], [1.0], [9.0], [8.0], [9.0], [1.0]])
    group = np.array([0, 0, 0, 1, 1, 1], np.int32)
    cell, cell_group, near = cells_of(group, np.zeros(6, np.int64))
    assert exchange(values, cell, cell_group, near, group, 3, 3, np.zeros(6, np.int64), True) > 0
    assert group[0] == group[1] == group[5] != group[2] == group[3] == group[4]


@given(placed(), st.data())
def test_with_marks_every_cell_keeps_its_marks(drawn, data):
    values, group, word, k, p = drawn
    mark = data.draw(arrays(np.int64, len(values), elements=st.integers(0, 1)))
    cell, cell_group, near = cells_of(group, word)
    before = sorted(zip(cell.tolist(), mark.tolist(), strict=True))
    loss = total_loss(values, group)
    exchange(values, cell, cell_group, near, group, k, p, mark, False)
    assert sorted(zip(cell.tolist(), mark.tolist(), strict=True)) == before
    assert total_loss(values, group) <= loss + 1e-9


@given(arrays(np.float64, (2, 6), elements=small))
def test_pattern_loss_is_the_cosine_distance_of_all_pairwise_differences(pair):
    a, b = ([x - y for x, y in itertools.combinations(row.tolist(), 2)] for row in pair)
    out = np.empty(1)
    correlation_loss(pair[:1], pair[1:], np.zeros(1, np.int64), out)
    if not any(a) or not any(b):
        assert out[0] == (0.0 if not any(a) and not any(b) else 1.0)
    else:
        assert out[0] == pytest.approx(1 - np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)), abs=1e-9)


@pytest.mark.parametrize("marked", [False, True])
def test_bands_keep_k_p_and_words_and_lose_no_more(monkeypatch, marked):
    """Many records exchange band by band, in threads: the outcome is one, whatever the number of cores."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(600, 8)).cumsum(axis=1) + rng.integers(0, 40, 600)[:, None]
    word = rng.integers(0, 3, 600).astype(np.int32)
    marks = rng.integers(0, 2, 600) if marked else None
    k, p = 12, 3
    group = unite(values, split_by_total(values, word, p), k)
    monkeypatch.setattr(envelopes, "MANY", 100)
    monkeypatch.setattr(envelopes, "BAND", 150)
    before = SeriesGrouping(group.copy(), word)
    found = []
    for cores in (1, 2, 7):
        monkeypatch.setattr(envelopes.os, "cpu_count", lambda cores=cores: cores)
        found.append(envelopes.exchange(values, before, k, p, 3, marks))
    assert all(np.array_equal(one.group, found[0].group) for one in found)
    assert np.array_equal(group, before.group)
    after = found[0]
    assert np.array_equal(after.word, word)
    assert np.bincount(after.group).min() >= k
    cells = np.unique(after.group.astype(np.int64) * 3 + word, return_counts=True)[1]
    assert cells.min() >= p

    def lost(one):
        return sum(
            (one == g).sum() * np.sqrt(np.mean(np.ptp(values[one == g], axis=0) ** 2)) for g in range(one.max() + 1)
        )

    assert lost(after.group) < lost(group)
    if marked:  # every subgroup keeps its marks
        for one in (group, after.group):
            assert sorted(np.bincount(one * 6 + word * 2 + marks)) == sorted(np.bincount(group * 6 + word * 2 + marks))
    bands = envelopes._bands(values, group, 0)
    assert sorted(np.concatenate(bands)) == list(range(600))
    assert len(bands) > 2
    assert all(set(group[a]).isdisjoint(group[b]) for a, b in itertools.pairwise(bands))
