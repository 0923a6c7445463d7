"""Why figures of Minutoli et al. 2021 and ours differ: each reason tried on the sales set they used."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.experiments import kp
from shoal.experiments.published_curves import form_groups, loss_of, measured_pattern_loss, top_down
from shoal.experiments.report.deviations import CHANCE, COSINE
from shoal.series.subgroups import own_words, split_top_down


@pytest.fixture(scope="module")
def sales(shared):
    """The release of KAPRA as published at k = 16 and P = 6, on the real set."""
    name, source, frame, key = kp.sets(shared)[0]
    assert (name, source) == ("sales", "real")
    return kp.release(frame, key, "kapra as published", 16, 6)


def value_loss(values, groups):
    return sum(loss_of(values, rows) for rows in groups) / len(values)


@pytest.mark.shared
def test_group_formation_hangs_on_chance(sales):
    """:data:`CHANCE`: of six runs one comes to the published 20.8, most to the 35.4 of their other run."""
    assert "20.8" in CHANCE.text
    values = sales.curves.values
    word = own_words(sales.encoded, np.arange(len(values)), 6, least=64, refine=0, losses=None)
    found = [value_loss(values, form_groups(values, split_top_down(values, word, 6, seed), 64)) for seed in range(6)]
    assert min(found) == pytest.approx(20.8, rel=0.15)
    assert np.median(found) == pytest.approx(35.4, rel=0.15)


@pytest.mark.shared
def test_the_measured_pattern_loss_calls_nothing_lost_a_loss(sales):
    """:data:`COSINE`: every curve with its own finest word is hardly changed, and is said to lose more than half."""
    assert "signs of sums" in COSINE.text
    finest = sales.encoded.codes[-1]
    texts = sales.encoded.texts(finest)
    assert measured_pattern_loss(sales.curves.values, texts).mean() > 0.5
    assert sales.encoded.losses()[-1].mean() < 0.1


def slow_groups(values, part, k):
    """Algorithm 3 once more, with nothing remembered."""
    free = [np.flatnonzero(part == at).tolist() for at in np.unique(part)]
    groups = [rows for rows in free if len(rows) >= k]
    free = [rows for rows in free if len(rows) < k]
    while sum(map(len, free)) >= k:
        group = free.pop(min(range(len(free)), key=lambda at: (loss_of(values, np.array(free[at])), at)))
        while len(group) < k:
            group = group + free.pop(min(range(len(free)), key=lambda at: loss_of(values, np.array(group + free[at]))))
        groups.append(group)
    for rows in free:
        at = min(range(len(groups)), key=lambda g: loss_of(values, np.array(groups[g] + rows)))
        groups[at] = groups[at] + rows
    return groups


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(6, 30), st.integers(2, 6))
def test_group_formation_beside_its_slow_twin(seed, records, k):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(records, 4)).round(6)
    part = rng.integers(0, max(1, records // 2), records)
    made = form_groups(values, part, k)
    assert [sorted(rows.tolist()) for rows in made] == [sorted(rows) for rows in slow_groups(values, part, k)]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(30, 60), st.integers(8, 12))
def test_top_down_clustering_parts_everyone_once(seed, records, k):
    rng = np.random.default_rng(seed)
    groups = top_down(rng.normal(size=(records, 3)), k, rng)
    assert sorted(np.concatenate(groups).tolist()) == list(range(records))
    assert all(len(rows) < 2 * k for rows in groups)
