"""Risk against a population by sampling weights, and special uniques, each beside its definition."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.core.errors import InputError, UsageError
from shoal.measures.population import EXACT, found_again, population_risk
from shoal.measures.special_uniques import special_uniques


def slow_mean(f: int, p: float) -> float:
    """The mean of 1 / F, term by term: F = h with chance C(h - 1, f - 1) p^f (1 - p)^(h - f)."""
    total, h, chance = 0.0, f, p**f
    while chance > 1e-18 or h < f / p:
        total += chance / h
        chance *= h / (h - f + 1) * (1 - p)
        h += 1
    return total


@given(st.integers(1, EXACT), st.floats(0.02, 1.0))
def test_the_chance_of_being_found_is_the_mean_over_the_population(f: int, p: float) -> None:
    assert found_again(np.array([f]), np.array([p]))[0] == pytest.approx(slow_mean(f, p), rel=1e-6)


def test_larger_kinds_are_near_the_mean() -> None:
    for p in (0.05, 0.5, 0.9):
        assert found_again(np.array([EXACT + 1]), np.array([p]))[0] == pytest.approx(slow_mean(EXACT + 1, p), rel=0.01)


def test_closed_forms_of_benedetti_and_franconi() -> None:
    """Of one person of a kind p / (1 - p) ln(1 / p), of two p / (1 - p) - (p / (1 - p))^2 ln(1 / p)."""
    p = 0.1
    one, two = found_again(np.array([1, 2]), np.array([p, p]))
    assert one == pytest.approx(math.log(10) / 9)
    assert two == pytest.approx(1 / 9 - math.log(10) / 81)


def test_whoever_stands_for_nobody_else_is_found_as_in_the_sample() -> None:
    found = population_risk(np.array([0, 1, 1]), np.ones(3))
    assert found.highest == pytest.approx(1.0)
    assert found.expected == pytest.approx(2.0)
    assert (found.unique, found.population_unique) == (1, 1.0)


def test_the_chance_is_what_drawn_populations_give() -> None:
    rng = np.random.default_rng(8)
    for f, p in ((1, 0.1), (2, 0.3), (7, 0.8)):
        drawn = 1 / (f + rng.negative_binomial(f, p, 50_000))
        error = drawn.std() / math.sqrt(len(drawn))
        assert abs(found_again(np.array([f]), np.array([p]))[0] - drawn.mean()) < 5 * error
        if f == 1:  # alone in the sample, and in the population
            alone = (drawn == 1).mean()
            wanted = population_risk(np.array([0]), np.array([1 / p])).population_unique
            assert abs(alone - wanted) < 5 * math.sqrt(p * (1 - p) / len(drawn))


rows = st.lists(st.tuples(*[st.one_of(st.none(), st.integers(0, 2))] * 4), min_size=1, max_size=14)


@given(rows, st.integers(1, 4))
def test_special_uniques_are_the_smallest_sets_that_nobody_shares(table, most: int) -> None:
    names = ["a", "b", "c", "d"]
    found = special_uniques(pl.DataFrame(table, schema=dict.fromkeys(names, pl.Int64), orient="row"), names, most)
    most = min(most, 3)
    scores, sizes = [0] * len(table), {}
    for at, row in enumerate(table):
        unique: list[set[int]] = []
        for size in range(1, most + 1) if len(table) > 1 else ():
            for chosen in combinations(range(4), size):
                shared = sum(all(other[c] == row[c] for c in chosen) for other in table) > 1
                if not shared and not any(smaller <= set(chosen) for smaller in unique):
                    unique.append(set(chosen))
                    sizes[size] = sizes.get(size, 0) + 1
                    scores[at] += math.prod(4 - i for i in range(size, most + 1))
    assert found.sizes == sizes
    assert found.rows == sum(score > 0 for score in scores)
    assert found.riskiest == sorted(((i, s) for i, s in enumerate(scores) if s), key=lambda x: (-x[1], x[0]))[:20]


def test_measure_tells_both_and_quotes_nobody() -> None:
    table = pl.DataFrame({"age": [31, 31, 77], "town": ["Ulm", "Ulm", "Hof"], "w": [10, 10, 10]})
    found = shoal.measure(table, quasi=["age", "town"], sampling_weight="w", special=2)
    assert found.population is not None
    assert found.population.population_unique == pytest.approx(0.1)
    assert found.special is not None
    assert found.special.sizes == {1: 2}
    assert "row 3: 2" in str(found)
    assert "77" not in str(found)


def test_weights_that_mean_nothing_are_refused() -> None:
    table = pl.DataFrame({"age": [31, 44], "w": [0.5, None], "t": ["a", "b"], "who": [1, 1]})
    with pytest.raises(InputError, match="2 sampling weights are missing or below 1"):
        shoal.measure(table, quasi=["age"], sampling_weight="w")
    with pytest.raises(InputError, match="expected numbers"):
        shoal.measure(table, quasi=["age"], sampling_weight="t")
    with pytest.raises(UsageError, match="one of a person"):
        shoal.measure(table, quasi=["age"], sampling_weight="w", subject="who")
    with pytest.raises(UsageError, match="two quasi columns"):
        shoal.measure(table, quasi=["age"], special=2)
