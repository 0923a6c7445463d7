"""The page of a release of curves draws no curve alone, also where every pattern stands alone."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.api import anonymize_series
from shoal.report import series_pictures as curve_pictures
from shoal.report.series_page import render


@pytest.mark.parametrize("p", [1, 2, 4])
def test_no_curve_is_drawn_alone(p):
    curves = np.cumsum(np.random.default_rng(p).normal(size=(24, 8)), axis=1)
    release, report = anonymize_series(curves, k=4, p=p)
    groups = range(len(release.published.low))
    drawn = [s for g in groups for s in curve_pictures.envelope(release, g, 0).series[1:]]
    drawn += [picture.series[0] for picture in curve_pictures.shapes(release)]
    normal = (curves - curves.mean(axis=1, keepdims=True)) / curves.std(axis=1, keepdims=True)
    for line in drawn:
        assert not np.isclose(curves, line.y).all(axis=1).any()
        assert not np.isclose(normal, line.y).all(axis=1).any()
    assert drawn or p <= 2
    assert "<svg" in render(report, release)
