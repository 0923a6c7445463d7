"""What holds of `local` and of the improvement of other methods' groups, judged by the promises' own definitions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from local_tables import FRAMES, PROMISES, TYPES, coded, judged, loss, reachable

from shoal.core.errors import PromiseError, UsageError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.kernels.shared.promises import holds, workspace
from shoal.kernels.tables.local_pairs import make_pairs
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.rules import compile_rules
from shoal.promises.t_closeness import TCloseness
from shoal.tables import local_start
from shoal.tables.improve import Improver, improve
from shoal.tables.local import Local
from shoal.tables.mondrian import Mondrian


@pytest.mark.parametrize("people", [False, True])
@given(frame=FRAMES, more=PROMISES, k=st.integers(1, 5), effort=st.sampled_from(["low", 150]), seed=st.integers(0, 9))
@settings(max_examples=60)
def test_every_promise_is_kept_and_every_row_has_a_group(
    people: bool, frame: pl.DataFrame, more: list[Promise], k: int, effort: str | int, seed: int
) -> None:
    table = coded(frame, people)
    promises: list[Promise] = [KAnonymity(k), *more]
    if not reachable(table, promises):
        with pytest.raises(PromiseError):
            Local(effort=effort).group(table, promises, seed=seed)
        return
    labels = Local(effort=effort).group(table, promises, seed=seed).labels
    assert labels.min() == 0
    assert set(labels) == set(range(labels.max() + 1))
    assert judged(table, labels, promises)
    again = Local(effort=effort).group(table, promises, seed=seed).labels
    assert (again == labels).all()


@given(frame=FRAMES, more=PROMISES, k=st.integers(2, 4), share=st.floats(0, 0.5))
@settings(max_examples=50)
def test_suppression_stays_within_its_limit_and_never_raises_the_loss_of_k(
    frame: pl.DataFrame, more: list[Promise], k: int, share: float
) -> None:
    table = coded(frame, False)
    promises: list[Promise] = [KAnonymity(k), *more]
    assume(reachable(table, promises))
    whole = Local(effort=50).group(table, promises).labels
    labels = Local(effort=50, suppress=share).group(table, promises).labels
    assert (labels < 0).sum() <= share * table.size
    assert judged(table, labels, promises)
    if not any(isinstance(p, TCloseness) for p in more):
        assert loss(table, labels) <= loss(table, whole) + 1e-9


@given(frame=FRAMES, more=PROMISES, k=st.integers(2, 4), people=st.booleans())
@settings(max_examples=50)
def test_improving_another_methods_groups_keeps_promises_and_never_loses_more(
    frame: pl.DataFrame, more: list[Promise], k: int, people: bool
) -> None:
    table = coded(frame, people)
    promises: list[Promise] = [KAnonymity(k), *more]
    assume(reachable(table, promises))
    before = Mondrian().group(table, promises).labels
    after = improve(table, compile_rules(table, promises), before, 60, 3)
    assert judged(table, after, promises)
    assert loss(table, after) <= loss(table, before) + 1e-6


@given(frame=FRAMES, more=PROMISES, k=st.integers(2, 4), seed=st.integers(0, 9))
@settings(max_examples=40)
def test_steps_that_may_lose_a_little_keep_promises_and_end_no_worse(
    frame: pl.DataFrame, more: list[Promise], k: int, seed: int
) -> None:
    table = coded(frame, False)
    promises: list[Promise] = [KAnonymity(k), *more]
    assume(reachable(table, promises))
    before = Mondrian().group(table, promises).labels
    improver = Improver(table.matrix, make_pairs(table.shape()), compile_rules(table, promises), before, seed)
    after = improver.run(120, heat=0.5)
    assert judged(table, after, promises)
    assert loss(table, after) <= loss(table, before) + 1e-6
    assert loss(table, after) == pytest.approx(improver.loss, abs=1e-6)
    again = Improver(table.matrix, make_pairs(table.shape()), compile_rules(table, promises), before, seed)
    assert (again.run(120, heat=0.5) == after).all()


def test_small_tables_lose_less_by_steps_that_may_lose_a_little() -> None:
    normal, straight = 0.0, 0.0
    for seed in range(6):
        random = np.random.default_rng(seed)
        frame = pl.DataFrame({f"c{j}": random.zipf(1.4, 150).clip(0, 40) for j in range(4)})
        table = code(frame, Schema.build(quasi={name: Range() for name in frame.columns}))
        promises: list[Promise] = [KAnonymity(4)]
        begun = Local(effort="low").form(table, promises, seed=seed).labels
        steps = Local().steps(4, table.size)
        straight += loss(table, improve(table, compile_rules(table, promises), begun, steps, seed))
        normal += loss(table, Local().form(table, promises, seed=seed).labels)
    assert normal < straight


def test_improving_leaves_suppressed_rows_suppressed() -> None:
    table = coded(
        pl.DataFrame({name: [v] * 8 for name, v in zip(TYPES, (5, "101", "clerk", "a", 1), strict=True)}), False
    )
    labels = np.array([0, 0, 0, -1, 1, 1, 1, -1], np.int32)
    out = improve(table, compile_rules(table, [KAnonymity(3)]), labels, 10)
    assert (np.flatnonzero(out < 0) == [3, 7]).all()


@given(frame=FRAMES, more=PROMISES, k=st.integers(2, 4))
@settings(max_examples=40)
def test_a_lattice_too_large_to_list_breaks_nothing(frame: pl.DataFrame, more: list[Promise], k: int) -> None:
    table = coded(frame, False)
    promises: list[Promise] = [KAnonymity(k), *more]
    assume(reachable(table, promises))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_start, "WHOLE", 1)
        labels = Local(effort=20).group(table, promises).labels
    assert labels.min() == 0
    assert judged(table, labels, promises)


def test_columns_of_many_codes_are_computed_instead_of_looked_up() -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "x": rng.normal(size=900),
            "y": rng.integers(0, 2000, 900),
            "z": [f"{v:04d}" for v in rng.integers(0, 9999, 900)],
        }
    )
    table = code(frame, Schema.build(quasi={"x": None, "y": Range(snap=True), "z": Prefix(4)}))
    assert min(x.size for x in table.levels) > 256
    low = Local(effort="low").group(table, [KAnonymity(4)]).labels
    more = Local(effort=400).group(table, [KAnonymity(4)]).labels
    assert np.bincount(low).min() >= 4
    assert np.bincount(more).min() >= 4
    assert loss(table, more) < loss(table, low)


@pytest.mark.parametrize("seed", range(8))
def test_small_tables_reach_the_proven_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = 11, 3
    frame = pl.DataFrame(
        {
            "age": rng.integers(0, 30, n),
            "zip": rng.choice(["101", "102", "119", "201", "300"], n),
            "job": rng.choice(["clerk", "judge", "pilot"], n),
            "ill": ["a"] * n,
            "who": range(n),
        }
    )
    table = coded(frame, False)
    best = optimum(table, k)
    for effort in ("low", "normal"):
        found = loss(table, Local(effort=effort).group(table, [KAnonymity(k)]).labels)
        assert found == pytest.approx(best, abs=1e-9)


def all_partitions(rows: list[int]) -> Iterator[list[list[int]]]:
    """Every way to part the rows into groups of any size."""
    if not rows:
        yield []
        return
    first, *others = rows
    for size in range(len(others) + 1):
        for more in itertools.combinations(others, size):
            for rest in all_partitions([row for row in others if row not in more]):
                yield [[first, *more], *rest]


@given(frame=FRAMES.filter(lambda f: f.height <= 7), k=st.integers(1, 3), people=st.booleans())
@settings(max_examples=25)
def test_of_few_rows_the_best_grouping_is_found(frame: pl.DataFrame, k: int, people: bool) -> None:
    """Also where people have several rows: then a group may need more rows than k."""
    table = coded(frame, people)
    promises: list[Promise] = [KAnonymity(k)]
    assume(reachable(table, promises))
    best = np.inf
    for parts in all_partitions(list(range(table.size))):
        labels = np.zeros(table.size, np.int32)
        for number, rows in enumerate(parts):
            labels[rows] = number
        if judged(table, labels, promises):
            best = min(best, loss(table, labels))
    assert loss(table, Local(effort="low").group(table, promises).labels) == pytest.approx(best, abs=1e-9)


def optimum(table: Table, k: int) -> float:
    """The least total loss of any grouping, over all subsets: exact, exponential."""
    n = table.size
    cost = {}
    for size in range(k, 2 * k):
        for rows in itertools.combinations(range(n), size):
            labels = np.full(n, -1, np.int32)
            labels[list(rows)] = 0
            mask = sum(1 << r for r in rows)
            cost[mask] = loss(table, labels) - (n - size) * table.weights.sum()
    best = {0: 0.0}
    for mask in range(1, 1 << n):
        first = mask & -mask
        options = [best.get(mask ^ sub, np.inf) + c for sub, c in cost.items() if sub & first and sub & mask == sub]
        if options and min(options) < np.inf:
            best[mask] = min(options)
    return best[(1 << n) - 1]


def test_interruption_leaves_the_best_so_far_or_nothing() -> None:
    rng = np.random.default_rng(1)
    table = code(pl.DataFrame({"x": rng.normal(size=200)}), Schema.build(quasi={"x": None}))

    def stop(share: float, word: str) -> None:
        if word.startswith("loss"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Local(effort=10_000).group(table, [KAnonymity(3)], progress=stop)
    labels = Local(effort=10_000, interrupted="best").group(table, [KAnonymity(3)], progress=stop).labels
    assert np.bincount(labels).min() >= 3


def test_progress_tells_a_falling_loss() -> None:
    rng = np.random.default_rng(2)
    table = code(
        pl.DataFrame({"x": rng.normal(size=300), "y": rng.normal(size=300)}), Schema.build(quasi={"x": None, "y": None})
    )
    heard: list[tuple[float, str]] = []
    labels = Local(effort=500).group(table, [KAnonymity(3)], progress=lambda s, w: heard.append((s, w))).labels
    shares = [share for share, _ in heard]
    told = [float(word.split()[1]) for _, word in heard if word.startswith("loss")]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert told == sorted(told, reverse=True)
    assert told[-1] == pytest.approx(100 * loss(table, labels) / table.matrix.size, abs=0.001)


@pytest.mark.parametrize("bad", [{"effort": -1}, {"suppress": -0.1}, {"suppress": 1.5}, {"suppress": float("nan")}])
def test_parameters_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Local(**bad)


def test_no_row_no_group_and_one_value_no_loss() -> None:
    empty = code(pl.DataFrame({"x": pl.Series([], dtype=pl.Int64)}), Schema.build(quasi={"x": None}))
    with pytest.raises(PromiseError):
        Local().group(empty, [KAnonymity(2)])
    constant = code(pl.DataFrame({"x": ["a"] * 7, "y": [1] * 7}), Schema.build(quasi={"x": None, "y": None}))
    labels = Local().group(constant, [KAnonymity(2)]).labels
    assert loss(constant, labels) == 0


def test_a_column_of_names_is_suppressed_and_the_rest_survives() -> None:
    n = 30_000
    frame = pl.DataFrame({"name": [f"u{i}" for i in range(n)], "x": np.arange(n) % 7})
    table = code(frame, Schema.build(quasi={"name": None, "x": None}))
    labels = Local(effort=200).group(table, [KAnonymity(5)]).labels
    assert np.bincount(labels).min() >= 5
    assert loss(table, labels) == pytest.approx(n)


@given(frame=FRAMES, more=PROMISES, k=st.integers(1, 4), size=st.integers(1, 12), data=st.data())
@settings(max_examples=80)
def test_fewer_rows_than_the_least_size_never_keep_the_promises(
    frame: pl.DataFrame, more: list[Promise], k: int, size: int, data: st.DataObject
) -> None:
    table = coded(frame, False)
    rules = compile_rules(table, [KAnonymity(k), *more])
    least = local_start.at_least(rules).k
    rows = np.array(data.draw(st.permutations(range(table.size)))[:size], np.int32)
    if holds(rules, rows, 0, len(rows), workspace(rules)):
        assert len(rows) >= least


def test_the_least_size_of_many_values_is_found() -> None:
    overall = np.full(10, 0.1)
    assert local_start._least_close(overall, 0.2, 1000) == 8  # eight of ten values, each matched up to its tenth
    assert local_start._least_close(np.array([1.0]), 0.2, 1000) == 1
