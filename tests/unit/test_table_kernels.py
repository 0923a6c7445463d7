"""Kernels of the table methods beside slow and obvious twins."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from shoal.core.errors import PromiseError, UsageError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.release import Boxes, boxes_of
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.kernels.shared.topdown import top_down
from shoal.kernels.tables.full_domain import group_at, room_for
from shoal.kernels.tables.mdav import mdav
from shoal.kernels.tables.repair import broken_groups, merge_broken
from shoal.measures.loss import loss
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules
from shoal.promises.t_closeness import TCloseness
from shoal.tables.full_domain import nodes_of
from shoal.tables.lattice import Lattice
from shoal.tables.microaggregation import Microaggregation, coordinates
from shoal.verifier import verify

ROWS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.sampled_from(["aa", "ab", "ba", "bb", "cc"]),
        st.sampled_from("xyz"),
        st.sampled_from("pqr"),
    ),
    min_size=2,
    max_size=18,
)
ASKED = st.sampled_from(
    [
        [KAnonymity(2)],
        [KAnonymity(4)],
        [KAnonymity(2), LDiversity(2, "ill")],
        [KAnonymity(2), LDiversity(1.5, "ill", kind="entropy")],
        [KAnonymity(2), TCloseness(0.35, "ill")],
    ]
)
QUASI = {"n": Range(min=0, max=9, snap=True), "p": Prefix(2), "s": Suppress()}


def make(rows: list[tuple]) -> tuple[pl.DataFrame, Table]:
    frame = pl.DataFrame(rows, schema=["n", "p", "s", "ill"], orient="row")
    return frame, code(frame, Schema.build(quasi=QUASI, sensitive=["ill"]))


def at_level(table: Table, level: tuple[int, ...]) -> np.ndarray:
    """The group of each row when every column is at its level."""
    nodes = np.stack([x.codes[table.matrix[:, j], level[j]] for j, x in enumerate(table.levels)], 1)
    return np.unique(nodes, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)


def broken(table: Table, labels: np.ndarray, promises: list[Promise]) -> set[int]:
    """Groups that break a promise, by the promise's own definition, of released rows only."""
    kept = labels >= 0
    ill = table.sensitive["ill"]
    frame = pl.DataFrame({"g": labels[kept], "ill": ill.values.gather(ill.codes[kept])})
    bad = set()
    for g in np.unique(labels[kept]):
        marked = frame.with_columns(pl.when(pl.col("g") == int(g)).then(1).otherwise(0).alias("one"))
        for promise in promises:
            if isinstance(promise, TCloseness):
                inside, whole = marked.filter(pl.col("one") == 1)["ill"], marked["ill"]
                gap = sum(abs((inside == v).mean() - (whole == v).mean()) for v in whole.unique()) / 2
                bad |= {int(g)} if gap > promise.t + 1e-9 else set()
            else:
                alone = marked.filter(pl.col("one") == 1)
                bad |= set() if verify(alone, ["g"], [promise]).kept else {int(g)}
    return bad


def slow_release(table: Table, level: tuple[int, ...], promises: list[Promise]) -> np.ndarray:
    """Full-domain at one level vector: broken groups are suppressed until what is left keeps the promises.

    t is about what is released, so groups that nothing can mend are suppressed before it is asked.
    """
    labels = at_level(table, level)
    for asked in ([p for p in promises if not isinstance(p, TCloseness)], promises):
        while bad := broken(table, labels, asked):
            labels = np.where(np.isin(labels, list(bad)), -1, labels).astype(np.int32)
    return labels


def slow_loss(table: Table, labels: np.ndarray, level: tuple[int, ...], measure: str) -> float:
    kept = np.unique(labels[labels >= 0])
    dense = np.where(labels >= 0, np.searchsorted(kept, labels), -1).astype(np.int32)
    low_high = boxes_of(table, dense)
    floor = np.broadcast_to(np.array(level, np.int8), low_high.low.shape).copy()
    found = loss(table, dense, Boxes(low_high.low, low_high.high, floor))
    return {
        "gcp": found.gcp,
        "generalization": found.generalization_cost,
        "discernibility": found.discernibility,
        "average": found.average_group,
    }[measure]


@settings(max_examples=50)
@given(
    rows=ROWS,
    promises=ASKED,
    share=st.sampled_from([0.0, 0.0, 0.2, 0.5]),
    measure=st.sampled_from(["gcp", "generalization", "discernibility", "average"]),
)
@example(
    rows=[(0, "aa", "x", "q"), (0, "aa", "y", "p"), (0, "ab", "x", "p"), (1, "aa", "x", "q")],
    promises=[KAnonymity(2), TCloseness(0.35, "ill")],
    share=0.5,
    measure="gcp",
)
def test_the_lattice_finds_what_looking_at_every_level_vector_finds(rows, promises, share, measure):
    _, table = make(rows)
    try:
        found = Lattice(suppress=share, measure=measure).group(table, promises)
    except PromiseError:
        assume(False)
    best = np.inf
    for level in itertools.product(*[range(x.depth) for x in table.levels]):
        labels = slow_release(table, level, promises)
        suppressed = int((labels < 0).sum())
        if suppressed <= int(share * table.size) and suppressed < table.size:
            best = min(best, slow_loss(table, labels, level, measure))
    assert not broken(table, found.labels, promises)
    assert (found.labels < 0).sum() <= share * table.size
    ours = slow_loss(table, found.labels, tuple(found.floor[0].tolist()), measure)
    assert ours == pytest.approx(best, abs=1e-9)


@settings(max_examples=50)
@given(rows=ROWS, exact=st.booleans(), data=st.data())
def test_tuples_group_by_their_nodes_however_the_levels_moved(rows, exact, data):
    _, table = make(rows)
    nodes = nodes_of(table)
    room = room_for(nodes)
    assert room.exact[0]
    if not exact:  # keys that collide all the time: nodes must be compared
        room = room._replace(exact=np.array([False]), stride=np.ones(len(nodes.depth), np.uint64))
    for _ in range(4):
        level = tuple(data.draw(st.integers(0, int(d) - 1)) for d in nodes.depth)
        groups = group_at(nodes, np.array(level, np.int64), room)
        found = np.repeat(room.group, np.diff(nodes.first))
        assert groups == len(np.unique(found))
        assert len(np.unique(np.stack([found, at_level(table, level)], 1), axis=0)) == groups
        assert len(np.unique(at_level(table, level))) == groups
        assert room.size[:groups].tolist() == np.bincount(found).tolist()


def test_keys_of_many_wide_columns_are_no_proof():
    frame = pl.DataFrame({f"c{j}": np.arange(64) * (2 * j + 1) % 64 for j in range(12)})
    table = code(frame, Schema.build(quasi={name: Suppress() for name in frame.columns}))
    nodes = nodes_of(table)
    room = room_for(nodes)
    assert not room.exact[0]
    assert len(set(room.stride.tolist())) == 12
    assert group_at(nodes, np.zeros(12, np.int64), room) == 64
    assert group_at(nodes, np.ones(12, np.int64), room) == 1


def test_a_lattice_too_large_to_hold_says_so():
    frame = pl.DataFrame({f"c{j}": [1, 2] for j in range(12)})
    quasi = {name: Range(min=0, max=1000, snap=True) for name in frame.columns}
    with pytest.raises(UsageError, match="choices of levels"):
        Lattice().group(code(frame, Schema.build(quasi=quasi)), [KAnonymity(2)])


@settings(max_examples=40)
@given(rows=ROWS, promises=ASKED, seed=st.integers(0, 99))
def test_broken_groups_join_the_cheapest_neighbour(rows, promises, seed):
    _, table = make(rows)
    groups = 5
    start = np.random.default_rng(seed).integers(0, groups, table.size).astype(np.int32)
    rules = compile_rules(table, promises)
    assert set(np.flatnonzero(broken_groups(rules, start, groups)).tolist()) == broken(table, start, promises)
    merged = merge_broken(table.matrix, table.shape(), rules, start, groups)
    twin = [set(np.flatnonzero(start == g).tolist()) for g in range(groups)]

    def cost(members: set[int]) -> float:
        at = sorted(members)
        low, high = table.matrix[at].min(0), table.matrix[at].max(0)
        each = [x.ncp(low[j : j + 1], high[j : j + 1])[0] for j, x in enumerate(table.levels)]
        return len(at) * float(sum(each))

    for g in sorted(broken(table, start, promises)):
        while twin[g] and sum(map(bool, twin)) > 1:
            labels = np.full(table.size, -1, np.int32)
            for h, members in enumerate(twin):
                labels[sorted(members)] = h
            if g not in broken(table, labels, promises):
                break
            grown = {h: cost(twin[g] | m) - cost(twin[g]) - cost(m) for h, m in enumerate(twin) if h != g and m}
            least = min(grown.values())
            # sums in another order differ by a rounding: any of the cheapest will do, the kernel's tells which
            near = [h for h, c in grown.items() if c <= least + 1e-9]
            if len(near) > 1:
                return  # sums in another order differ by a rounding: of equals, either is right
            (h,) = near
            twin[g] |= twin[h]
            twin[h] = set()
    found = {frozenset(np.flatnonzero(merged == g).tolist()) for g in np.unique(merged)}
    assert {frozenset(m) for m in twin if m} == found


def slow_mdav(points: np.ndarray, k: int) -> set[frozenset[int]]:
    left = list(range(len(points)))
    groups = []

    def take(centre: np.ndarray) -> None:
        near = sorted(left, key=lambda i: float(((points[i] - centre) ** 2).sum()))[:k]
        groups.append(frozenset(near))
        for i in near:
            left.remove(i)

    def farthest(centre: np.ndarray) -> np.ndarray:
        return points[max(left, key=lambda i: float(((points[i] - centre) ** 2).sum()))]

    while len(left) >= 2 * k:
        twice = len(left) >= 3 * k
        first = farthest(points[left].mean(0))
        second = farthest(first)
        take(first)
        if twice:
            take(second)
    if left:
        groups.append(frozenset(left))
    return set(groups)


@settings(max_examples=40)
@given(n=st.integers(1, 40), k=st.integers(1, 6), m=st.integers(1, 3), seed=st.integers(0, 999))
def test_mdav_is_as_written(n, k, m, seed):
    assume(n >= k)
    points = np.random.default_rng(seed).random((n, m))  # no ties
    rules = compile_rules(make([(i % 10, "aa", "x", "p") for i in range(n)])[1], [KAnonymity(k)])
    labels, groups = mdav(points, np.arange(n, dtype=np.int32), rules)
    assert {frozenset(np.flatnonzero(labels == g).tolist()) for g in range(groups)} == slow_mdav(points, k)


def test_one_column_is_grouped_with_the_least_squared_error():
    ages = [20, 21, 22, 40, 41, 80, 81, 82, 83]
    table = code(pl.DataFrame({"age": ages}), Schema.build(quasi={"age": Range()}))
    labels = Microaggregation().group(table, [KAnonymity(2)]).labels
    groups = [set(np.array(ages)[labels == g].tolist()) for g in range(4)]
    assert groups == [{20, 21, 22}, {40, 41}, {80, 81}, {82, 83}]


def test_blocks_change_the_groups_and_keep_the_promise():
    random = np.random.default_rng(5)
    frame = pl.DataFrame({"x": random.integers(0, 99, 400), "y": random.integers(0, 99, 400)})
    table = code(frame, Schema.build(quasi={"x": Range(), "y": Range()}))
    labels = Microaggregation(block=50).group(table, [KAnonymity(4)]).labels
    assert np.bincount(labels).min() >= 4


def test_coordinates_keep_the_order_of_the_hierarchy():
    _, table = make([(0, "aa", "x", "p"), (9, "ab", "y", "p"), (5, "cc", "z", "p")])
    points = coordinates(table)
    assert points.min() == 0
    assert points.max() == 1
    prefix = {v: float(p) for v, p in zip(table.levels[1].values.gather(table.matrix[:, 1]), points[:, 1], strict=True)}
    assert prefix["ab"] - prefix["aa"] < prefix["cc"] - prefix["ab"], "joining aa and ab costs less"


@settings(max_examples=30)
@given(rows=ROWS, k=st.integers(1, 4), seed=st.integers(0, 99), grown=st.booleans())
def test_top_down_of_a_table_has_k_rows_per_group(rows, k, seed, grown):
    _, table = make(rows)
    assume(table.size >= k)
    codes = table.matrix.astype(np.float64)
    order = np.random.default_rng(seed).permutation(table.size)
    labels = top_down(codes, codes, table.shape(), order, k, 3, grown)
    assert np.bincount(labels).min() >= k


def test_compiled_code_lives_under_the_hash_of_a_kernel_and_of_all_it_calls(tmp_path, monkeypatch):
    import shutil
    from pathlib import Path

    from shoal.kernels import stamps as how
    from shoal.kernels.shared import boxes
    from shoal.kernels.tables import mondrian

    for module, kernel in ((boxes, boxes.group_boxes), (mondrian, mondrian.mondrian)):
        file = Path(module.__file__)
        kernel.enable_caching()
        assert f"{file.stem}-{how.stamp(file)}" in kernel.stats.cache_path
    copy = tmp_path / "kernels"
    shutil.copytree(how.ROOM, copy)
    monkeypatch.setattr(how, "ROOM", copy)

    def forget() -> None:  # what is read once per process
        for known in (how.stamp, how._source, how._imports):
            known.cache_clear()

    forget()
    here = {name: how.stamp(copy / name) for name in ("shared/boxes.py", "tables/mondrian.py", "series/sax.py")}
    with (copy / "shared/boxes.py").open("a") as out:
        out.write("# changed\n")
    forget()
    changed = {name for name, before in here.items() if how.stamp(copy / name) != before}
    monkeypatch.undo()
    forget()
    assert changed == {"shared/boxes.py", "tables/mondrian.py"}
