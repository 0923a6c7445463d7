"""Binomial tails by the continued fraction of the incomplete beta function, and draws of whole realizations."""

import math

import numpy as np

from shoal.kernels.compile import kernel

_TINY = 1e-300


@kernel
def _beta_fraction(a, b, x):
    """Lentz's evaluation of the continued fraction of I_x(a, b)."""
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    out = d
    # about sqrt(max(a, b)) terms are needed; the bound is for counts far beyond any population
    for m in range(1, 20000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 + even * d
        c = 1.0 + even / c
        d = 1.0 / (d if abs(d) > _TINY else _TINY)
        c = c if abs(c) > _TINY else _TINY
        out *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 + odd * d
        c = 1.0 + odd / c
        d = 1.0 / (d if abs(d) > _TINY else _TINY)
        c = c if abs(c) > _TINY else _TINY
        step = d * c
        out *= step
        if abs(step - 1.0) < 1e-15:
            break
    return out


@kernel
def at_least(k, n, p):
    """P[Binomial(n, p) >= k]."""
    if k <= 0:
        return 1.0
    if k > n or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return 1.0
    a, b = float(k), float(n - k + 1)
    # in log space: the factors alone overflow for a thousand people
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(p) + b * math.log1p(-p)
    # on this side of the mean the fraction converges quickly; on the other its mirror does
    if p < (a + 1.0) / (a + b + 2.0):
        return math.exp(front) * _beta_fraction(a, b, p) / a
    return 1.0 - math.exp(front) * _beta_fraction(b, a, 1.0 - p) / b


@kernel
def tails(k, n, p, out):
    """``at_least`` for every p."""
    for i in range(p.size):
        out[i] = at_least(k, n, p[i])


@kernel
def _terms(n, p, out):
    """P[Binomial(n, p) = i] for i below ``out.size``, in log space."""
    for i in range(out.size):
        if i > n:
            out[i] = 0.0
        elif p <= 0.0:
            out[i] = 1.0 if i == 0 else 0.0
        elif p >= 1.0:
            out[i] = 1.0 if i == n else 0.0
        else:
            log = math.lgamma(n + 1.0) - math.lgamma(i + 1.0) - math.lgamma(n - i + 1.0)
            out[i] = math.exp(log + i * math.log(p) + (n - i) * math.log1p(-p))


@kernel
def two_at_least(k, ns, ps):
    """The same for two classes, without cancellation: P[A >= k] + Σ P[A = i] P[B >= k - i]."""
    one = np.empty(k)
    _terms(ns[0], ps[0], one)
    out = at_least(k, ns[0], ps[0])
    for i in range(k):
        if one[i] > 0.0:
            out += one[i] * at_least(k - i, ns[1], ps[1])
    return min(out, 1.0)


@kernel
def sum_at_least(k, ns, ps):
    """P[the sum of independent Binomial(ns[c], ps[c]) >= k]. One class: the tail; several: O(classes x k^2)."""
    if k <= 0:
        return 1.0
    if ns.size == 1:
        return at_least(k, ns[0], ps[0])
    total = np.zeros(k)
    total[0] = 1.0
    one, both = np.empty(k), np.empty(k)
    for c in range(ns.size):
        _terms(ns[c], ps[c], one)
        for i in range(k):
            both[i] = 0.0
            for j in range(i + 1):
                both[i] += total[j] * one[i - j]
        total[:] = both
    # k is small and the tail is long: what lies below k is summed, and the tail is the rest
    below = total.sum()
    # for two classes a small tail is summed itself: the complement would lose it
    return two_at_least(k, ns, ps) if below > 0.5 and ns.size == 2 else max(0.0, 1.0 - below)


@kernel
def class_tails(k, sizes, shares, own, out):
    """P[at least k others show a], seen by a person of class ``own``, for every attribute: ``shares[class, a]``."""
    ns = sizes.copy()
    ns[own] -= 1
    ps = np.empty(sizes.size)
    for a in range(shares.shape[1]):
        for c in range(sizes.size):
            ps[c] = shares[c, a]
        out[a] = sum_at_least(k, ns, ps)


@kernel
def realizations(rng, shares, logits, own, samples, out):
    """Draw ``samples`` realizations y of class ``own``; add to ``out[class, sample]`` the log odds of what is shown.

    Only hits are visited (of a likely attribute, the misses): O(attributes + hits).
    """
    for a in range(shares.shape[1]):
        p = shares[own, a]
        flip = p > 0.5
        q = 1.0 - p if flip else p
        if flip:
            for c in range(out.shape[0]):
                for s in range(samples):
                    out[c, s] += logits[c, a]
        if q <= 0.0:
            continue
        step = math.log1p(-q)
        # the gap to the next hit is geometric: drawn at once, so that misses cost nothing
        at = int(math.log(1.0 - rng.random()) / step)
        while at < samples:
            for c in range(out.shape[0]):
                out[c, at] += -logits[c, a] if flip else logits[c, a]
            at += 1 + int(min(math.log(1.0 - rng.random()) / step, 9e15))


@kernel
def match_tails(k, sizes, own, logs, out):
    """P[at least k others drew the same realization], given its log probability per class."""
    ns = sizes.copy()
    ns[own] -= 1
    ps = np.empty(sizes.size)
    for s in range(logs.shape[1]):
        for c in range(sizes.size):
            # sums of logs may end a hair above 0, and no probability is above 1
            ps[c] = math.exp(min(logs[c, s], 0.0))
        out[s] = sum_at_least(k, ns, ps)
