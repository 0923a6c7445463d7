"""Generated streams have the published shape (Bacconi 2021, Tables 3.4 and 3.5; Jha et al. 2020, section VI)."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.core.errors import UsageError
from shoal.datasets.streams import SHAPES, stream, web_visits


@pytest.mark.parametrize("name", SHAPES)
def test_counts_by_level_and_people(name: str) -> None:
    shape, scale = SHAPES[name], 0.02
    frame = stream(name, scale, seed=1)
    assert frame.height == round(shape.events * scale)
    assert frame["time"].is_sorted()
    steps = frame["value"].str.split(".")
    depth = len(shape.levels)
    assert (steps.list.len() == depth).all()
    leaves = round(shape.levels[0] * scale)
    assert frame["value"].n_unique() == pytest.approx(leaves, rel=0.05)
    for level in range(1, depth):
        kept = steps.list.head(depth - level).list.join(".").n_unique()
        assert kept <= leaves
    general = steps.list.first().n_unique()
    assert general == min(shape.levels[-1], leaves)
    if shape.events >= 2 * shape.people:
        assert frame["subject"].n_unique() == pytest.approx(shape.people * scale, rel=0.02)


def test_same_seed_same_stream_and_night_is_quiet() -> None:
    a, b = stream("ecommerce", 0.01, 3), stream("ecommerce", 0.01, 3)
    assert a.equals(b)
    assert not a.equals(stream("ecommerce", 0.01, 4))
    hour = (a["time"] // 3600 % 24).to_numpy()
    assert np.isin(hour, [11, 12, 13]).sum() > 4 * np.isin(hour, [0, 1, 23]).sum()
    with pytest.raises(UsageError):
        stream("nothing")


def test_web_visits() -> None:
    visits = web_visits()
    p = visits.exposed
    assert (visits.users, len(p)) == (9670, 27482)
    assert p[0] == pytest.approx(0.34)
    assert (p > 0.1).sum() == 7
    assert (p > 0.01).sum() == 70
    assert (p <= 1 / visits.users / 24 * 1.0001).sum() == 15464
    assert (np.diff(p) <= 1e-15).all()
