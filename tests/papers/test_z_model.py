"""The z-to-k model beside the paper's figures (Jha et al. 2020) and beside a simulation of events."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.shared.binomial import at_least, sum_at_least
from shoal.measures.zk_model import Model, UserClass, power_law
from shoal.streams.z_stream import z_anonymity

# Fig. 4, the paper's own formula, k = 2, 3, 4
FIG4 = {
    1: (0.000354, 0.0, 0.0),
    4: (0.017172, 0.000148, 0.000001),
    5: (0.037368, 0.000707, 0.000009),
    10: (0.271559, 0.040753, 0.004188),
    15: (0.616351, 0.248801, 0.072742),
    20: (0.869210, 0.603156, 0.332558),
    25: (0.972699, 0.874391, 0.697391),
    30: (0.996667, 0.977654, 0.923429),
    40: (0.999991, 0.999892, 0.999310),
}
# the right values, sampled by an independent program with a standard error of at most .0032
EXACT = {5: (0.009, 0.005, 0.004), 20: (0.127, 0.087, 0.070), 60: (0.519, 0.425, 0.376), 120: (0.862, 0.802, 0.762)}
FIG2 = {  # p_a^Y by rank 1, 100, 300, 5000
    1: (4.8771e-2, 4.9988e-4, 1.6665e-4, 1.0000e-5),
    20: (4.8771e-2, 4.5379e-4, 1.7268e-7, 9.7176e-29),
    40: (4.8771e-2, 2.8299e-6, 1.9971e-18, 5.3934e-64),
}


@pytest.mark.parametrize(("z", "expected"), FIG4.items())
def test_figure_4_by_the_papers_formula(z: int, expected: tuple[float, ...]) -> None:
    got = [Model().p_k(z, k, "paper2020").value for k in (2, 3, 4)]
    assert got == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("z", "expected"), EXACT.items())
def test_the_exact_model_is_far_below_the_papers(z: int, expected: tuple[float, ...]) -> None:
    for k, value in zip((2, 3, 4), expected, strict=True):
        got = Model(seed=5).p_k(z, k)
        assert abs(got.value - value) <= 3 * (got.error**2 + 0.0032**2) ** 0.5 + 0.0005  # printed to three digits
    assert Model().p_k(z, 2).value < Model().p_k(z, 2, "paper2020").value


def test_figure_2() -> None:
    for z, expected in FIG2.items():
        got = Model().p_y(z)[0][[0, 99, 299, 4999]]
        assert got == pytest.approx(expected, rel=1e-4)


def test_the_plateau_by_attributes_and_the_fall_by_windows() -> None:
    by_a = {a: Model(attributes=a).p_k(20, 2, "paper2020").value for a in (50, 100, 150, 200, 500)}
    assert [by_a[a] for a in by_a] == pytest.approx([1, 0.9853, 0.8990, 0.8729, 0.8692], abs=5e-5)
    by_n = [Model(windows=n).p_k(20, 2, "paper2020").value for n in (20, 22, 26, 30, 45)]
    assert by_n == pytest.approx([0.9995, 0.9800, 0.6596, 0.2719, 0.0050], abs=5e-5)
    exact = [Model(windows=n).p_k(20, 2) for n in (1, 3, 10, 24)]
    for got, expected in zip(exact, (0.985, 0.937, 0.627, 0.127), strict=True):
        assert abs(got.value - expected) <= 3 * (got.error**2 + 0.0032**2) ** 0.5 + 0.0005


def test_smallest_z_of_the_paper_and_longest_watch() -> None:
    wanted = {2: (14, 19, 21, 24, 28), 3: (19, 24, 26, 28, 32), 4: (23, 27, 30, 32, 36)}
    for k, expected in wanted.items():
        assert tuple(Model().smallest_z(g, k, "paper2020") for g in (0.5, 0.8, 0.9, 0.95, 0.99)) == expected
    n = Model().longest(0.9, 20, 2, "paper2020")
    assert Model(windows=n).p_k(20, 2, "paper2020").value >= 0.9 > Model(windows=n + 1).p_k(20, 2, "paper2020").value
    assert Model(users=5).smallest_z(0.9999, k=50) is None


def test_the_authors_later_notebook() -> None:
    shares = -np.expm1(-power_law(20, 0.2) * 2)
    got = Model(users=5000, exposed=shares, windows=1).p_k(150, 2, samples=100_000)
    assert abs(got.value - 0.9710) <= 3 * got.error + 0.0003


def test_two_equal_classes_are_one() -> None:
    shares = Model().p_x()[0]
    two = Model(classes=[UserClass(20_000, shares), UserClass(30_000, shares)])
    assert two.p_o(20) == pytest.approx(np.repeat(Model().p_o(20), 2, 0), rel=1e-6, abs=1e-12)
    assert abs(two.p_k(20).value - Model(seed=3).p_k(20).value) < 0.01


@given(st.integers(0, 25), st.integers(1, 20), st.floats(0, 1))
def test_binomial_tails_by_summing(k: int, n: int, p: float) -> None:
    expected = sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))
    assert at_least(k, n, p) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 12), st.integers(1, 8), st.integers(1, 8), st.floats(0, 1), st.floats(0, 1))
def test_sums_of_binomials_by_summing(k: int, n: int, m: int, p: float, q: float) -> None:
    def term(size: int, share: float, i: int) -> float:
        return comb(size, i) * share**i * (1 - share) ** (size - i)

    expected = sum(term(n, p, i) * term(m, q, j) for i in range(n + 1) for j in range(m + 1) if i + j >= k)
    assert sum_at_least(k, np.array([n, m]), np.array([p, q])) == pytest.approx(expected, abs=1e-10)


def test_the_whole_chain_beside_a_simulation_of_events() -> None:
    """Poisson people, a sliding window, z-anonymity, N windows, groups by exact sets: the model says the same."""
    users, attributes, windows, z = 2000, 40, 4, 30
    model = Model(users=users, attributes=attributes, rate=0.2, windows=windows)
    shares = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rates = power_law(attributes, 0.2) * users * (windows + 1)
        events = [(t, u, a) for a, rate in enumerate(rates) for t, u in _poisson(rng, rate, users, windows)]
        events.sort()
        times, people, values = (np.array(c) for c in zip(*events, strict=True))
        stream = z_anonymity(z, 1.0)
        out = stream.push_many(times + 1, people.astype(str), values.astype(str))
        sets: dict[int, set[int]] = {u: set() for u in range(users)}
        for t, u, a, level in zip(times, people, values, out.levels, strict=True):
            if t >= 0 and level == 0:
                sets[int(u)].add(int(a))
        sizes: dict[frozenset[int], int] = {}
        for s in sets.values():
            sizes[frozenset(s)] = sizes.get(frozenset(s), 0) + 1
        shares.append(sum(sizes[frozenset(s)] >= 2 for s in sets.values()) / users)
    got = model.p_k(z, 2)
    spread = float(np.std(shares, ddof=1)) / 2
    assert abs(np.mean(shares) - got.value) <= 4 * max(spread, got.error, 0.004)


def _poisson(rng: np.random.Generator, rate: float, users: int, windows: int) -> list[tuple[float, int]]:
    n = rng.poisson(rate)
    return list(zip(rng.uniform(-1, windows, n).tolist(), rng.integers(0, users, n).tolist(), strict=True))
