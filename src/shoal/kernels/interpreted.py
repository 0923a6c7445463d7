"""Small work without the compiler: what the interpreter does sooner than the compiler could compile it, it does.

A kernel may say how many steps its arguments mean (``kernel(steps=...)``), a step being about a microsecond of the
interpreter. Where nobody has compiled it on this machine, it then runs as the Python function it is, with the same
result, until it has taken as many steps, in all runs together, as compiling would have cost. However often it will be
called, that never costs more than twice the best choice in hindsight (the ski rental problem).
"""

from __future__ import annotations

import atexit
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from shoal.kernels.stamps import folder

Function = Callable[..., Any]
PER_BYTE = 1000  # steps that the compiler costs per byte of code: about a second for a loop of some lines
MOST = 700  # whose exponential is finite
allowed = True  # `shoal warm` compiles whatever it calls
_declared: dict[CodeType, Callable[..., float]] = {}
_taken: dict[Function, float] = {}
_worlds: dict[str, dict[str, Any]] = {}


def declare(function: Function, steps: Callable[..., float]) -> None:
    """Say how many steps the arguments of a kernel mean."""
    _declared[function.__code__] = steps


def may_wait(function: Function) -> bool:
    """Whether small work of a kernel is done without compiling it."""
    return allowed and function.__code__ in _declared


def small(function: Function, arguments: tuple[Any, ...]) -> Function | None:
    """What does the work of a kernel without the compiler, if that costs less than compiling it, else None."""
    if not may_wait(function):
        return None
    if "numba" in sys.modules:  # without the compiler whoever asks has looked for compiled code before
        from shoal.kernels.ready import kept

        if kept(function, arguments):
            return None
    steps = _taken[function] if function in _taken else _before(function)
    steps += _declared[function.__code__](*arguments)
    if not steps <= worth(function):
        return None
    if not _taken:
        atexit.register(_note)
    _taken[function] = steps
    return plain(function)


@cache
def worth(function: Function) -> float:
    """The steps that compiling a kernel costs."""
    from shoal.kernels.waiting import reach, size

    return PER_BYTE * sum(map(size, reach(function)))


@cache
def plain(function: Function) -> Function:
    """A kernel that calls kernels, as Python functions all of them, with results such as compiled code returns.

    >>> from shoal.kernels.shared.boxes import bound
    >>> low, high = np.zeros(1, np.int32), np.zeros(1, np.int32)
    >>> plain(bound.__wrapped__)(np.array([[3], [5], [4]], np.int32), np.arange(3), 0, 3, low, high)
    >>> low, high
    (array([3], dtype=int32), array([5], dtype=int32))
    """
    inner = _world(function.__globals__)[function.__name__]

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):  # as in compiled code: sums of hashes wrap around
            return _boxed(inner(*arguments))

    return run


def _world(names: dict[str, Any]) -> dict[str, Any]:
    """A module's names, with Python functions in place of kernels."""
    from shoal.kernels.waiting import python_of

    if names["__name__"] not in _worlds:
        world = _worlds[names["__name__"]] = {**names, "np": _NUMPY}
        for name, value in names.items():
            function = python_of(value) or (value if isinstance(value, FunctionType) else None)
            if function is not None and function.__globals__ is names:
                world[name] = FunctionType(function.__code__, world, function.__name__, function.__defaults__)
            elif function is not None and function.__globals__["__name__"].startswith("shoal.kernels."):
                world[name] = _world(function.__globals__).get(function.__name__, value)
            elif isinstance(value, ModuleType) and value.__name__.startswith("shoal.kernels."):
                world[name] = SimpleNamespace(**_world(vars(value)))
    return _worlds[names["__name__"]]


def _log(number: float) -> float:
    return math.log(number) if number > 0 else float(np.log(number))


def _exp(number: float) -> float:
    return math.exp(number) if number < MOST else float(np.exp(number))


# compiled code asks the machine's own library, NumPy may not: the two can differ in the last bit
_NUMPY = SimpleNamespace(**{**vars(np), "log": _log, "exp": _exp})


def _boxed(value: Any) -> Any:
    """Plain numbers in place of NumPy's, as compiled code returns them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        parts = [_boxed(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _file(function: Function) -> Path:
    code = function.__code__
    return folder(Path(code.co_filename).resolve()) / f"steps-{function.__name__}-{code.co_firstlineno}"


def _before(function: Function) -> float:
    """The steps of earlier runs."""
    try:
        return float(_file(function).read_text())
    except (OSError, ValueError):
        return 0.0


def _note() -> None:
    """Write down the steps; nothing where that cannot be done: then the next run begins anew."""
    for function, steps in _taken.items():
        with suppress(OSError):
            _file(function).parent.mkdir(parents=True, exist_ok=True)
            _file(function).write_text(f"{steps:.0f}")
