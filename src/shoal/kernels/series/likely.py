"""How likely a curve lies in a range at several instants, from the mean, spread and inertia of its subgroup."""

import math

from shoal.kernels.compile import kernel

TINY = 1e-12  # a share of a normal law that is nothing


@kernel()
def _normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@kernel()
def likely(mean, spread, bottom, top, together, low, high, edge, nodes, weights, out):
    """The probability, per subgroup, that ``low <= x <= high`` at all instants given, into ``out``.

    Each value follows a normal law cut off at the envelope (``bottom``, ``top``). Instants hang together by one common
    factor of correlation ``together``: given it they are independent; ``nodes`` and ``weights`` average over it.
    ``edge`` is half the distance of two values (whole numbers: 0.5), so that single numbers have a share.
    """
    groups, instants = mean.shape
    for g in range(groups):
        common = math.sqrt(together[g])
        own = math.sqrt(1.0 - together[g])
        total = 0.0
        for j in range(len(nodes)):
            share = 1.0
            for i in range(instants):
                least = max(low, bottom[g, i])
                most = min(high, top[g, i])
                if most < least:
                    share = 0.0
                    break
                if least == bottom[g, i] and most == top[g, i]:
                    continue
                if spread[g, i] == 0.0:
                    if mean[g, i] < low or mean[g, i] > high:
                        share = 0.0
                        break
                    continue
                middle = mean[g, i] + spread[g, i] * common * nodes[j]
                width = spread[g, i] * own
                inside = _normal((most + edge - middle) / width) - _normal((least - edge - middle) / width)
                whole = _normal((top[g, i] + edge - middle) / width) - _normal((bottom[g, i] - edge - middle) / width)
                # so far out that the law has no share in the envelope: as likely anywhere in it
                if whole < TINY:
                    inside = most - least + 2 * edge
                    whole = top[g, i] - bottom[g, i] + 2 * edge
                share *= min(1.0, max(0.0, inside / whole))
            total += weights[j] * share
        out[g] = min(1.0, max(0.0, total))
