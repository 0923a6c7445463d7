"""What holds of `local` and of the improvement of other methods' groups, judged by the promises' own definitions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from shoal.core.errors import PromiseError, UsageError
from shoal.core.groups import Groups
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.kernels.shared.promises import holds, workspace
from shoal.kernels.tables.local_pairs import make_pairs
from shoal.promises.alpha_k_anonymity import AlphaKAnonymity
from shoal.promises.base import Promise
from shoal.promises.beta_likeness import BetaLikeness
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules
from shoal.promises.t_closeness import TCloseness
from shoal.tables import local_start
from shoal.tables import stir as stirring
from shoal.tables.datafly import Datafly
from shoal.tables.forest import Forest
from shoal.tables.improve import Improver, improve
from shoal.tables.lattice import Lattice
from shoal.tables.local import Local
from shoal.tables.local_levels import cheaper_levels
from shoal.tables.microaggregation import Microaggregation
from shoal.tables.mondrian import Mondrian
from shoal.tables.topdown import TopDown

QUASI = {"age": Range(), "zip": Prefix(3), "job": Tree(nodes={"office": ["clerk", "judge"], "sea": ["pilot"]})}
ROWS = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(0, 30),
        "zip": st.sampled_from(["101", "102", "119", "201", "300"]),
        "job": st.none() | st.sampled_from(["clerk", "judge", "pilot"]),
        "ill": st.sampled_from("abcd"),
        "who": st.integers(0, 12),
    }
)
TYPES = {"age": pl.Int64, "zip": pl.String, "job": pl.String, "ill": pl.String, "who": pl.Int64}
FRAMES = st.lists(ROWS, min_size=1, max_size=60).map(lambda rows: pl.DataFrame(rows, schema=TYPES))
PROMISES = st.sampled_from(
    [
        [],
        [LDiversity(3, "ill")],
        [LDiversity(1.8, "ill", kind="entropy")],
        [LDiversity(2, "ill", kind="recursive", c=1.5)],
        [LDiversity(2, "ill", kind="frequency")],
        [TCloseness(0.25, "ill")],
        [TCloseness(0.2, "ill", distance="ordered"), LDiversity(2, "ill")],
    ]
)
WEIGHTS = {"age": 2.0, "zip": 0.5}


def coded(frame: pl.DataFrame, people: bool) -> Table:
    return code(frame, Schema.build(quasi=QUASI, sensitive=["ill"], subject="who" if people else None, weights=WEIGHTS))


def loss(table: Table, labels: np.ndarray) -> float:
    """Total weighted loss by the definition, group by group; a withheld row is wholly lost."""
    total = float((labels < 0).sum() * table.weights.sum())
    for group in range(labels.max(initial=-1) + 1):
        rows = table.matrix[labels == group]
        for j, levels in enumerate(table.levels):
            low, high = rows[:, j].min(keepdims=True), rows[:, j].max(keepdims=True)
            total += len(rows) * table.weights[j] * levels.ncp(low, high)[0]
    return total


def judged(table: Table, labels: np.ndarray, promises: list[Promise]) -> bool:
    kept = labels >= 0
    groups = Groups(
        labels[kept],
        {name: s.values.gather(s.codes[kept]) for name, s in table.sensitive.items()},
        None if table.people is None else table.people[kept],
    )
    return all(p.judge(groups).kept for p in promises)


def reachable(table: Table, promises: list[Promise]) -> bool:
    return judged(table, np.zeros(table.size, np.int32), promises)


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


OTHERS = [
    Mondrian(), Mondrian(strict=False), TopDown(), TopDown(near="group"), Microaggregation(), Forest(), Datafly(),
    Lattice(),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "k"), [(60, 2), (60, 20), (240, 5), (240, 100), (600, 150)])
@example(columns=2, seed=14)  # with k = 100, groups by levels lost less than the levels, and less than others
@given(columns=st.integers(1, 4), seed=st.integers(0, 50))
@settings(max_examples=4)
def test_no_other_method_of_ours_loses_less(rows: int, k: int, columns: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    kind = random.normal(size=rows)
    numbers = {f"n{j}": np.round(50 + 20 * (kind + random.normal(size=rows))) for j in range(columns)}
    frame = pl.DataFrame({**numbers, "zip": [f"{v:03d}" for v in random.integers(0, 300, rows)]})
    table = code(frame, Schema.build(quasi={**dict.fromkeys(numbers), "zip": Prefix(3)}))
    found = loss(table, Local().group(table, [KAnonymity(k)]).labels)
    for other in OTHERS:
        assert found <= loss(table, other.group(table, [KAnonymity(k)]).labels) + 1e-9, other.use


@pytest.mark.parametrize(
    "promise",
    [
        LDiversity(3, "s"),
        LDiversity(2.2, "s", kind="entropy"),
        LDiversity(1.7, "s", kind="frequency"),
        LDiversity(2, "s", kind="recursive", c=2),
        TCloseness(0.2, "s"),
        BetaLikeness(1, "s", kind="basic"),
        AlphaKAnonymity(0.7, 4, "s"),
    ],
    ids=lambda p: p.title,
)
@given(rows=st.sampled_from([60, 200, 400]), k=st.sampled_from([2, 10]), seed=st.integers(0, 50))
@settings(max_examples=3)
def test_no_other_method_of_ours_loses_less_under_promises_about_values(
    promise: Promise, rows: int, k: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    kind = random.normal(size=rows)
    frame = pl.DataFrame(
        {
            "n": np.round(50 + 20 * (kind + random.normal(size=rows))),
            "job": [f"j{v}" for v in random.integers(0, 6, rows)],
            "zip": [f"{v:03d}" for v in random.integers(0, 300, rows)],
            "s": [f"v{min(4, v)}" for v in random.geometric(0.5, rows)],
        }
    )
    table = code(frame, Schema.build(quasi={"n": None, "job": None, "zip": Prefix(3)}, sensitive=["s"]))
    promises: list[Promise] = [KAnonymity(k), promise]
    assume(reachable(table, promises))
    with pytest.MonkeyPatch.context() as patch:
        # every method but `mondrian` stirs its groups in the end, so that they tell less; that costs what it costs
        patch.setattr(stirring, "stir", lambda table, rules, labels, seed: labels)
        found = loss(table, Local().group(table, promises, seed=seed).labels)
        for other in OTHERS:
            assert found <= loss(table, other.group(table, promises, seed=seed).labels) + 1e-9, other.use


@given(frame=FRAMES, more=PROMISES, k=st.integers(1, 9), share=st.floats(0, 1.1))
@settings(max_examples=60)
def test_levels_are_found_as_the_lattice_finds_them_if_they_lose_less(
    frame: pl.DataFrame, more: list[Promise], k: int, share: float
) -> None:
    table = coded(frame, False)
    promises: list[Promise] = [KAnonymity(k), *more]
    assume(reachable(table, promises))
    best = Lattice().group(table, promises)
    assert best.floor is not None
    least = sum(
        float((x.costs(at)[x.codes[table.matrix[:, j], at]]).sum() * table.weights[j]) if at else 0.0
        for j, (x, at) in enumerate(zip(table.levels, best.floor[0].tolist(), strict=True))
    )
    limit = share * table.size * float(table.weights.sum())
    found = cheaper_levels(table, compile_rules(table, promises), limit)
    if least < limit - 1e-9:
        assert found is not None
        assert judged(table, found, promises)
        assert loss(table, found) <= least + 1e-9
    elif least > limit + 1e-9:
        assert found is None


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
