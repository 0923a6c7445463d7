"""What the union of two boxes costs, for loops that serve tables and series alike.

The measure decides: an array of weights means weighted widths of float boxes, a :class:`Shape` means the weighted
certainty penalty of boxes of codes. Numba chooses when it compiles, so the loop pays nothing for the choice.
"""

from shoal.kernels.compile import PLAIN, by_types
from shoal.kernels.shared.boxes import cell_cost


def _widths(low_a, high_a, low_b, high_b, measure):
    total = 0.0
    for i in range(len(measure)):
        total += measure[i] * (max(high_a[i], high_b[i]) - min(low_a[i], low_b[i]))
    return total


def _nodes(low_a, high_a, low_b, high_b, measure):
    total = 0.0
    for j in range(len(low_a)):
        low, high = int(min(low_a[j], low_b[j])), int(max(high_a[j], high_b[j]))
        total += measure.weight[j] * cell_cost(measure, j, low, high)
    return total


def _by_measure(low_a, high_a, low_b, high_b, measure):
    from numba import types

    return _widths if isinstance(measure, types.Array) else _nodes


def _when_called(low_a, high_a, low_b, high_b, measure):
    """Where nothing is compiled, the choice is made at every call."""
    cost = _nodes if hasattr(measure, "weight") else _widths
    return cost(low_a, high_a, low_b, high_b, measure)


union_cost = _when_called if PLAIN else by_types(_by_measure, _when_called)
