"""What every series method keeps, by being listed: k, P, own words, envelopes that cover, nothing lost or doubled."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.core.errors import PromiseError
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.series import SERIES_METHODS
from shoal.series.banded import Banded
from shoal.series.kapra import Kapra
from shoal.series.perturb import Perturb
from shoal.series.queries import Count, Released, read_released
from shoal.series.release import anonymize_series
from shoal.series.sax import Sax

METHODS = [kind() for kind in SERIES_METHODS.classes()] + [
    Kapra(split="topdown", refine=0, passes=0),
    Kapra(refine=1.0),
    Banded(band=5),
]


@st.composite
def adversarial(draw):
    """Curves of every awkward kind, k and p: constant, equal, spiky, huge, few, of one instant."""
    n, instants = draw(st.integers(1, 40)), draw(st.integers(1, 14))
    number = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e12, 1e12), st.just(1e99))
    values = draw(arrays(np.float64, (n, instants), elements=number, fill=st.just(0.0)))
    kind = draw(st.sampled_from(["as drawn", "constant", "equal", "spikes", "walks"]))
    if kind == "constant":
        values = np.repeat(values[:, :1], instants, axis=1)
    elif kind == "equal":
        values = np.repeat(values[:1], n, axis=0)
    elif kind == "spikes":
        values = np.zeros((n, instants))
        values[np.arange(n), np.arange(n) % instants] = 1e6
    elif kind == "walks":
        values = np.random.default_rng(draw(st.integers(0, 9))).normal(size=(n, instants)).cumsum(axis=1)
    p = draw(st.integers(1, 6))
    return values, draw(st.one_of(st.just(p), st.integers(p, 12))), p


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.use}-{METHODS.index(m)}")
@settings(max_examples=40)
@given(drawn=adversarial(), seed=st.integers(0, 2))
def test_every_method_keeps_the_promise(method, drawn, seed):
    values, k, p = drawn
    kept_input = values.copy()
    if len(values) < k:
        with pytest.raises(PromiseError, match=f"there are {len(values)} series"):
            anonymize_series(values, k=k, p=p, method=method, seed=seed)
        return
    release = anonymize_series(values, k=k, p=p, method=method, seed=seed)
    assert np.array_equal(values, kept_input)
    # nothing lost, nothing doubled, every suppressed record counted
    assert len(np.unique(release.rows)) == len(release.rows)
    gone = sum(release.withheld.values())
    assert len(release.rows) + gone == len(values)
    assert gone < p
    assert gone == release.loss.suppressed == release.grouping.suppressed
    # the verifier, which knows no method
    findings = KPAnonymity(k, p).judge_frame(release.frame(), release.instants)
    assert all(finding.kept for finding in findings), findings
    # the envelope covers the hidden truth, and as tightly as can be
    arrays_ = release.data
    truth = values[release.rows]
    assert (arrays_.low <= truth).all()
    assert (truth <= arrays_.high).all()
    for g in np.unique(arrays_.group):
        here = arrays_.group == g
        assert np.array_equal(arrays_.low[here].max(axis=0), truth[here].min(axis=0))
        assert np.array_equal(arrays_.high[here].min(axis=0), truth[here].max(axis=0))
    # the same seed, the same release
    again = anonymize_series(values, k=k, p=p, method=method, seed=seed)
    assert again.frame().equals(release.frame())


@pytest.mark.parametrize("method", ["kapra", "banded"])
@settings(max_examples=40)
@given(drawn=adversarial())
def test_a_published_word_is_the_records_own(method, drawn):
    values, k, p = drawn
    assume(len(values) >= k)
    release = anonymize_series(values, k=k, p=p, method=method)
    encoded = Sax().encode(values)
    for at, record in enumerate(release.rows.tolist()):
        level = encoded.levels.index(int(release.data.level[at]))
        assert encoded.texts(encoded.codes[level])[record] == release.data.pattern[at]


@settings(max_examples=40)
@given(adversarial(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_is_not_in_the_release(drawn, random):
    values, k, p = drawn
    assume(len(values) >= k)
    frame = anonymize_series(values, k=k, p=p, sensitive={"s": np.arange(len(values)) % 3}).frame()
    by_what_is_shown = frame.sort(["group", "level", "pattern", "s"])
    assert frame.equals(by_what_is_shown)


@pytest.mark.parametrize("method", SERIES_METHODS.names())
@settings(max_examples=40)
@given(drawn=adversarial(), kinds=st.integers(1, 5), l=st.sampled_from([1.5, 2, 3]))
def test_diverse_subgroups_by_merging_or_suppressing(method, drawn, kinds, l):
    values, k, p = drawn
    assume(len(values) >= k)
    sensitive = {"a": np.arange(len(values)) % kinds, "b": np.array(["x", "y", "z"])[np.arange(len(values)) % 3]}
    try:
        release = anonymize_series(values, k=k, p=p, method=method, sensitive=sensitive, l=l)
    except PromiseError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert "-diversity of b cannot be reached" in refused
        return
    frame = release.frame()
    assert all(f.kept for f in KPAnonymity(k, p).judge_frame(frame, release.instants))
    for name in ("a", "b"):
        for _, cell in frame.group_by("group", "level", "pattern"):
            assert cell[name].value_counts()["count"].max() * l <= cell.height
        # unchanged beside its curve
        assert frame[name].to_list() == sensitive[name][release.rows].tolist()
    assert frame.height + sum(release.withheld.values()) == len(values)


@settings(max_examples=40)
@given(adversarial(), st.integers(1, 4), st.integers(0, 3))
def test_diverse_subgroups_by_perturbation(drawn, kinds, seed):
    values, k, p = drawn
    assume(len(values) >= k)
    assume(p >= 2)
    numbers = np.arange(len(values)) % kinds * 10
    how = {"k": k, "p": p, "sensitive": {"a": numbers}, "l": 2, "perturb": Perturb(step=1, most=1000), "seed": seed}
    try:
        release = anonymize_series(values, **how)
    except PromiseError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert "no free value" in refused
        return
    frame = release.frame()
    for _, cell in frame.group_by("group", "level", "pattern"):
        assert cell["a"].value_counts()["count"].max() * 2 <= cell.height
    changed = int((frame["a"].to_numpy() != numbers[release.rows]).sum())
    assert changed == release.altered["a"]
    assert frame.equals(anonymize_series(values, **how).frame())


@settings(max_examples=40)
@given(adversarial(), st.data())
def test_bounds_of_range_queries_hold(drawn, data):
    values, k, p = drawn
    assume(len(values) >= k)
    release = anonymize_series(values, k=k, p=p)
    typed = data.draw(st.booleans())
    released = read_released(release.frame(typed=typed), release.instants, release.pattern)
    at = data.draw(st.lists(st.integers(0, values.shape[1] - 1), min_size=1, max_size=3, unique=True))
    ends = sorted(data.draw(st.tuples(*[st.sampled_from(values.ravel().tolist())] * 2)))
    truth = values[release.rows][:, at]
    true = int(((truth >= ends[0]) & (truth <= ends[1])).all(axis=1).sum())
    answer = released.count(*ends, at)
    assert answer.at_least <= true <= answer.at_most
    assert answer.at_least - 1e-9 <= answer.expected <= answer.at_most + 1e-9
    found, far = released.similar(values[0], 5)
    assert len(found) == min(5, len(release.rows))
    assert (np.diff(far) >= 0).all()


@pytest.mark.parametrize(("low", "high"), [(1e99, 1e99), (-1.7e308, -1e308), (-1.7e308, 1.7e308)])
def test_a_query_far_from_narrow_and_wide_envelopes_is_answered(low, high):
    narrow, wide = (0.0, 1.65630902e-297), (1e308, 1.7e308)
    bottom, top = (np.array([[a], [b]]) for a, b in zip(narrow, wide, strict=True))
    released = Released(bottom, top, np.zeros((1, 1)), np.zeros(2, np.int64))
    inside = 2 if high > wide[0] else 0
    assert released.count(low, high, [0]) == Count(inside, inside, inside)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=12))
def test_the_verifier_counts_what_it_sees(rows):
    frame = pl.DataFrame(
        {
            "W0": [f"[{a}, 5]" for a, _, _ in rows],
            "pattern": ["ab" if b else "ba" for _, b, _ in rows],
            "level": [c + 1 for _, _, c in rows],
        }
    )
    whole, parts = KPAnonymity(4, 2).judge_frame(frame, ["W0"])
    assert whole.kept == (min(Counter(a for a, _, _ in rows).values()) >= 4)
    assert parts.kept == (min(Counter(rows).values()) >= 2)
