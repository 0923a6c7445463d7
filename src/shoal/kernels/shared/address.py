"""Arrays by their address: one call from Python then hands over a single number instead of a dozen arrays.

Unpacking an array costs numba more than deciding an event. Whoever makes a handle keeps it and its arrays alive.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.kernels.compile import PLAIN, builtin, instruction, kernel
from shoal.kernels.lazy import Lazy
from shoal.kernels.ready import find


@instruction
def _pointer(typing, address):
    """An integer as a pointer."""
    from numba import types

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


@instruction
def prefetch(typing, array, index):
    """Ask the memory for an element that will be needed, and do not wait for it. Changes nothing."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, word = ir.PointerType(ir.IntType(8)), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        place = builder.bitcast(builder.gep(made.data, [arguments[1]]), byte)
        builder.call(ask, [place, word(0), word(3), word(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(array, index), generate


def _called(typing_arguments):
    """What calls a C function at an address with whole numbers; it answers one."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word] * (len(arguments) - 1))
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.int64(*[types.int64] * len(typing_arguments)), generate


@instruction
def call_with_one(typing, function, first):
    """What a C function answers; of one that answers nothing, whatever is there."""
    return _called((function, first))


@instruction
def call_with_two(typing, function, first, second):
    """What a C function answers."""
    return _called((function, first, second))


@instruction
def call_with_three(typing, function, first, second, third):
    """What a C function answers."""
    return _called((function, first, second, third))


@instruction
def copy_bytes(typing, to, begin, size):
    """Copy so many bytes from one address to another."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def generate(context, builder, signature, arguments):
        byte = ir.IntType(8).as_pointer()
        places = [builder.inttoptr(address, byte) for address in arguments[:2]]
        cgutils.raw_memcpy(builder, *places, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@kernel(inline="always")
def struct_at(address, words):
    """The int64 words of a C struct."""
    return carray(_pointer(address), (words,), np.int64)


@builtin
def carray(pointer, shape, dtype):
    """An array around a pointer."""
    from numba import carray as found

    return found


@kernel(inline="always")
def words_at(address, which):
    """The int64 vector whose address and length stand as pair ``which`` of the handle at ``address``."""
    handle = carray(_pointer(address), (2 * which + 2,), np.int64)
    return carray(_pointer(handle[2 * which]), (handle[2 * which + 1],), np.int64)


@kernel(inline="always")
def floats_at(address, which):
    """The same for floats."""
    handle = carray(_pointer(address), (2 * which + 2,), np.int64)
    return carray(_pointer(handle[2 * which]), (handle[2 * which + 1],), np.float64)


@kernel(inline="always")
def bytes_at(address, which):
    """The same for bytes."""
    handle = carray(_pointer(address), (2 * which + 2,), np.int64)
    return carray(_pointer(handle[2 * which]), (handle[2 * which + 1],), np.uint8)


def swift(function: Any, *example: float) -> Callable[..., int]:
    """A kernel of plain numbers, such as those of ``example``, to be called straight away: without looking up its
    types at every call, and without the compiler where an earlier run has compiled it.
    """
    if PLAIN:
        return function  # type: ignore[no-any-return]
    plain = function.__wrapped__ if isinstance(function, Lazy) else function.py_func
    return find(plain, example) or function.entry(*example)


def address_of(array: np.ndarray) -> int:
    """Where an array's content lies."""
    address: int = array.__array_interface__["data"][0]
    return address


def handle_at(places: list[tuple[int, int]]) -> np.ndarray:
    """The handle of memory that others own: addresses and lengths in words or bytes."""
    return np.array(places, np.int64).reshape(-1)


def handle_of(arrays: list[np.ndarray]) -> np.ndarray:
    """Addresses and lengths of arrays, two words each."""
    handle = np.zeros(2 * len(arrays), np.int64)
    for i, array in enumerate(arrays):
        if array.dtype not in (np.int64, np.float64, np.uint8) or not array.flags.c_contiguous:
            raise TypeError("expected contiguous words, floats or bytes")
        handle[2 * i], handle[2 * i + 1] = address_of(array), array.size
    return handle
