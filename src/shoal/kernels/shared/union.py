"""What the union of two boxes costs, for loops that serve tables and series alike.

The measure decides: an array of weights means weighted widths of float boxes, a :class:`Shape` means the weighted
certainty penalty of boxes of codes. Numba chooses when it compiles, so the loop pays nothing for the choice.
"""

from shoal.kernels.compile import by_types
from shoal.kernels.shared.boxes import cell_cost


@by_types
def union_cost(low_a, high_a, low_b, high_b, measure):
    """The cost of the box around two boxes (compiled code only)."""
    from numba import types

    def widths(low_a, high_a, low_b, high_b, measure):
        total = 0.0
        for i in range(len(measure)):
            total += measure[i] * (max(high_a[i], high_b[i]) - min(low_a[i], low_b[i]))
        return total

    def nodes(low_a, high_a, low_b, high_b, measure):
        total = 0.0
        for j in range(len(low_a)):
            low, high = int(min(low_a[j], low_b[j])), int(max(high_a[j], high_b[j]))
            total += measure.weight[j] * cell_cost(measure, j, low, high)
        return total

    return widths if isinstance(measure, types.Array) else nodes
