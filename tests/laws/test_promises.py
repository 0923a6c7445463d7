"""Promises: the verifier's code, the methods' compiled code and a slow definition written here agree."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import UsageError
from shoal.core.groups import Groups
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column, Schema
from shoal.core.table import code
from shoal.kernels.shared import promises as compiled
from shoal.promises import PROMISES, Promise
from shoal.promises.alpha_k_anonymity import AlphaKAnonymity
from shoal.promises.beta_likeness import BetaLikeness
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules
from shoal.promises.t_closeness import TCloseness

NODES = {"r": {"x": ["a", "b"], "y": ["c"]}, "s": {"z": ["d", "e"]}}
PATH = {leaf: (leaf, inner, top) for top, below in NODES.items() for inner, leaves in below.items() for leaf in leaves}
PATH[None] = (None, None, None)  # a missing value stays apart until the root
HEIGHT = 3
OUTSIDE = "outside"

PROMISE = st.one_of(
    st.builds(KAnonymity, st.integers(1, 5)),
    st.builds(LDiversity, st.integers(1, 4), st.just("s")),
    st.builds(
        LDiversity, st.sampled_from([1, 1.5, 2, 2.5, 3]), st.just("s"), st.sampled_from(["entropy", "frequency"])
    ),
    st.builds(LDiversity, st.integers(1, 4), st.just("s"), st.just("recursive"), st.sampled_from([0.5, 1.0, 2.0, 3.0])),
    st.builds(
        TCloseness,
        st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.75, 1.0]),
        st.just("s"),
        st.sampled_from(["equal", "ordered", "hierarchical"]),
    ),
    st.builds(
        AlphaKAnonymity,
        st.sampled_from([0.2, 1 / 3, 0.5, 0.7, 1.0]),
        st.integers(1, 3),
        st.just("s"),
        st.sampled_from([(), ("a",), ("a", "c"), ("x",)]),
    ),
    st.builds(
        BetaLikeness, st.sampled_from([0.1, 0.5, 1.0, 2.0, 9.0]), st.just("s"), st.sampled_from(["basic", "enhanced"])
    ),
)
ROW = st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", "c", "d", "e", None]), st.integers(0, 6))
ROWS = st.lists(ROW, min_size=1, max_size=25)


def slow(promise: Promise, rows: list[tuple], groups: dict[int, list[tuple]], people: bool) -> dict[int, bool]:
    """By the papers' words alone; rows are (group, value, person)."""
    return {g: _slow_one(promise, members, rows, people) for g, members in groups.items()}


def _values(rows: list[tuple], people: bool) -> Counter:
    return Counter(v for v, _ in ({(v, p) for _, v, p in rows} if people else [(v, p) for _, v, p in rows]))


def _packed(rows: list[tuple]) -> Counter:
    """Person by person: the commonest value takes whoever holds it, then the next, until everyone is taken."""
    holders = {p for _, v, p in rows if v is not None}
    held = Counter(v for v, _ in {(v, p) for _, v, p in rows if v is not None})
    if not holders:
        return Counter({"the same": 1})
    packed: Counter = Counter()
    for value, people in held.most_common():
        packed[value] = min(people, len(holders) - sum(packed.values()))
    return +packed


def _slow_one(promise: Promise, members: list[tuple], everyone: list[tuple], people: bool) -> bool:
    size = len({p for _, _, p in members}) if people else len(members)
    if isinstance(promise, KAnonymity):
        return size >= promise.k
    count = _values(members, people)
    if isinstance(promise, LDiversity):
        if people:
            count = _packed(members)
            size = sum(count.values())
        total = sum(count.values())
        most = max(count.values())
        if promise.kind == "distinct":
            return len(count) >= promise.l
        if promise.kind == "frequency":
            return all(n * Fraction(promise.l) <= size for n in count.values())
        if promise.kind == "entropy":
            return -sum(n / total * math.log(n / total) for n in count.values()) >= math.log(promise.l) - 1e-9
        ordered = sorted(count.values(), reverse=True)
        return most < Fraction(promise.c) * sum(ordered[int(promise.l) - 1 :])
    whole, all_of_them = _values(everyone, people), len({p for *_, p in everyone}) if people else len(everyone)
    if isinstance(promise, AlphaKAnonymity):
        return size >= promise.k and _slow_share(promise, members, people) <= promise.alpha + 1e-9
    if isinstance(promise, BetaLikeness):
        for value, n in count.items():
            p, q = Fraction(whole[value], all_of_them), Fraction(n, size)
            bound = promise.beta if promise.kind == "basic" else min(promise.beta, -math.log(p))
            if (q - p) / p > bound + 1e-9:
                return False
        return True
    assert isinstance(promise, TCloseness)
    gap = {v: Fraction(count[v], size) - Fraction(n, all_of_them) for v, n in whole.items()}
    return _slow_distance(promise.distance, gap) <= Fraction(promise.t) + Fraction(1, 10**9)


def _slow_share(promise: AlphaKAnonymity, members: list[tuple], people: bool) -> float:
    """Who holds a named value, of those who hold any; nobody's value is everybody's where all values are meant."""
    if not people:
        return max(
            (
                n / len(members)
                for v, n in Counter(v for _, v, _ in members).items()
                if not promise.values or v in promise.values
            ),
            default=0.0,
        )
    holds = defaultdict(set)
    for _, value, person in members:
        if value is not None:
            holds[value].add(person)
    anyone = set().union(*holds.values())
    if not anyone:
        return 0.0 if promise.values else 1.0
    return max(
        (len(p) / len(anyone) for v, p in holds.items() if not promise.values or v in promise.values), default=0.0
    )


def _slow_distance(kind: str, gap: dict) -> Fraction:
    if kind == "ordered":
        order = sorted(gap, key=lambda v: (v is None, v or ""))
        cuts = [(sum(gap[v] for v in order[:i]), sum(gap[v] for v in order[i:])) for i in range(1, len(order))]
        return min(Fraction(1), Fraction(sum(max(map(abs, cut)) for cut in cuts), max(1, len(order) - 1)))
    balanced = {**gap, OUTSIDE: -sum(gap.values())}  # people of several values: the rest comes from outside
    if kind == "equal":
        return min(Fraction(1), sum(map(abs, balanced.values()), Fraction(0)) / 2)
    return min(Fraction(1), _least_work(balanced, lambda a, b: Fraction(_climb(a, b), HEIGHT)))


def _climb(a: str | None, b: str | None) -> int:
    if OUTSIDE in (a, b):
        return HEIGHT
    return next((at for at in range(HEIGHT) if PATH[a][at] == PATH[b][at]), HEIGHT)


def _least_work(gap: dict, distance) -> Fraction:
    """Earth mover's distance in a tree: nearest pairs first is optimal there."""
    plus = {v: g for v, g in gap.items() if g > 0}
    minus = {v: -g for v, g in gap.items() if g < 0}
    work = Fraction(0)
    for a, b in sorted(((a, b) for a in plus for b in minus), key=lambda p: distance(*p)):
        moved = min(plus[a], minus[b])
        plus[a] -= moved
        minus[b] -= moved
        work += moved * distance(a, b)
    return work


def _groups(rows: list[tuple], people: bool) -> Groups:
    values = pl.Series([v for _, v, _ in rows], dtype=pl.String)
    _, labels = np.unique([g for g, _, _ in rows], return_inverse=True)
    tree = None
    distinct = values.unique().sort(nulls_last=True)
    levels, codes = Tree(nodes=NODES).compile(distinct)
    tree = Groups(labels.astype(np.int32), {"s": values}, np.array([p for *_, p in rows], np.int32) if people else None)
    return Groups(tree.labels, tree.sensitive, tree.people, {"s": levels}) if (codes >= 0).all() else tree


@settings(max_examples=200)
@given(PROMISE, ROWS, st.booleans())
def test_the_verifiers_measure_is_the_definition(promise, rows, people):
    groups = _groups(rows, people)
    members = defaultdict(list)
    for label, row in zip(groups.labels.tolist(), rows, strict=True):
        members[label].append(row)
    expected = slow(promise, rows, members, people)
    reached, kept = promise.measure(groups)
    assert kept.tolist() == [expected[g] for g in range(groups.count)]
    finding = promise.judge(groups)
    assert finding.kept == all(expected.values())
    assert finding.broken == sum(not fine for fine in expected.values())
    assert finding.unit == ("people" if people else "rows")
    for level, fine in zip(reached.tolist(), kept.tolist(), strict=True):
        enough = level <= promise.asked + 1e-9 if promise.higher_is_worse else level >= promise.asked - 1e-6
        # (alpha, k) reports the share; that a group is too small stands beside it
        assert enough == fine or (enough and isinstance(promise, AlphaKAnonymity)), "the level tells the verdict"


def _table(rows: list[tuple], people: bool):
    frame = pl.DataFrame(
        {
            "q": [g for g, _, _ in rows],
            "s": pl.Series([v for _, v, _ in rows], dtype=pl.String),
            "p": [p for *_, p in rows],
        }
    )
    columns = {"q": Column("quasi"), "s": Column("sensitive", hierarchy=Tree(nodes=NODES))}
    return code(frame, Schema({**columns, "p": Column("subject")} if people else columns))


@settings(max_examples=200)
@given(st.lists(PROMISE, min_size=1, max_size=3), ROWS, st.booleans(), st.data())
def test_the_compiled_check_is_the_definition(promises, rows, people, data):
    table = _table(rows, people)
    rules = compile_rules(table, promises)
    work = compiled.workspace(rules)
    ordered = [rows[i] for i in table.rows]
    order = np.array(data.draw(st.permutations(range(len(rows)))), np.int32)
    for _ in range(2):  # the scratch space is clean for the next one
        start = data.draw(st.integers(0, len(rows) - 1))
        stop = data.draw(st.integers(start + 1, len(rows)))
        members = [ordered[i] for i in order[start:stop]]
        expected = all(_slow_one(p, members, rows, people) for p in promises)
        assert compiled.holds(rules, order, start, stop, work) == expected
        assert not work.count.any()


@settings(max_examples=50)
@given(PROMISE, ROWS)
def test_merging_two_groups_that_keep_a_promise_keeps_it(promise, rows):
    """Of rows that are people; someone in both groups may tilt what is counted."""
    groups = _groups(rows, people=False)
    assume(promise.judge(groups).kept)
    together = Groups(np.zeros_like(groups.labels), groups.sensitive, None, groups.levels)
    assert promise.judge(together).kept


HELD = st.lists(st.sets(st.sampled_from("abcd"), min_size=1, max_size=3), min_size=1, max_size=5)
DIVERSE = st.one_of(
    st.builds(LDiversity, st.integers(1, 4), st.just("s")),
    st.builds(
        LDiversity, st.sampled_from([1, 1.5, 2, 2.5, 3]), st.just("s"), st.sampled_from(["entropy", "frequency"])
    ),
    st.builds(LDiversity, st.integers(1, 4), st.just("s"), st.just("recursive"), st.sampled_from([0.5, 1.0, 2.0])),
)


def _held(people: list[set[str]], counted: bool = True) -> Groups:
    rows = [(person, value) for person, values in enumerate(people) for value in sorted(values)]
    who = np.array([p for p, _ in rows], np.int32)
    return Groups(np.zeros(len(rows), np.int32), {"s": pl.Series([v for _, v in rows])}, who if counted else None)


@settings(max_examples=150)
@given(DIVERSE, HELD)
def test_a_group_of_people_is_diverse_whichever_of_their_values_each_is_counted_for(promise, people):
    if not promise.judge(_held(people)).kept:
        return
    for pick in itertools.product(*people):
        assert promise.judge(_held([{value} for value in pick])).kept


@given(DIVERSE, st.lists(st.sampled_from("abcd"), min_size=1, max_size=8))
def test_people_of_one_value_each_are_judged_as_rows(promise, values):
    one_each = [{v} for v in values]
    people, rows = promise.judge(_held(one_each)), promise.judge(_held(one_each, counted=False))
    assert people.kept == rows.kept
    assert people.reached == pytest.approx(rows.reached, rel=1e-12)  # sums in another order


@pytest.mark.parametrize(
    "promise",
    [
        LDiversity(2, "s"),
        LDiversity(3, "s"),
        LDiversity(2.3, "s", kind="entropy"),
        LDiversity(2, "s", kind="recursive"),
        LDiversity(1.5, "s", kind="frequency"),
    ],
)
def test_a_value_that_everyone_holds_is_not_hidden_by_what_else_some_hold(promise):
    assert not promise.judge(_held([{"HIV", "cold"}, {"HIV"}, {"HIV", "flu"}, {"HIV"}])).kept
    with_missing = Groups(
        np.zeros(4, np.int32), {"s": pl.Series(["HIV", None, "HIV", None])}, np.array([0, 1, 2, 3], np.int32)
    )
    assert not promise.judge(with_missing).kept, "a missing value is not diversity"
    nothing = Groups(np.zeros(2, np.int32), {"s": pl.Series([None, None])}, np.array([0, 1], np.int32))
    assert not promise.judge(nothing).kept
    assert promise.judge(_held([{"HIV"}, {"cold"}, {"flu"}, {"HIV", "gout"}])).kept


def _crowds(crowds: list[list[set[str]]]) -> Groups:
    """One group after the other, of people with the values they hold."""
    people = [(group, values) for group, crowd in enumerate(crowds) for values in crowd]
    rows = [(group, who, value) for who, (group, values) in enumerate(people) for value in sorted(values)]
    return Groups(
        np.array([g for g, *_ in rows], np.int32),
        {"s": pl.Series([v for *_, v in rows])},
        np.array([p for _, p, _ in rows], np.int32),
    )


@settings(max_examples=100)
@given(st.lists(HELD, min_size=1, max_size=3), st.sampled_from([0.1, 0.3, 0.5, 0.8]))
def test_t_bounds_the_share_of_people_who_hold_a_value(crowds, t):
    everyone = [values for crowd in crowds for values in crowd]
    reached, kept = TCloseness(t, "s").measure(_crowds(crowds))
    for crowd, fine in zip(crowds, kept, strict=True):
        for value in "abcd":
            apart = sum(value in v for v in crowd) / len(crowd) - sum(value in v for v in everyone) / len(everyone)
            assert not fine or abs(apart) <= t + 1e-9
    assert (reached <= 1).all()


def test_closeness_is_not_diluted_by_what_else_people_hold():
    """Everyone in the first group has HIV, and enough besides that the values they show are spread as elsewhere."""
    all_ill = [{"HIV", "cold"}, {"HIV", "flu"}, {"HIV", "gout"}, {"HIV", "rash"}]
    rest = [{"HIV", "cold"}, {"flu"}, {"gout"}, {"rash"}] * 5
    assert not TCloseness(0.5, "s").judge(_crowds([all_ill, rest])).kept


@pytest.mark.parametrize("name", ["k-anonymity", "l-diversity", "t-closeness"])
def test_nothing_released_keeps_every_promise_and_says_so(name):
    spec = PROMISES.get(name)
    promise = spec(2) if name == "k-anonymity" else spec(1, "s")
    finding = promise.judge(Groups(np.zeros(0, np.int32), {"s": pl.Series([], dtype=pl.String)}))
    assert finding.kept
    assert finding.note == "nothing was released"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: KAnonymity(0), "at least 1"),
        (lambda: LDiversity(0.5, "s"), "at least 1"),
        (lambda: LDiversity(2.5, "s"), "whole number"),
        (lambda: LDiversity(2, "s", c=0), "positive"),
        (lambda: TCloseness(1.5, "s"), "between 0 and 1"),
        (lambda: TCloseness(math.nan, "s"), "between 0 and 1"),
    ],
)
def test_promises_out_of_range_are_refused(make, words):
    with pytest.raises(UsageError, match=words):
        make()


@pytest.mark.parametrize(
    ("values", "named"),
    [([0, 1, 1], 1.0), ([0, 1, 1], True), ([0, 1, 1], "1"), ([False, True, True], "true"), ([0.5, 1, 1], 1)],
)
def test_a_named_value_is_found_however_it_is_written(values, named):
    groups = Groups(np.zeros(3, np.int32), {"s": pl.Series(values, strict=False)})
    found = AlphaKAnonymity(0.5, 2, "s", values=(named,)).judge(groups)
    assert (found.kept, round(found.reached, 3)) == (False, 0.667)


def test_values_that_nobody_has_are_told_or_refused_and_not_quoted():
    frame = pl.DataFrame({"age": [20, 21, 50, 51], "diag": ["E10", "flu", "E10", "flu"]})
    asked = {"quasi": ["age"], "sensitive": ["diag"], "seed": 1, "method": "mondrian"}
    with pytest.raises(UsageError, match="none of the values that are named occurs") as refused:
        shoal.anonymize(frame, promises=[AlphaKAnonymity(0.5, 2, "diag", values=("e10",))], **asked)
    assert "e10" not in str(refused.value)
    made = shoal.anonymize(frame, promises=[AlphaKAnonymity(0.5, 2, "diag", values=("E10", "e10"))], **asked)
    assert "at place 2 does not occur" in made.warnings[0]
    assert "1 of the 2 values that are named do not occur" in made.report.findings[0].note


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["c", "a", "b"]), pl.Boolean, pl.Float64, pl.Int64, pl.Date])
def test_counts_of_every_type_of_sensitive_column(dtype):
    raw = {"Boolean": [True, False, None], "Float64": [1.5, float("nan"), None], "Int64": [3, 1, None]}
    kind = str(dtype).split("(")[0]
    values = raw.get(kind, ["a", "b", None])
    series = pl.Series([1, 2, None]).cast(pl.Date) if dtype == pl.Date else pl.Series(values, dtype=dtype)
    groups = Groups(np.array([0, 0, 0], np.int32), {"s": series})
    found = LDiversity(1, "s").judge(groups).reached
    assert found == (2 if kind == "Float64" else 3), "not a number is a missing value"


def test_hierarchical_distance_refuses_a_column_without_a_hierarchy_or_with_strangers():
    promise = TCloseness(0.5, "s", "hierarchical")
    groups = Groups(np.zeros(2, np.int32), {"s": pl.Series(["a", "zz"])})
    with pytest.raises(UsageError, match="needs a hierarchy"):
        promise.judge(groups)
    levels, _ = Tree(nodes=NODES).compile(pl.Series(["a"]))
    with pytest.raises(UsageError, match="1 distinct values of column 's' are unknown") as caught:
        promise.judge(Groups(groups.labels, groups.sensitive, None, {"s": levels}))
    assert "zz" not in str(caught.value)
