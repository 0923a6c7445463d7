"""Representatives: the mean of each P-subgroup, never of fewer than three; queries answered from them."""

from __future__ import annotations

import io
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import InputError, UsageError
from shoal.datasets.series import meter_weeks, sales_curves
from shoal.kernels.series.likely import likely
from shoal.promises.kp_anonymity import KPAnonymity, judge_means
from shoal.series.centroids import microaggregated
from shoal.series.narrowing import narrow
from shoal.series.queries import Released, envelope_ends, read_released
from shoal.series.release import anonymize_series
from shoal.series.representatives import represent
from shoal.series.sax import Sax


@settings(max_examples=30)
@given(st.integers(12, 60), st.integers(0, 5), st.sampled_from(["kapra", "banded"]))
def test_every_row_is_the_mean_of_the_records_that_read_alike(n, seed, method):
    curves = np.random.default_rng(seed).normal(size=(n, 5)).cumsum(axis=1)
    release = anonymize_series(curves, k=6, p=3, method=method)
    frame = release.representative_frame()
    assert frame["size"].sum() == len(release.records)
    assert frame["size"].min() >= 3
    data = release.data
    for row in frame.iter_rows(named=True):
        same = (data.group == row["group"]) & (data.pattern == row["pattern"]) & (data.level == row["level"])
        truth = curves[release.rows[same]]
        assert row["size"] == len(truth)
        for at in range(5):
            assert row[f"{at}_mean"] == pytest.approx(truth[:, at].mean())
            spread = row[f"{at}_spread"]
            assert spread == pytest.approx(truth[:, at].std(), abs=1e-9) if len(truth) >= 5 else spread is None


def test_no_mean_of_fewer_than_three():
    with pytest.raises(UsageError, match="found a subgroup of 2"):
        represent(np.zeros((5, 2)), np.array([0, 0, 0, 1, 1]))
    release = anonymize_series(np.random.default_rng(0).normal(size=(40, 6)), k=4, p=1)
    with pytest.raises(UsageError, match="release with p=3"):
        release.representatives()


def test_queries_are_answered_better_with_representatives():
    rng = np.random.default_rng(3)
    curves = rng.normal(size=(300, 20)).cumsum(axis=1)
    release = anonymize_series(curves, k=12, p=6)
    plain, more = release.query_errors(200), release.query_errors(200, representatives=True)
    assert more["range"] < plain["range"]
    assert more["similarity"] < plain["similarity"]
    released = Released(
        release.data.low,
        release.data.high,
        curves[:1],
        np.zeros(len(release.rows), np.int64),
        release.representatives(),
    )
    for low, high in ((-1, 1), (0, 0), (2, 5), (-50, 50)):
        answer = released.count(low, high, [3, 4])
        assert answer.at_least <= answer.expected <= answer.at_most
    assert plain["range_spread"] > release.query_errors(800)["range_spread"]


@settings(max_examples=20)
@given(st.integers(12, 50), st.integers(0, 5), st.booleans())
def test_means_are_read_back_and_answer_as_before_they_were_written(n, seed, whole):
    rng = np.random.default_rng(seed)
    curves = rng.normal(size=(n, 6)).cumsum(axis=1) * 10
    release = anonymize_series(curves.astype(np.int64) if whole else curves, k=8, p=5)
    means = pl.read_csv(io.StringIO(release.representative_frame().write_csv()))
    read = read_released(release.frame(), release.instants, release.pattern, means)
    mine = release.released(representatives=True)
    assert read.whole == whole
    for low, high in ((-3, 8), (0, 0), (2, 30)):
        assert read.count(low, high, [1, 2, 5]).expected == pytest.approx(
            mine.count(low, high, [1, 2, 5]).expected, rel=0.02, abs=0.05
        )
    shuffled = means.with_columns(pl.col("size").reverse() + 1)
    with pytest.raises(InputError, match="not of this release"):
        read_released(release.frame(), release.instants, release.pattern, shuffled)


@settings(max_examples=30)
@given(
    st.floats(-3, 3), st.floats(0.1, 3), st.floats(0, 0.9), st.floats(-4, 4), st.floats(0, 4), st.integers(1, 3)
)  # fmt: skip
def test_the_share_in_a_range_is_that_of_drawn_curves(mean, spread, together, low, width, instants):
    """Slow and obvious: draw the common factor and each instant's own noise, throw away what leaves the envelope."""
    rng = np.random.default_rng(1)
    bottom, top = -5.0, 5.0
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    out = np.empty(1)
    ones = np.ones((1, instants))
    likely(
        mean * ones, spread * ones, bottom * ones, top * ones, np.array([together]), low, low + width, 0.0, nodes,
        weights / weights.sum(), out,
    )  # fmt: skip
    factor = rng.normal(size=4000)
    share = np.ones(4000)
    law = NormalDist()
    for at, z in enumerate(factor.tolist()):
        middle, wide = mean + spread * np.sqrt(together) * z, spread * np.sqrt(1 - together)
        least, most = max(low, bottom), min(low + width, top)
        ends = [law.cdf((x - middle) / wide) for x in (least, most, bottom, top)]
        share[at] = max(0.0, (ends[1] - ends[0]) / max(1e-12, ends[3] - ends[2])) ** instants if most >= least else 0.0
    assert out[0] == pytest.approx(share.mean(), abs=0.05)


def test_small_subgroups_tell_no_spread():
    release = anonymize_series(np.random.default_rng(4).normal(size=(40, 4)), k=4, p=3, pattern=Sax(levels=3))
    frame = release.representative_frame()
    few = frame.filter(pl.col("size") < 5)
    assert few.height
    assert few["0_spread"].null_count() == few.height
    assert not frame.filter(pl.col("size") >= 5)["0_spread"].null_count()


def test_means_narrow_what_an_attacker_looks_through_and_leave_p():
    rng = np.random.default_rng(2)
    curves = pl.DataFrame({f"W{i}": rng.integers(0, 60, 120) for i in range(4)}).with_row_index("who")
    release, report = shoal.anonymize_series(curves, k=20, p=5, id="who", representatives=True, seed=1)
    assert any("finds 5, not 20" in note for note in report.notes)
    means, on = release.representative_frame(), release.instants
    narrower = narrow(release.frame(), means, on)
    truth = curves.select(on).to_numpy()[release.rows]
    for at, name in enumerate(on):  # the record itself is never left out
        low, high = envelope_ends(narrower[name])
        assert (low <= truth[:, at]).all()
        assert (truth[:, at] <= high).all()
    before, after = (shoal.attack(release.frame(), curves, on, representatives=m) for m in (None, means))
    assert after.expected >= before.expected
    # everybody with one of these values has at least P candidates: the records of his subgroup
    for who in range(0, 120, 7):
        inside = np.ones(narrower.height, np.bool_)
        for name in on:
            low, high = envelope_ends(narrower[name])
            inside &= (low <= curves[name][who]) & (curves[name][who] <= high)
        assert inside.sum() >= 5 or who not in release.rows


def test_means_need_three_and_one_row_per_subgroup():
    curves = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(UsageError, match="a mean of 2 curves tells each of them"):
        shoal.anonymize_series(curves, k=4, p=2, representatives=True)
    means = anonymize_series(curves, k=8, p=4).representative_frame()
    assert all(f.kept for f in judge_means(means, KPAnonymity(8, 4)))
    assert not all(f.kept for f in judge_means(pl.concat([means, means[:1]]), KPAnonymity(8, 4)))
    assert not all(f.kept for f in judge_means(means, KPAnonymity(8, 8)))


def test_centroids_are_the_means_of_groups_of_k():
    curves = np.random.default_rng(0).normal(size=(50, 4))
    plain = microaggregated(curves, 6)
    assert np.array_equal(plain.low, plain.high)
    sizes = np.bincount(plain.which)
    assert sizes.min() >= 6
    assert sizes.max() < 12
    for label, centre in enumerate(plain.shapes):
        assert np.allclose(centre, curves[plain.which == label].mean(axis=0))


@pytest.mark.parametrize("method", ["kapra", "banded"])
@pytest.mark.parametrize("curves", [sales_curves(400, 26), meter_weeks(600, 3)], ids=["sales", "meters"])
def test_queries_from_means_beat_plain_microaggregation(curves, method):
    values = curves.drop(curves.columns[0]).to_numpy()
    found = anonymize_series(values, k=16, p=6, method=method).answered(150)
    for figure in ("range", "similarity", "similarity_regret"):
        assert found["means_"][figure] <= found["mdav_"][figure]


def test_a_mean_tells_how_like_it_its_curves_are():
    rng = np.random.default_rng(4)
    shape = np.sin(np.arange(48.0))
    heights = 5 * shape + np.arange(40.0)[:, None]
    noisy = 5 * shape + rng.normal(0, 5, (40, 48))
    means = represent(np.concatenate([heights, noisy]), np.repeat([0, 1], 40))
    true = [
        np.mean([np.corrcoef(means.mean[at], row)[0, 1] for row in rows]) for at, rows in enumerate((heights, noisy))
    ]
    assert means.faithful == pytest.approx(true, abs=0.03)
    few = represent(np.concatenate([heights, noisy, noisy[:3]]), np.repeat([0, 1, 2], [40, 40, 3]))
    assert few.faithful[2] == few.faithful[:2].mean()  # of three curves no spread is told
    assert represent(noisy[:3], np.zeros(3, np.int64)).faithful.tolist() == [1.0]


def test_a_mean_of_unlike_curves_is_no_near_answer():
    rng = np.random.default_rng(4)
    wave = np.sin(np.arange(48.0))
    like = wave + rng.normal(0, 0.5, (6, 48))
    unlike = wave + rng.normal(0, 3, (600, 48))  # so many that their mean is the wave itself
    values = np.concatenate([unlike, like])
    cells = np.repeat([0, 1], [600, 6])
    low, high = np.full((2, 606, 48), [[[-20.0]], [[20.0]]])
    released = Released(low, high, wave[None], np.zeros(606, np.int64), represent(values, cells))
    found, far = released.similar(wave, 6)
    assert sorted(found) == list(range(600, 606))
    assert far.max() < 0.3
