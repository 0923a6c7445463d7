"""How likely sampled people are found again in the population they were drawn from (Benedetti and Franconi 1998).

A sample of f people of a kind, whose sampling weights add up to F, stands for about F people of that kind. How many
there really are is not known: given f, it is taken to be negative binomial with success chance p = f / F, the least
being f. The chance of picking the right one of them is the mean of 1 / F over that distribution.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import InputError

Floats = NDArray[np.float64]
EXACT = 40  # people of a kind in the sample up to which the mean is exact


class PopulationRisk(msgspec.Struct, frozen=True):
    """What somebody with a register of the whole population can hope for.

    ``people`` is how many the sample stands for; ``expected`` how many of the sample would be found again, ``highest``
    the worst chance. ``unique`` counts the sample's people who are alone of their kind in it, ``population_unique`` how
    many of them are expected to be alone in the population, too.

    >>> population_risk(np.array([0, 1]), np.array([10.0, 10.0])).population_unique
    0.2
    """

    people: float
    expected: float
    highest: float
    unique: int
    population_unique: float


def population_risk(kinds: NDArray[np.integer], weights: Floats) -> PopulationRisk:
    """The risk of a sample: dense labels of what people look like, and how many people each of them stands for.

    >>> round(population_risk(np.array([0]), np.array([10.0])).highest, 4)  # ln(10) / 9
    0.2558
    """
    if not len(kinds):
        return PopulationRisk(0.0, 0.0, 0.0, 0, 0.0)
    often = np.bincount(kinds)
    estimated = np.bincount(kinds, weights)
    chance = often / estimated
    risk = found_again(often, chance)
    alone = often == 1
    return PopulationRisk(
        people=float(weights.sum()),
        expected=float(risk @ often),
        highest=float(risk.max()),
        unique=int(alone.sum()),
        population_unique=float(chance[alone].sum()),
    )


def found_again(often: NDArray[np.integer], chance: Floats) -> Floats:
    """The mean of 1 / F where F - f is negative binomial with f successes of chance p. O(kinds x people of a kind).

    It is the integral of u^(f-1) p / (p + (1 - p) u) from 0 to 1. For f = 1 that is p / (1 - p) ln(1 / p), and from f
    to f + 1 it goes by p / (1 - p) (1 / f - mean), which keeps its digits while p is at most 1/2; beyond, the integrand
    is so smooth that Gauss's rule is exact. Where more than 40 are alike, p / (f - (1 - p)) is near enough.

    >>> found_again(np.array([1, 2]), np.array([0.5, 1.0])).round(4).tolist()
    [0.6931, 0.5]
    """
    out = chance / (often - (1 - chance))
    small = often <= EXACT
    for f in np.unique(often[small]):
        here = small & (often == f)
        out[here] = _mean(int(f), chance[here])
    return np.asarray(out)


def _mean(f: int, p: Floats) -> Floats:
    out = np.empty_like(p)
    # beyond one half the steps below would lose a digit each
    few = p <= 0.5
    ratio = p[few] / (1 - p[few])
    mean = ratio * -np.log(p[few])
    for at in range(1, f):
        mean = ratio * (1 / at - mean)
    out[few] = mean
    node, weight = np.polynomial.legendre.leggauss(64)
    u = (node + 1) / 2
    q = p[~few][:, None]
    out[~few] = (u ** (f - 1) * q / (q + (1 - q) * u)) @ (weight / 2)
    return out


def checked_weights(weights: Floats) -> Floats:
    """Sampling weights, if each says how many people somebody stands for: themselves at least.

    >>> checked_weights(np.array([1.0, 12.5])).sum()
    np.float64(13.5)
    """
    wrong = int(np.sum(~(np.isfinite(weights) & (weights >= 1))))
    if wrong:
        raise InputError(
            f"{wrong:,} sampling weights are missing or below 1",
            where="sampling_weight",
            hint="a weight is how many people of the population a row stands for",
        )
    return weights
