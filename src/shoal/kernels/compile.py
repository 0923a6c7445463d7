"""How every kernel is compiled: cached on disk between runs, without the interpreter lock, exact arithmetic.

No fast-math anywhere: a release must not depend on the rounding of one machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from shoal.kernels.interpreted import declare, small
from shoal.kernels.lazy import Lazy

PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")  # kernels stay Python functions
OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy", "boundscheck": None}
OPTIONS["_nrt"] = True  # said, or a kernel that creates arrays would not compile where a bare one calls it first


def kernel(
    function: Callable[..., Any] | None = None, /, *, steps: Callable[..., float] | None = None, **options: Any
) -> Any:
    """Compile a function at its first call with every kind of arguments.

    Where ``steps`` says how many steps some arguments mean, few of them are taken without compiling it.
    """
    if function is None:
        return partial(kernel, steps=steps, **options)
    if PLAIN:
        return function
    if steps is not None:
        declare(function, steps)

    def make() -> Any:
        from shoal.kernels.linked import Kernel

        return Kernel(function, targetoptions={**OPTIONS, **options})

    return Lazy(function, make, _ready, whole=True)


# for loops that hand their arrays on to other functions for every element: without numba's reference counting,
# which costs more there than the work. Such a kernel may not create arrays.
bare = partial(kernel, _nrt=False)


def light(function: Callable[..., Any]) -> Any:
    """A kernel for other kernels; called from Python it is not compiled: to load it would take longer than its work."""
    if PLAIN:
        return function

    def make() -> Any:
        from shoal.kernels.linked import Light

        return Light(function, targetoptions=dict(OPTIONS))

    return Lazy(function, make, lambda function, _: function)


def _ready(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any] | None:
    """What an earlier run has compiled, or what needs no compiling."""
    if "numba" in sys.modules:
        return small(function, arguments)
    from shoal.kernels.ready import find

    return find(function, arguments) or small(function, arguments)


def instruction(function: Callable[..., Any]) -> Any:
    """A function that writes instructions itself, for kernels to call (numba's intrinsic)."""

    def make() -> Any:
        from numba.extending import intrinsic

        return intrinsic(function)

    return Lazy(function, make)


def builtin(function: Callable[..., Any]) -> Any:
    """What the compiler brings along; ``function`` finds it, whatever its arguments."""
    return Lazy(function, lambda: function(None, None, None))


def by_types(choose: Callable[..., Any], plain: Callable[..., Any]) -> Any:
    """A function whose code is chosen by the types of its arguments (numba's overload); ``plain`` does it in Python."""

    def make() -> Any:
        from numba.extending import overload

        def stand_in(*arguments: Any) -> Any:
            raise NotImplementedError("compiled code only")

        overload(stand_in)(choose)
        stand_in.py_func = plain  # type: ignore[attr-defined]
        return stand_in

    return Lazy(plain, make)
