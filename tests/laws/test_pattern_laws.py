"""What every pattern keeps, by being listed: words rebuilt from what is published, one release in all forms."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.datasets.series import meter_weeks, web_traffic
from shoal.promises.kp_anonymity import KPAnonymity, judge_curves
from shoal.series import PATTERNS
from shoal.series.auto import Auto, candidates, seasons, shape_lost
from shoal.series.queries import read_released
from shoal.series.release import anonymize_series
from shoal.series.sax import Sax
from shoal.series.seasonal import Seasonal
from shoal.series.shapelets import FORMS, Shapelets
from shoal.series.slope import Slope

EVERY = [kind() for kind in PATTERNS.classes()] + [Seasonal(period=3, word=2), Slope(word=1), Shapelets(word=1)]


@st.composite
def curves(draw):
    n, instants = draw(st.integers(4, 24)), draw(st.integers(2, 16))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    kind = draw(st.sampled_from(["walks", "seasons", "constant", "small", "huge"]))
    values = rng.normal(size=(n, instants)).cumsum(axis=1).round(3)
    if kind == "seasons":
        values += 5 * np.sin(np.arange(instants) * 2 * np.pi / 4 + rng.integers(0, 4, (n, 1)))
    elif kind == "constant":
        values[:] = values[:, :1]
    elif kind == "small":
        values = rng.integers(0, 2, (n, instants)).astype(float)
    elif kind == "huge":
        values *= 1e90
    return values


@pytest.mark.parametrize("pattern", EVERY, ids=repr)
@settings(max_examples=12)
@given(values=curves())
def test_words_are_rebuilt_from_what_is_published(pattern, values):
    fitted = pattern.fitted(values, 2, 2)
    encoded = fitted.encode(values)
    assert list(encoded.levels) == sorted(set(encoded.levels))
    assert len(np.unique(encoded.codes[0])) == 1  # all agree at the coarsest level
    assert np.isfinite(encoded.features).all()
    for at, level in enumerate(encoded.levels):
        assert (encoded.level_of[encoded.codes[at]] == at).all()
        texts = encoded.texts(encoded.codes[at])
        assert np.array_equal(fitted.rebuild(level, texts), encoded.shapes(encoded.codes[at]))
        full = fitted.stretch(encoded.shapes(encoded.codes[at]), values.shape[1])
        assert full.shape == values.shape
        assert np.isfinite(full).all()
    # a curve's word does not depend on its company, nor on its unit
    alone = fitted.encode(np.ascontiguousarray(values[:1]))
    assert [alone.texts(c)[0] for c in alone.codes] == [encoded.texts(c)[0] for c in encoded.codes]


@pytest.mark.parametrize("pattern", EVERY, ids=repr)
@settings(max_examples=8)
@given(values=curves(), shuffle=st.randoms(use_true_random=False))
def test_wide_long_and_array_give_one_release(pattern, values, shuffle):
    values = np.clip(values, -1e9, 1e9)
    n, instants = values.shape
    k, p = min(4, n), 2
    array = anonymize_series(values, k=k, p=p, pattern=pattern)
    names = [f"t{i:02}" for i in range(instants)]
    wide_frame = pl.DataFrame(values, schema=names, orient="row").with_columns(id=pl.int_range(n))
    wide = anonymize_series(wide_frame, k=k, p=p, id="id", pattern=pattern)
    long_frame = pl.DataFrame(
        {"id": np.repeat(np.arange(n), instants), "at": np.tile(np.arange(instants), n), "v": values.ravel()}
    )
    rows = list(range(len(long_frame)))
    shuffle.shuffle(rows)
    long = anonymize_series(long_frame[rows], k=k, p=p, id="id", time="at", value="v", pattern=pattern)
    assert wide.frame().rename(dict(zip(names, map(str, range(instants)), strict=True))).equals(array.frame())
    assert long.frame().equals(array.frame())
    for frame in (wide.data, long.data):  # the verifier, which knows neither pattern nor method
        findings, records = judge_curves(frame, KPAnonymity(k, p))
        assert all(finding.kept for finding in findings)
        assert records == len(array.records)
    read = read_released(array.frame(), array.instants, array.pattern)
    assert read.shapes.shape[1] == instants


def test_the_folded_day_is_the_mean_of_the_days():
    values = np.random.default_rng(1).normal(size=(5, 23))
    fold = np.array([[row[phase::6].mean() for phase in range(6)] for row in values])
    assert np.allclose(Seasonal(period=6).features(values), Sax().features(fold), atol=2e-9)
    assert np.array_equal(Seasonal(period=50).features(values), Sax().features(values))


@settings(max_examples=30)
@given(curves(), st.integers(1, 5))
def test_slopes_are_those_of_the_best_line(values, word):
    word = min(word, values.shape[1])
    found = Slope(word=word).features(values)
    for row, curve in zip(found, values, strict=True):
        if len(set(curve.tolist())) == 1 or values.shape[1] < 2 or np.abs(curve).max() > 1e50:
            continue
        slopes = []
        for segment in range(word):
            first, stop = segment * len(curve) // word, (segment + 1) * len(curve) // word
            if stop - first < 2:
                first, stop = max(0, min(first, len(curve) - 2)), min(len(curve), max(stop, first + 2))
            slopes.append(np.polyfit(np.arange(first, stop), curve[first:stop] / curve.std(), 1)[0])
        size = np.sqrt(np.mean(np.square(slopes)))
        assert row == pytest.approx(np.array(slopes) / size if size > 1e-8 else np.zeros(word), abs=1e-6)


def test_a_form_is_its_own_nearest_and_forms_are_apart():
    gaps = ((FORMS[:, None] - FORMS[None]) ** 2).sum(axis=2)
    assert (gaps + np.eye(len(FORMS)) > 0.05).all()
    straight = np.linspace(0, 9, 33)
    assert Shapelets(word=1).encode(straight[None]).texts(np.array([1], np.int32)) == ["b"]


def test_a_season_keeps_what_six_letters_lose():
    values = meter_weeks(600).drop("meter").to_numpy().astype(float)
    plain = anonymize_series(values, k=10, p=5).loss.shape
    folded = anonymize_series(values, k=10, p=5, pattern=Seasonal(period=48, word=8)).loss.shape
    chosen = anonymize_series(values, k=10, p=5, pattern="auto")
    assert folded < 0.6 * plain
    assert chosen.loss.shape <= folded + 0.03
    assert 48 in seasons(values) or 24 in seasons(values)


def test_the_choice_is_the_least_loss_of_all_candidates():
    values = web_traffic(200, 28).drop("page").to_numpy().astype(float)
    chosen = Auto().fitted(values, 8, 4)
    lost = {repr(one): shape_lost(one, values[np.argsort(values.sum(axis=1), kind="stable")], 8, 4)
            for one in candidates(values)}  # fmt: skip
    assert lost[repr(chosen)] == pytest.approx(min(lost.values()), abs=1e-9)
    with pytest.raises(UsageError, match="chosen by the curves"):
        Auto().rebuild(1, ["a"])
