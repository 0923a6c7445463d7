"""Create-tree, recycle and refine against slow readings of the paper."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.series.pattern_tree import create_tree, recycle, refine


@st.composite
def words(draw, most=24, levels=4):
    """Codes [level, record] as patterns give them: level 0 agrees, no number is used twice, levels need not nest."""
    n = draw(st.integers(1, most))
    depth = draw(st.integers(1, levels))
    codes = np.zeros((depth, n), np.int32)
    for level in range(1, depth):
        row = draw(st.lists(st.integers(0, 2 * level), min_size=n, max_size=n))
        codes[level] = np.unique(row, return_inverse=True)[1] + codes[level - 1].max() + 1
    return codes


def slow_tree(codes, records, level, p):
    """Leaves as (records, level, good), by the text of Shou et al., algorithm 1."""
    if len(records) < p:
        return [(records, level, False)]
    children: dict[int, list[int]] = {}
    if level + 1 < len(codes):
        for record in records:
            children.setdefault(int(codes[level + 1, record]), []).append(record)
    if len(children) == 1:
        return slow_tree(codes, records, level + 1, p)
    tiny = [c for c in children.values() if len(c) < p]
    if not children or len(records) < 2 * p or len(tiny) == len(children):
        return [(records, level, True)]
    out = []
    together = [r for c in tiny for r in c]
    if len(together) >= p:
        out.append((together, level, True))
        tiny = []
    for child in [c for c in children.values() if len(c) >= p] + tiny:
        out += slow_tree(codes, child, level + 1, p)
    return out


def run_tree(codes, p):
    n = codes.shape[1]
    leaf, level, good = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.bool_)
    count = create_tree(codes, np.arange(n), p, leaf, level, good)
    return leaf, level, good, count


@given(words(), st.integers(1, 6))
def test_create_tree_is_the_papers(codes, p):
    leaf, level, good, count = run_tree(codes, p)
    found = {(tuple(np.flatnonzero(leaf == at).tolist()), int(level[at]), bool(good[at])) for at in range(count)}
    slow = slow_tree(codes, list(range(codes.shape[1])), 0, p)
    assert found == {(tuple(sorted(rows)), at, fine) for rows, at, fine in slow}


def slow_recycle(codes, level, good, p):
    level, good = list(level), list(good)
    for current in range(max([at for at, g in zip(level, good, strict=True) if not g], default=-1), -1, -1):
        taken = {int(codes[current, r]) for r in range(len(level)) if good[r] and level[r] == current}
        free = [r for r in range(len(level)) if not good[r] and level[r] >= current]
        crowd = Counter(int(codes[current, r]) for r in free)
        for r in free:
            if int(codes[current, r]) in taken or crowd[int(codes[current, r])] >= p:
                good[r], level[r] = True, current
    return level, good


@given(words(), st.integers(1, 6))
def test_recycling_leaves_fewer_than_p_alone(codes, p):
    leaf, leaf_level, leaf_good, _ = run_tree(codes, p)
    level, good = leaf_level[leaf], leaf_good[leaf]
    slow_level, slow_good = slow_recycle(codes, level.tolist(), good.tolist(), p)
    alone = recycle(codes, level, good, p, int(codes.max()) + 1)
    assert (level[good].tolist(), good.tolist()) == (
        [v for v, g in zip(slow_level, slow_good, strict=True) if g],
        slow_good,
    )
    assert alone == (~good).sum() < p
    assert all(count >= p for count in Counter(codes[level, np.arange(len(level))][good].tolist()).values())


def slow_refine(codes, loss, level, good, p, share):
    """Word by word from the finest level: whoever gains enough asks to change; they change together or not at all."""
    n = codes.shape[1]
    level = list(level)
    while True:
        moved = 0
        for target in range(len(codes) - 1, -1, -1):
            for word in sorted(set(codes[target].tolist())):
                count = Counter(int(codes[level[r], r]) for r in range(n) if good[r])
                willing = []
                for r in range(n):
                    now = level[r]
                    if codes[target, r] != word or not good[r] or now == target or count[int(codes[now, r])] <= p:
                        continue
                    if loss[target, r] < loss[now, r] and loss[target, r] <= share * loss[now, r]:
                        count[int(codes[now, r])] -= 1
                        willing.append(r)
                if count[word] + len(willing) >= p:
                    for r in willing:
                        level[r] = target
                    moved += len(willing)
        if not moved:
            return level


@given(words(), st.integers(1, 5), st.sampled_from([0.3, 0.7, 1.0]), st.randoms(use_true_random=False))
def test_refining_is_the_slow_one_and_never_loses(codes, p, share, random):
    n = codes.shape[1]
    loss = np.array([[random.choice([0.0, 0.1, 0.2, 0.5, 1.0]) for _ in range(n)] for _ in codes])
    leaf, leaf_level, leaf_good, _ = run_tree(codes, p)
    level, good = leaf_level[leaf], leaf_good[leaf]
    recycle(codes, level, good, p, int(codes.max()) + 1)
    before = loss[level, np.arange(n)][good].sum()
    slow = slow_refine(codes, loss, level.tolist(), good.tolist(), p, share)
    order = np.argsort(codes, axis=1, kind="stable").astype(np.int32)
    refine(codes, loss, order, level, good, p, share, int(codes.max()) + 1, 100)
    assert level.tolist() == slow
    assert loss[level, np.arange(n)][good].sum() <= before
    assert all(count >= p for count in Counter(codes[level, np.arange(n)][good].tolist()).values())
