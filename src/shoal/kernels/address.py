"""Arrays by their address: one call from Python then hands over a single number instead of a dozen arrays.

Unpacking an array costs numba more than deciding an event. Whoever makes a handle keeps it and its arrays alive.
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
def words_at(address, which):
    """The int64 vector whose address and length stand as pair ``which`` of the handle at ``address``."""
    handle = carray(_pointer(address), (2 * which + 2,), np.int64)
    return carray(_pointer(handle[2 * which]), (handle[2 * which + 1],), np.int64)


def handle_of(arrays: list[np.ndarray]) -> np.ndarray:
    """Addresses and lengths of int64 arrays, two words each."""
    handle = np.zeros(2 * len(arrays), np.int64)
    for i, array in enumerate(arrays):
        if array.dtype != np.int64 or not array.flags.c_contiguous:
            raise TypeError("expected contiguous int64")
        handle[2 * i], handle[2 * i + 1] = array.ctypes.data, array.size
    return handle
