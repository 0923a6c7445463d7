"""Laws of every table method: each is under all of them by being listed in TABLE_METHODS."""

from __future__ import annotations

import itertools
import os

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shoal.api import anonymize
from shoal.core.errors import PromiseError, UsageError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.release import boxes_of
from shoal.core.schema import Column, Schema
from shoal.core.table import code
from shoal.measures.loss import loss
from shoal.promises.alpha_k_anonymity import AlphaKAnonymity
from shoal.promises.base import Promise
from shoal.promises.beta_likeness import BetaLikeness
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.tables import TABLE_METHODS

JOBS = {"office": ["clerk", "judge"], "field": {"farm": ["cook", "reaper"], "sea": ["sailor", "whaler"]}}
ILLS = Tree(nodes={"respiratory": ["asthma", "covid"], "other": ["diabetes", "gout"]})
QUASI = {
    "age": Range(),
    "income": Range(min=0, max=64, snap=True),
    "zip": Prefix(3),
    "job": Tree(nodes=JOBS),
    "sex": Suppress(),
}

ROWS = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(20, 60),
        "income": st.integers(0, 64),
        "zip": st.sampled_from(["101", "102", "119", "201", "209", "300"]),
        "job": st.sampled_from(["clerk", "judge", "cook", "reaper", "sailor", "whaler"]),
        "sex": st.sampled_from(["F", "M", None]),
        "ill": st.sampled_from(["asthma", "covid", "diabetes", "gout", None]),
        "note": st.integers(0, 9),
        "who": st.integers(0, 25),
    }
)
TYPES = dict.fromkeys(("zip", "job", "sex", "ill"), pl.String) | dict.fromkeys(
    ("age", "income", "note", "who"), pl.Int64
)
FRAMES = st.lists(ROWS, min_size=1, max_size=40).map(lambda rows: pl.DataFrame(rows, schema=TYPES))
MORE = st.sampled_from(
    [
        [],
        [LDiversity(2, "ill")],
        [LDiversity(3, "ill")],
        [LDiversity(1.7, "ill", kind="entropy")],
        [LDiversity(2, "ill", kind="recursive", c=2.0)],
        [LDiversity(1.5, "ill", kind="frequency")],
        [TCloseness(0.3, "ill")],
        [TCloseness(0.2, "ill", distance="ordered")],
        [TCloseness(0.2, "ill", distance="hierarchical")],
        [LDiversity(2, "ill"), TCloseness(0.4, "ill")],
        [BetaLikeness(1, "ill")],
        [BetaLikeness(0.5, "ill", kind="basic")],
        [AlphaKAnonymity(0.6, 2, "ill")],
        [AlphaKAnonymity(0.4, 3, "ill", values=("gout",))],
    ]
)
PROMISES = st.tuples(st.integers(1, 6), MORE).map(lambda p: [KAnonymity(p[0]), *p[1]])
CHOICE = st.lists(st.sampled_from(list(QUASI)), min_size=1, max_size=5, unique=True)


def schema(names: list[str], *, people: bool) -> Schema:
    columns = {name: Column("quasi", hierarchy=QUASI[name]) for name in names}
    columns |= {"ill": Column("sensitive", hierarchy=ILLS), "note": Column("plain")}
    return Schema(columns | ({"who": Column("subject")} if people else {}))


listed = pytest.mark.parametrize("name", TABLE_METHODS.names())


def every_method(examples: int):
    def mark(test):
        return settings(max_examples=examples)(listed(test))

    return mark


def release(frame: pl.DataFrame, described: Schema, promises: list[Promise], method):
    """The release; nothing if the promises cannot be reached. A release the verifier refuses is a failure."""
    named = {value for promise in promises for value in promise.rule().values}
    assume(not named or named & set(frame["ill"]))  # refused where nobody has what is named
    try:
        return anonymize(frame, schema=described, promises=promises, method=method, seed=0, keep_order=True)
    except PromiseError as error:
        if error.where == "verify":
            raise
        assume(False)


def limited(name: str, share: float):
    """The method with a limit of suppression, if it knows one."""
    kind = TABLE_METHODS.get(name)
    return kind(suppress=share) if "suppress" in {f.name for f in msgspec.structs.fields(kind)} else kind()


@every_method(60)
@given(frame=FRAMES, names=CHOICE, promises=PROMISES, people=st.booleans())
def test_the_verifier_accepts_and_no_row_is_lost(name, frame, names, promises, people):
    before = frame.clone()
    out = release(frame, schema(names, people=people), promises, name)
    assert frame.equals(before)
    assert out.report.verified
    assert out.data.height == frame.height, "without a limit nothing is suppressed"
    assert out.data["ill"].equals(frame["ill"])
    assert out.data["note"].equals(frame["note"])
    assert out.data.columns == [c for c in frame.columns if c in (*names, "ill", "note")]


@every_method(40)
@given(frame=FRAMES, names=CHOICE, promises=PROMISES, people=st.booleans(), share=st.sampled_from([0.1, 0.3, 1.0]))
def test_suppression_stays_within_its_limit_and_its_promise(name, frame, names, promises, people, share):
    out = release(frame, schema(names, people=people), promises, limited(name, share))
    suppressed = int((out.groups < 0).sum())
    assert suppressed <= share * frame.height
    assert out.data.height + suppressed == frame.height
    kept = np.flatnonzero(out.groups >= 0)
    assert out.data["ill"].equals(frame["ill"].gather(kept))


@every_method(25)
@given(frame=FRAMES, names=CHOICE, promises=PROMISES, seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_does_not_matter(name, frame, names, promises, seed):
    order = np.random.default_rng(seed).permutation(frame.height)
    shown = [*names, "ill"]
    one = release(frame, schema(names, people=False), promises, name).data.select(shown)
    other = release(frame[order.tolist()], schema(names, people=False), promises, name).data.select(shown)
    assert one.sort(shown).equals(other.sort(shown))


@every_method(15)
@given(frame=FRAMES, promises=PROMISES, seed=st.integers(0, 5))
def test_the_same_seed_gives_the_same_groups(name, frame, promises, seed):
    table = code(frame, schema(list(QUASI), people=False))
    method = TABLE_METHODS.get(name)()
    try:
        one = method.group(table, promises, seed=seed)
    except PromiseError:
        assume(False)
    other = method.group(table, promises, seed=seed)
    assert (one.labels == other.labels).all()
    assert one.labels.dtype == np.int32
    assert set(np.unique(one.labels)) <= {-1, *range(one.labels.max() + 1)}
    assert len(np.unique(one.labels[one.labels >= 0])) == one.labels.max() + 1, "labels are dense"


@every_method(20)
@given(frame=FRAMES, weight=st.sampled_from([0.1, 1.0, 7.5]))
def test_weights_are_allowed_and_keep_the_promise(name, frame, weight):
    columns = {n: Column("quasi", hierarchy=h, weight=weight if n == "zip" else 1.0) for n, h in QUASI.items()}
    release(frame, Schema(columns), [KAnonymity(3)], name)


@listed
def test_bad_limits_are_refused(name):
    kind = TABLE_METHODS.get(name)
    if "suppress" in {f.name for f in msgspec.structs.fields(kind)}:
        for share in (-0.1, 1.5, float("nan")):
            with pytest.raises(UsageError, match="between 0 and 1"):
                kind(suppress=share)


@listed
def test_too_few_people_is_an_error_that_says_how_near(name):
    frame = pl.DataFrame({"age": [1, 2, 3]})
    with pytest.raises(PromiseError, match="asked 4, the whole table as one group reaches 3"):
        anonymize(frame, quasi={"age": Range()}, k=4, method=name)


@listed
def test_an_empty_table_cannot_keep_a_promise(name):
    with pytest.raises(PromiseError, match="cannot be reached"):
        anonymize(pl.DataFrame({"age": pl.Series([], dtype=pl.Int64)}), quasi={"age": Range()}, k=2, method=name)


@listed
def test_constant_columns_lose_nothing(name):
    frame = pl.DataFrame({"age": [7] * 6, "sex": ["F"] * 6, "zip": ["101"] * 6})
    out = anonymize(frame, quasi={"age": Range(), "sex": Suppress(), "zip": Prefix(3)}, k=3, method=name)
    assert out.data.rows() == [("7", "F", "101")] * 6
    assert out.report.loss.gcp == 0


@listed
def test_nan_is_a_missing_value(name):
    frame = pl.DataFrame({"x": [1.0, float("nan"), 2.0, float("nan"), 1.5, 1.25]})
    out = anonymize(frame, quasi={"x": Range()}, k=2, method=name)
    assert out.report.verified


def partitions(rows: tuple[int, ...], k: int):
    """All ways to part rows into groups of at least k and fewer than 2k (larger ones can be parted again)."""
    if not rows:
        yield []
    for size in range(k, min(len(rows), 2 * k - 1) + 1):
        for others in itertools.combinations(rows[1:], size - 1):
            left = tuple(r for r in rows[1:] if r not in others)
            for more in partitions(left, k):
                yield [[rows[0], *others], *more]


@every_method(25)
@given(rows=st.lists(ROWS, min_size=4, max_size=8), names=CHOICE, k=st.integers(2, 3))
def test_nothing_loses_less_than_the_best_of_all_groupings(name, rows, names, k):
    frame = pl.DataFrame(rows, schema=TYPES)
    table = code(frame, schema(names, people=False))
    assume(table.size >= k)

    def total(group: list[int]) -> float:
        codes = table.matrix[group]
        low, high = codes.min(0, keepdims=True), codes.max(0, keepdims=True)
        return len(group) * sum(float(x.ncp(low[:, j], high[:, j])[0]) for j, x in enumerate(table.levels))

    best = min(sum(map(total, p)) for p in partitions(tuple(range(table.size)), k))
    found = TABLE_METHODS.get(name)().group(table, [KAnonymity(k)])
    lost = loss(table, found.labels, boxes_of(table, found.labels, found.floor))
    assert lost.gcp * table.size * len(names) >= best - 1e-9
    if name == "local":
        assert lost.gcp * table.size * len(names) <= best + 1e-9


@settings(max_examples=60)
@given(frame=FRAMES, names=CHOICE, promises=PROMISES)
def test_of_the_full_domain_methods_the_lattice_loses_least(frame, names, promises):
    described = schema(names, people=False)
    best, other = (release(frame, described, promises, method) for method in ("lattice", "datafly"))
    assert best.report.loss.gcp <= other.report.loss.gcp + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("hierarchy", [Suppress(), Prefix(8)])
def test_very_many_different_texts_are_no_trouble(hierarchy):
    n = 1_000_000 if os.environ.get("SHOAL_LONG") else 100_000
    frame = pl.DataFrame({"name": pl.arange(n, eager=True).cast(str).str.zfill(8), "age": np.arange(n) * 7 % 90})
    table = code(frame, Schema.build(quasi={"name": hierarchy, "age": None}))
    sizes = np.bincount(TABLE_METHODS.get("local")(effort="low").group(table, [KAnonymity(5)]).labels)
    assert sizes.min() >= 5
    assert sizes.sum() == n
