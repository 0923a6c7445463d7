"""The compiled microaggregation beside its slow and obvious twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.shared.microaggregation import microaggregate, squared_error


def sse(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((v - mean) ** 2 for v in values)


def cheapest(x: list[float], k: int) -> float:
    """Every way to cut the sorted numbers into groups of at least k, by trying the first group's end."""
    if len(x) < 2 * k:
        return sse(x) if x else 0.0
    ends = [end for end in range(k, len(x) + 1) if end == len(x) or len(x) - end >= k]
    return min(sse(x[:end]) + (cheapest(x[end:], k) if end < len(x) else 0.0) for end in ends)


numbers = st.lists(st.integers(-20, 20).map(float) | st.floats(-1e6, 1e6), min_size=1, max_size=13)


@given(numbers, st.integers(1, 4))
def test_no_cut_is_cheaper(values, k):
    x = np.sort(np.array(values))
    labels = microaggregate(x, k)
    assert (np.diff(labels) >= 0).all()
    assert (np.diff(labels) <= 1).all()
    if len(x) >= k:
        assert np.bincount(labels).min() >= k
    scale = max(1.0, float(np.abs(x).max()) ** 2)
    assert squared_error(x, labels) == pytest.approx(cheapest(x.tolist(), k), rel=1e-9, abs=1e-12 * scale)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=60), st.integers(1, 9), st.floats(-1e9, 1e9))
def test_moving_all_numbers_moves_no_cut_for_worse(values, k, shift):
    x = np.sort(np.array(values))
    here = squared_error(x, microaggregate(x, k))
    there = microaggregate(np.sort(x + shift), k)
    # far from zero digits are lost to the input itself, no more than that to the sums
    assert squared_error(x, there) <= here + 1e-6 * max(1.0, abs(shift)) * len(x)


def test_groups_never_exceed_2k_minus_1():
    x = np.sort(np.random.default_rng(3).normal(size=2000))
    for k in (2, 7, 40):
        assert np.bincount(microaggregate(x, k)).max() <= 2 * k - 1
