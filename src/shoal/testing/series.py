"""Laws of series methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import PromiseError
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.series.method import SeriesMethod
from shoal.series.release import anonymize_series
from shoal.testing.law import law


def check_series_method(spec: SeriesMethod, k: int = 4, p: int = 2) -> None:
    """Hold a series method to its laws, on random walks and on awkward curves.

    >>> from shoal.series.banded import Banded
    >>> check_series_method(Banded())
    """
    for values in _curves():
        _released(spec, values, k, p)
    try:
        anonymize_series(np.zeros((k - 1, 3)), k=k, p=p, method=spec)
    except PromiseError:
        return
    law(False, spec, "fewer than k curves are a PromiseError")


def _curves() -> list[NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    walks = rng.normal(size=(24, 8)).cumsum(axis=1)
    return [walks, walks[:9], np.zeros((9, 5)), np.eye(11, 6) * 1e6, np.arange(10.0)[:, None]]


def _released(spec: SeriesMethod, values: NDArray[np.float64], k: int, p: int) -> None:
    before = values.copy()
    made = anonymize_series(values, k=k, p=p, method=spec, seed=3)
    law(np.array_equal(values, before), spec, "the input is untouched")
    gone = sum(made.withheld.values())
    law(len(np.unique(made.rows)) == len(made.rows), spec, "no curve is released twice")
    law(len(made.rows) + gone == len(values), spec, "curves in are curves released and curves withheld")
    law(gone < p, spec, "fewer than p curves are suppressed")
    findings = KPAnonymity(k, p).judge_frame(made.frame(), made.instants)
    law(all(f.kept for f in findings), spec, "the verifier accepts what it releases")
    truth = values[made.rows]
    law(bool(((made.data.low <= truth) & (truth <= made.data.high)).all()), spec, "an envelope covers its curves")
    again = anonymize_series(values, k=k, p=p, method=spec, seed=3)
    law(made.frame().equals(again.frame()), spec, "the same seed gives the same release")
