"""Arrays by their address: one call from Python then hands over a single small array instead of a dozen large ones.

Unpacking an array costs numba more than deciding an event. Whoever makes a handle keeps its arrays alive.
"""

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from shoal.kernels.compile import kernel


@intrinsic
def _pointer(typing, address):
    """An integer as a pointer."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


@kernel(inline="always")
def table_at(handle, at):
    """The int64 matrix whose address, rows and columns stand in ``handle`` from ``at`` on."""
    return carray(_pointer(handle[at]), (handle[at + 1], handle[at + 2]), np.int64)


@kernel(inline="always")
def words_at(handle, at):
    """The int64 vector whose address and length stand in ``handle`` from ``at`` on."""
    return carray(_pointer(handle[at]), (handle[at + 1],), np.int64)


def handle_of(arrays: list[np.ndarray]) -> np.ndarray:
    """Addresses and shapes of int64 arrays, three words each."""
    handle = np.zeros(3 * len(arrays), np.int64)
    for i, array in enumerate(arrays):
        if array.dtype != np.int64 or not array.flags.c_contiguous:
            raise TypeError("expected contiguous int64")
        handle[3 * i] = array.ctypes.data
        handle[3 * i + 1 : 3 * i + 1 + array.ndim] = array.shape
    return handle
