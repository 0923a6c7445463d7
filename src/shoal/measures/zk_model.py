"""What z buys in terms of k: the probabilistic model of Jha et al. 2020, section IV, with its last step put right.

Each of U people shows attribute a in a window with probability p_a^X = 1 - exp(-λ_a Δt). It is released if at least
z - 1 others show it too (p_a^O), so p_a^Y = p_a^X p_a^O; an attacker who watches N windows sees it of a person with
p_a^N = 1 - (1 - p_a^Y)^N. A person is k-anonymous if at least k - 1 others show exactly the same set.

The paper takes the probability p^Q that two people agree and then a Binomial(U - 1, p^Q), as if the comparisons were
independent. They are not: all of them share the one person's set y. The right value is the expectation over y of
P[Binomial(U - 1, P(y)) >= k - 1] (``exact``, sampled, with its standard error); by Jensen's inequality the paper's
form (``paper2020``) always promises too much for k = 2: at its own default values .869 instead of .127.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.kernels.shared.binomial import class_tails, match_tails, realizations, tails

Floats = NDArray[np.float64]
Method = Literal["exact", "paper2020"]


class Estimate(NamedTuple):
    """A probability and its standard error (0 if it is not sampled)."""

    value: float
    error: float = 0.0


class UserClass(NamedTuple):
    """People who behave alike: how many, and the probability that one shows each attribute in a window.

    >>> UserClass(50, np.array([0.5, 0.1])).users
    50
    """

    users: int
    exposed: Floats


def power_law(attributes: int, rate: float = 0.05, exponent: float = 1.0) -> Floats:
    """λ_a by rank: ``rate`` / rank^``exponent`` (Table II: 0.05 / r).

    >>> power_law(3).round(4).tolist()
    [0.05, 0.025, 0.0167]
    """
    return rate / np.arange(1, attributes + 1, dtype=float) ** exponent


@dataclass(frozen=True)
class Model:
    """The z-to-k model. Defaults are the paper's Table II.

    Give ``exposed`` (p_a^X of every attribute, measured) instead of ``attributes``, ``rate`` and ``exponent``; give
    ``classes`` for people of several kinds. Cost: O(attributes) per z, plus O(samples x attributes shown) if exact.

    >>> round(Model().p_k(z=20, k=2, method="paper2020").value, 6)
    0.86921
    """

    users: int = 50_000
    attributes: int = 5_000
    rate: float = 0.05
    exponent: float = 1.0
    windows: float = 24
    window: float = 1.0
    exposed: Floats | None = None
    classes: Sequence[UserClass] = ()
    seed: int = 0
    _sizes: NDArray[np.int64] = field(init=False, repr=False)
    _shares: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.classes:
            shares = np.stack([np.asarray(c.exposed, float) for c in self.classes])
            sizes = np.array([c.users for c in self.classes], np.int64)
        else:
            exposed = self.exposed
            if exposed is None:
                # expm1, because 1 - exp(-x) loses all digits where x is tiny: most attributes are that rare
                exposed = -np.expm1(-power_law(self.attributes, self.rate, self.exponent) * self.window)
            shares, sizes = np.asarray(exposed, float)[None, :], np.array([self.users], np.int64)
        if sizes.min() < 1 or self.windows <= 0 or shares.size == 0 or not ((shares >= 0) & (shares <= 1)).all():
            raise UsageError(
                "expected users, windows and attributes above 0 and probabilities from 0 to 1",
                where="model",
                hint="for example users=50000, attributes=5000, rate=0.05",
            )
        object.__setattr__(self, "_shares", np.ascontiguousarray(shares))
        object.__setattr__(self, "_sizes", sizes)

    def p_x(self) -> Floats:
        """p_a^X: a person shows a in a window. One row per class."""
        return self._shares

    def p_o(self, z: int) -> Floats:
        """p_a^O: at least z - 1 others show a."""
        out = np.ones_like(self._shares)
        if z > 1:
            for own in range(len(self._sizes)):
                if len(self._sizes) == 1:
                    tails(z - 1, int(self._sizes[0]) - 1, self._shares[0], out[0])
                else:
                    class_tails(z - 1, self._sizes, self._shares, own, out[own])
        return out

    def p_y(self, z: int) -> Floats:
        """p_a^Y: a person shows a in a window and it is released."""
        return self._shares * self.p_o(z)

    def p_n(self, z: int) -> Floats:
        """p_a^N: an attacker who watches all windows sees a of a person."""
        with np.errstate(divide="ignore"):
            return -np.expm1(self.windows * np.log1p(-self.p_y(z)))

    def log_p_q(self, z: int) -> float:
        """log p^Q: two people of one class show the same set."""
        p = self.p_n(z)[0]
        return float(np.log1p(-2.0 * p * (1.0 - p)).sum())

    def p_k(self, z: int, k: int = 2, method: Method = "exact", samples: int = 20_000) -> Estimate:
        """The probability that a person shares their whole set with at least k - 1 others."""
        if k <= 1:
            return Estimate(1.0)
        if method == "paper2020":
            if len(self._sizes) > 1:
                raise UsageError("the 2020 formula knows one class of people only", where="model", hint="use exact")
            out = np.empty(1)
            tails(k - 1, int(self._sizes[0]) - 1, np.array([np.exp(self.log_p_q(z))]), out)
            return Estimate(float(out[0]))
        return self._exact(self.p_n(z), k, samples)

    def _exact(self, shares: Floats, k: int, samples: int) -> Estimate:
        # what nobody is ever seen with tells people apart in no realization, and is most of the columns
        shares = np.ascontiguousarray(shares[:, (shares > 1e-15).any(axis=0)])
        with np.errstate(divide="ignore"):
            certain = np.log1p(-np.minimum(shares, 1 - 1e-16))
            # log 0 would make inf - inf of a sum; exp(-700) is nothing, and a number
            logits = np.maximum(np.log(shares), -700.0) - certain
        rng = np.random.default_rng(self.seed)
        value, variance = 0.0, 0.0
        for own, users in enumerate(self._sizes):
            logs = np.repeat(certain.sum(axis=1)[:, None], samples, 1)
            realizations(rng, shares, logits, own, samples, logs)
            out = np.empty(samples)
            match_tails(k - 1, self._sizes, own, logs, out)
            weight = users / self._sizes.sum()
            value += weight * float(out.mean())
            variance += weight**2 * float(out.var()) / samples
        return Estimate(float(value), float(variance) ** 0.5)

    def smallest_z(
        self, goal: float, k: int = 2, method: Method = "exact", samples: int = 20_000, highest: int | None = None
    ) -> int | None:
        """The least z that reaches the goal, or None if no z up to ``highest`` (all users) does."""
        steps = self.smallest_z_steps(goal, k, 1, highest or int(self._sizes.sum()), method, samples)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                z, _, reached = end.value
                return z if reached else None

    def smallest_z_steps(
        self, goal: float, k: int, low: int, high: int, method: Method = "exact", samples: int = 20_000
    ) -> Generator[None, None, tuple[int, float, bool]]:
        """The same in steps, one evaluation each, for who must not stop the world: (z, p, reached)."""
        below, z = low - 1, low
        p = self.p_k(z, k, method, samples).value
        # doubling first: each evaluation at a large z is dear, and the answer usually lies low
        while p < goal and z < high:
            yield
            below, z = z, min(2 * z, high)
            p = self.p_k(z, k, method, samples).value
        yield
        if p < goal:
            return z, p, False
        while z - below > 1:
            middle = (below + z) // 2
            q = self.p_k(middle, k, method, samples).value
            if q >= goal:
                z, p = middle, q
            else:
                below = middle
            yield
        return z, p, True

    def longest(
        self, goal: float, z: int, k: int = 2, method: Method = "exact", samples: int = 20_000, most: int = 10_000
    ) -> int:
        """For how many windows an attacker may watch before the goal is lost for the first time; 0: from the start.

        p_k may rise again later, when everybody has shown every common attribute; that is not counted on.
        """

        def kept(windows: int) -> bool:
            model = Model(
                windows=windows,
                classes=[UserClass(int(u), s) for u, s in zip(self._sizes, self._shares, strict=True)],
                seed=self.seed,
            )
            return model.p_k(z, k, method, samples).value >= goal

        good, bad = 0, 1
        while bad <= most and kept(bad):
            good, bad = bad, bad + max(1, bad // 4)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if kept(middle) else (good, middle)
        return min(good, most)
