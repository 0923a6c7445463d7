"""SAX against a slow reading of its definition, and its edges."""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.core.errors import UsageError
from shoal.series import PATTERNS
from shoal.series.sax import Sax

whole = st.integers(-50, 50).map(float)


def slow_features(curve, word):
    """Exact averages of fractional segments of a normalized series."""
    n = len(curve)
    if len(set(curve)) == 1:
        return [0.0] * word
    exact = [Fraction(v) for v in curve]
    mean = sum(exact) / n
    deviation = float(sum((v - mean) ** 2 for v in exact) / n) ** 0.5
    out = []
    for segment in range(word):
        start, stop = Fraction(segment * n, word), Fraction((segment + 1) * n, word)
        shares = [max(Fraction(0), min(stop, i + 1) - max(start, Fraction(i))) for i in range(n)]
        total = sum(share * (v - mean) for share, v in zip(shares, exact, strict=True))
        out.append(float(total / (stop - start)) / deviation)
    return out


def slow_word(features, level):
    breakpoints = [NormalDist().inv_cdf(j / level) for j in range(1, level)]
    return "".join("abcdefghijklmnop"[sum(round(f, 9) >= round(b, 9) for b in breakpoints)] for f in features)


@given(
    st.integers(1, 23).flatmap(lambda n: st.tuples(arrays(np.float64, (3, n), elements=whole), st.integers(1, n))),
    st.integers(1, 12),
)
def test_every_level_is_the_slow_definition(drawn, levels):
    curves, word = drawn
    encoded = Sax(word=word, levels=levels).encode(curves)
    for record, curve in enumerate(curves.tolist()):
        features = slow_features(curve, word)
        assert encoded.features[record] == pytest.approx(features, abs=2e-9)
        for at, level in enumerate(encoded.levels):
            near = [
                min((abs(f - NormalDist().inv_cdf(j / level)) for j in range(1, level)), default=1) for f in features
            ]
            if all(gap == 0 or gap > 1e-8 for gap in near):  # on the very border both roundings are right
                assert encoded.texts(encoded.codes[at])[record] == slow_word(features, level)


@given(arrays(np.float64, (8, 12), elements=whole), st.booleans())
def test_words_are_numbered_once_and_rebuilt_from_their_text(curves, nested):
    sax = Sax(word=4, levels=16, nested=nested)
    encoded = sax.encode(curves)
    assert len(np.unique(encoded.codes[0])) == 1
    for at, level in enumerate(encoded.levels):
        words = encoded.codes[at]
        assert (encoded.published_levels(words) == level).all()
        texts = encoded.texts(words)
        assert [a == b for a in texts for b in texts] == [a == b for a in words for b in words]
        assert np.array_equal(encoded.shapes(words), sax.rebuild(level, texts))
    if nested:
        for finer, coarser in zip(encoded.codes[1:], encoded.codes[:-1], strict=True):
            assert len(set(zip(finer.tolist(), coarser.tolist(), strict=True))) == len(set(finer.tolist()))


@given(arrays(np.float64, (5, 9), elements=whole), st.floats(0.25, 64), st.integers(-1000, 1000))
def test_a_word_tells_the_shape_and_not_the_height(curves, scale, shift):
    exact = 2.0 ** np.round(np.log2(scale))  # powers of two keep floats exact
    moved = curves * exact + shift
    a, b = Sax(word=3).encode(curves), Sax(word=3).encode(moved)
    assert b.features == pytest.approx(a.features, abs=1e-8)


def test_values_on_a_breakpoint_fall_upwards_whatever_the_rounding():
    tenths = np.array([[0.1, 0.3, 0.2, 0.2, 0.3, 0.1]])  # each half has exactly the mean, up to float noise
    assert Sax(word=2, levels=2).encode(tenths).texts(np.array([1], np.int32)) == ["bb"]
    assert Sax(word=3, levels=2).encode(tenths).texts(np.array([1], np.int32)) == ["bbb"]


def test_a_constant_series_has_a_flat_word_and_never_its_raw_value():
    flat = np.array([[0.1] * 51, [1e9] * 51])
    encoded = Sax(levels=5).encode(flat)
    assert not encoded.features.any()
    assert encoded.texts(encoded.codes[4]) == ["cccccc", "cccccc"]


def test_long_words_do_not_overflow_their_numbers():
    curves = np.random.default_rng(0).normal(size=(40, 52))
    curves[20:] = curves[:20]
    encoded = Sax(word=52, levels=26).encode(curves)
    assert np.array_equal(encoded.codes[:, :20], encoded.codes[:, 20:])
    assert len(np.unique(encoded.codes[-1])) == 20


@given(arrays(np.float64, (2, 5), elements=st.floats(-3, 3)), st.integers(5, 17))
def test_stretching_keeps_segment_means(features, instants):
    curve = Sax().stretch(features, instants)
    if instants % 5 == 0:
        assert curve.reshape(2, 5, -1).mean(axis=2) == pytest.approx(features)
    assert curve.sum(axis=1) == pytest.approx(features.sum(axis=1) * instants / 5)


def test_default_length_follows_the_paper_up_to_ten_instants():
    assert [Sax().length(n) for n in (1, 10, 11, 52)] == [1, 10, 6, 6]


@pytest.mark.parametrize("wrong", [{"word": 0}, {"levels": 0}, {"levels": 27}])
def test_parameters_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match="sax"):
        Sax(**wrong)


def test_words_longer_than_series_and_letters_beyond_the_level_are_refused():
    with pytest.raises(UsageError, match="4 letters needs at least as many instants, found 3"):
        Sax(word=4).encode(np.zeros((2, 3)))
    with pytest.raises(UsageError, match="level 2"):
        Sax().rebuild(2, ["abc"])
    assert PATTERNS.decode({"use": "sax", "word": 4}) == Sax(word=4)
