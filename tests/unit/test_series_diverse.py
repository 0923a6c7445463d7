"""Sensitive values minded while grouping: nothing feasible is refused, little is suppressed, every kind is kept."""

from __future__ import annotations

import itertools
import os

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import PromiseError, UsageError
from shoal.core.groups import Groups
from shoal.kernels.series.diverse import diverse_parts, tally_of, trim
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.kp_anonymity import KPAnonymity, judge_curves
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.series import SERIES_METHODS, diverse
from shoal.series.diverse import largest, rules_for
from shoal.series.release import anonymize_series
from shoal.series.sax import Sax

KINDS = ("distinct", "entropy", "recursive", "frequency")


def partitions(n, most=None):
    if n == 0:
        yield []
    for first in range(min(n, most or n), 0, -1):
        for rest in partitions(n - first, first):
            yield [first, *rest]


def holds(promise, counts):
    values = np.repeat(np.arange(len(counts)), counts)
    if not len(values):
        return False
    return promise.judge(Groups(np.zeros(len(values), np.int32), {"s": pl.Series(values)})).kept


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_feasible_small_input_is_refused(kind):
    """All ways in which up to seven records can have values, with SHOAL_LONG up to ten.

    Feasible: some of them, at least k, could be one group.
    """
    largest_input = 10 if os.environ.get("SHOAL_LONG") else 7
    curves = np.random.default_rng(2).normal(size=(10, 4)).cumsum(axis=1)
    judged: dict[tuple, bool] = {}
    refused = 0
    for n, l in itertools.product(range(2, largest_input + 1), (2, 3)):
        promise = LDiversity(l, "s", kind=kind)
        for counts in partitions(n):
            below = {tuple(sorted(c, reverse=True)) for c in itertools.product(*[range(c + 1) for c in counts])}
            for some in below:
                if (l, some) not in judged:
                    judged[l, some] = holds(promise, [c for c in some if c])
            most = max((sum(c) for c in below if judged[l, c]), default=0)
            values = np.random.default_rng([n, l]).permutation(np.repeat(np.arange(len(counts)), counts))
            assert len(largest(rules_for(pl.DataFrame({"s": values}), [promise], 1))) == most
            # k that is just reached and just not, beside a small one: the whole grid takes minutes
            for k, p in ((3, 3), (max(most, 1), 1), (most + 1, 1)):
                if n < k:
                    continue
                how = {"k": k, "p": p, "sensitive": {"s": values}, "promises": [promise]}
                if most < k:
                    refused += 1
                    with pytest.raises(PromiseError, match="cannot be reached"):
                        anonymize_series(curves[:n], **how)
                    continue
                release = anonymize_series(curves[:n], **how)
                findings, _ = judge_curves(release.frame(), KPAnonymity(k, p), [promise], sensitive=["s"])
                assert all(finding.kept for finding in findings), (counts, l, k, p)
    assert refused


def test_of_several_columns_every_subset_of_few_records_is_tried():
    a, b = [0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 0]
    frame = pl.DataFrame({"a": a, "b": b})
    promises = [LDiversity(2, c, kind="frequency") for c in "ab"]
    sizes = [
        size
        for size in range(1, 7)
        for rows in itertools.combinations(range(6), size)
        if all(
            p.judge(Groups(np.zeros(size, np.int32), {c: frame[c].gather(rows) for c in "ab"})).kept for p in promises
        )
    ]
    assert len(largest(rules_for(frame, promises, 1))) == max(sizes)


@st.composite
def about(draw):
    """A promise of any kind about column ``s``."""
    if draw(st.booleans()):
        return LDiversity(draw(st.sampled_from([2, 3])), "s", kind=draw(st.sampled_from(KINDS)))
    return TCloseness(draw(st.sampled_from([0.2, 0.5])), "s", distance=draw(st.sampled_from(["equal", "ordered"])))


@pytest.mark.parametrize("method", SERIES_METHODS.names())
@settings(max_examples=60)
@given(
    sensitive=st.lists(st.sampled_from([0, 0, 0, 1, 2, None]), min_size=6, max_size=60),
    promises=st.lists(about(), min_size=1, max_size=2),
    k=st.integers(2, 8),
    seed=st.integers(0, 3),
)
def test_every_kind_is_kept_by_every_method(method, sensitive, promises, k, seed):
    curves = np.random.default_rng(seed).normal(size=(len(sensitive), 8)).cumsum(axis=1).round(2)
    p = min(3, k)
    how = {"k": k, "p": p, "sensitive": {"s": sensitive}, "promises": promises, "method": method}
    try:
        release = anonymize_series(curves, **how)
    except PromiseError:
        return
    findings, records = judge_curves(release.frame(), KPAnonymity(k, p), promises, sensitive=["s"])
    assert all(finding.kept for finding in findings), findings
    assert records + sum(release.withheld.values()) == len(sensitive)
    for at, row in enumerate(release.rows.tolist()):  # own words, own values
        level = release.encoded.levels.index(int(release.data.level[at]))
        assert release.encoded.texts(release.encoded.codes[level])[row] == release.data.pattern[at]
        assert release.frame()["s"][at] == sensitive[row]
    assert anonymize_series(curves, **how).frame().equals(release.frame())
    if all(isinstance(promise, TCloseness) for promise in promises):
        assert not release.withheld  # t is about all records: nobody is too many


@given(st.lists(st.integers(0, 4), min_size=1, max_size=14), st.sampled_from([1.5, 2, 3]), st.integers(1, 4))
def test_trimming_keeps_as_many_as_any_subset(values, l, p):
    promise = LDiversity(l, "s", kind="frequency")
    rules = rules_for(pl.DataFrame({"s": values}), [promise], p)
    kept = np.zeros(len(values), np.bool_)
    size = trim(rules, np.arange(len(values)), 0, len(values), kept, tally_of(rules))
    counts = np.bincount(values)
    caps = [
        np.minimum(counts, cap).sum() for cap in range(1, len(values) + 1) if cap * l <= np.minimum(counts, cap).sum()
    ]
    best = max(caps, default=0)
    assert size == (best if best >= p else 0)
    if size:
        assert kept.sum() == size
        assert np.bincount(np.array(values)[kept]).max() * l <= size


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40),
    st.lists(about(), min_size=1, max_size=2),
    st.integers(1, 4),
)
def test_parts_have_one_word_of_their_own_and_keep_the_promises(drawn, promises, p):
    """Slow and obvious: every part is judged by the promises themselves."""
    fine, sensitive = (np.array(column) for column in zip(*drawn, strict=True))
    codes = np.stack([np.zeros(len(fine), np.int64), 1 + fine // 2, 3 + fine]).astype(np.int32)
    frame = pl.DataFrame({"s": sensitive})
    rules = rules_for(frame, promises, p)
    word, part = np.zeros(len(fine), np.int32), np.zeros(len(fine), np.int64)
    parts = diverse_parts(codes, np.arange(len(fine)), rules, 0.4, word, part)
    assert sorted(set(part.tolist()) - {-1}) == list(range(parts))
    assert ((part < 0) == (word < 0)).all()
    overall = {"s": frame["s"]}
    for number in range(parts):
        rows = np.flatnonzero(part == number)
        assert len(np.unique(word[rows])) == 1
        assert all(word[row] in codes[:, row] for row in rows)
        assert KAnonymity(p).judge(Groups(np.zeros(len(rows), np.int32))).kept
        # t compares with all records: the others stand beside as a group of their own
        beside = np.where(part == number, 0, 1).astype(np.int32)
        for promise in promises:
            assert promise.measure(Groups(beside, overall))[1][0]


def test_l_costs_little_where_values_vary():
    """Trimmed after grouping this took more than half of the records."""
    rng = np.random.default_rng(1)
    curves = rng.poisson(rng.gamma(0.5, 20, (400, 1)), (400, 20))
    high = (curves[:, -1] > np.median(curves[:, -1])).tolist()
    release = anonymize_series(
        curves[:, :-1], k=16, p=6, sensitive={"high": high}, l=2, method="banded", pattern=Sax(word=6)
    )
    must = abs(2 * sum(high) - 400)
    assert release.loss.suppressed <= must + 2


def test_promises_that_are_not_about_sensitive_values_are_refused():
    with pytest.raises(UsageError, match="k-anonymity is not a promise about"):
        anonymize_series(np.zeros((4, 2)), k=2, p=2, promises=[KAnonymity(2)])
    with pytest.raises(UsageError, match="t needs a sensitive column"):
        anonymize_series(np.zeros((4, 2)), k=2, p=2, t=0.2)


def lost_by_hand(values, encoded, grouping):
    """Pattern loss times value loss of all records, one by one."""
    losses, pattern, value = encoded.losses(), 0.0, 0.0
    for row, (group, word) in enumerate(zip(grouping.group, grouping.word, strict=True)):
        width = np.ptp(values if group < 0 else values[grouping.group == group], axis=0)
        value += float(np.sqrt((width**2).mean()))
        pattern += 1.0 if group < 0 else float(losses[encoded.level_of[word], row])
    return pattern * value


@pytest.mark.parametrize("frequent", [0.3, 0.5])
def test_of_several_shares_and_bands_the_grouping_that_loses_least_is_taken(frequent, monkeypatch):
    rng = np.random.default_rng(0)
    curves = rng.normal(size=(200, 8)).cumsum(axis=1).round(1)
    sensitive = (rng.uniform(size=200) < frequent).astype(int) + (rng.uniform(size=200) < 0.3) * 2
    rules = rules_for(pl.DataFrame({"s": sensitive}), [LDiversity(3, "s", kind="frequency")], 4)
    encoded = Sax(word=3).encode(curves)
    bands = SERIES_METHODS.get("banded")().bands(curves, 8, 0)
    (shifted,) = diverse._shifted(bands)
    assert sorted(np.concatenate(shifted)) == list(range(200))
    assert len(shifted) > 2
    assert not np.array_equal(shifted[0], bands[0])

    def lost(cut, shares, others):
        monkeypatch.setattr(diverse, "SHARES", shares)
        monkeypatch.setattr(diverse, "_shifted", lambda _: others)
        grouping = diverse.group_diverse(curves, encoded, cut, 8, rules, passes=0)
        return round(lost_by_hand(curves, encoded, grouping), 6)

    both = diverse.SHARES
    alone = [lost(cut, (share,), []) for cut in (bands, shifted) for share in both]
    assert len(set(alone)) > 2
    assert lost(bands, both, [shifted]) == min(alone)
