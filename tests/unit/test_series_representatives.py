"""Representatives: the mean of each P-subgroup, never of fewer than three; queries answered from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.series.queries import Released
from shoal.series.release import anonymize_series
from shoal.series.representatives import represent


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
            assert row[f"{at}_spread"] == pytest.approx(truth[:, at].std(), abs=1e-9)


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
