"""What is still to be compiled, as far as it can be known: what loaded modules may call, with all that it calls.

Work is counted in bytes of code: once for each function, and once more for each kernel that links them together.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from shoal.kernels.interpreted import may_wait
from shoal.kernels.lazy import Lazy
from shoal.kernels.stamps import ROOM, folder
from shoal.kernels.talk import show

Function = Callable[..., Any]
LINKED = "shoal.kernels.linked"  # whose kernels are ours


class Waiting:
    """What this process has compiled so far. The share it tells never falls, though more may turn out to be needed."""

    def __init__(self, entries: Callable[[], Iterable[Function]]) -> None:
        self._entries = entries
        self._parts: set[CodeType] = set()
        self._wholes: set[CodeType] = set()
        self._work = 0
        self._share = 0.0
        self._now: list[Function] = []
        self._collects = False  # whether garbage was collected before
        self._lock = threading.RLock()

    def begin(self, kernel: Function) -> None:
        """A kernel is about to be compiled for callers in Python."""
        with self._lock:
            if not self._now:  # the compiler keeps nearly all it makes: looking for garbage is a twentieth of its time
                self._collects = gc.isenabled()
                gc.disable()
            self._now.append(kernel)
            self._tell()

    def part(self, function: Function) -> None:
        """A function that kernels call was compiled."""
        with self._lock:
            if function.__code__ not in self._parts:
                self._parts.add(function.__code__)
                self._work += size(function)
                self._tell()

    def end(self, kernel: Function) -> None:
        """A kernel is compiled, or cannot be."""
        with self._lock:
            self._wholes.add(kernel.__code__)
            for function in reach(kernel):
                self._parts.add(function.__code__)
                self._work += size(function)
            self._now.remove(kernel)
            if not self._now:
                if self._collects:
                    gc.enable()
                show(1.0, 0)

    def _tell(self) -> None:
        if not self._now:
            return
        kernels = {f.__code__: reach(f) for f in (*self._now, *self._entries()) if f.__code__ not in self._wholes}
        open_parts = {f.__code__: f for found in kernels.values() for f in found if f.__code__ not in self._parts}
        left = sum(map(size, open_parts.values())) + sum(size(f) for found in kernels.values() for f in found)
        self._share = max(self._share, min(0.99, self._work / max(1, self._work + left)))
        show(self._share, len(open_parts) + len(kernels))


def callers_in_python() -> list[Function]:
    """The kernels that loaded modules may call, as far as no earlier run has left them compiled."""
    found: dict[CodeType, Function] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("shoal.") and not name.startswith("shoal.kernels."):
            for value in list(vars(module).values()):
                function = python_of(value)
                if function is not None and value.whole and not may_wait(function) and not _kept(function):
                    found[function.__code__] = function
    return list(found.values())


def reach(function: Function) -> list[Function]:
    """A kernel and all kernels it calls, directly or not.

    >>> from shoal.kernels.shared.boxes import group_boxes
    >>> group_boxes.__wrapped__ in reach(group_boxes.__wrapped__)
    True
    """
    found = {function.__code__: function}
    left = [function]
    while left:
        one = left.pop()
        known: dict[str, Any] = one.__globals__
        named = [known.get(name) for name in one.__code__.co_names]
        for module in [value for value in named if isinstance(value, ModuleType)]:
            named += [vars(module).get(name) for name in one.__code__.co_names]
        for called in filter(None, map(python_of, named)):
            if called.__code__ not in found:
                found[called.__code__] = called
                left.append(called)
    return list(found.values())


def size(function: Function) -> int:
    """How much there is to compile."""
    return len(function.__code__.co_code)


def python_of(value: Any) -> Function | None:
    """The Python function of a kernel, compiled or not."""
    if isinstance(value, Lazy):
        return value.__wrapped__
    return getattr(value, "py_func", None) if type(value).__module__ in (LINKED, "builtins") else None


def _kept(function: Function) -> bool:
    """Whether an earlier run has compiled it, for some kinds of arguments."""
    file = Path(function.__code__.co_filename).resolve()
    if ROOM not in file.parents:
        return True
    return any(folder(file).glob(f"{function.__name__}-{function.__code__.co_firstlineno}[.-]*"))


waiting = Waiting(callers_in_python)
