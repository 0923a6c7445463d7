"""Sorting inside kernels, beside Python's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.shared.promises import descending
from shoal.kernels.shared.sorting import ascend, largest_first

NUMBERS = st.lists(st.integers(-40, 40), max_size=120)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@given(values=NUMBERS)
def test_keys_are_sorted_in_place(kind, values):
    keys = np.array(values, kind)
    ascend(keys, np.empty_like(keys))
    assert keys.tolist() == sorted(values)


@given(values=st.lists(st.integers(0, 9), max_size=120), beyond=st.integers(0, 3))
def test_the_largest_count_comes_first_and_equal_ones_stay_as_they_stand(values, beyond):
    count = np.array(values + [99] * beyond, np.int64)
    order = np.full(len(count), -1, np.int64)
    largest_first(count, len(values), order)
    assert order[: len(values)].tolist() == sorted(range(len(values)), key=lambda at: -values[at])
    assert order[len(values) :].tolist() == [-1] * beyond


@given(values=st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_counts_descend(values):
    count = np.array([*values, 99], np.float64)
    found = descending(count, len(values))
    assert found.tolist() == sorted(values, reverse=True)
    assert count.tolist() == [*values, 99]
