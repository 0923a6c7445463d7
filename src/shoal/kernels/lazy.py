"""Kernels that are named long before they run: the compiler is loaded by the first call of one, not by its import.

Loading it costs more than many a command does altogether (to judge a small release, to read a policy), and every
module that names a kernel would load it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


class Lazy:
    """Stands for what ``make`` makes of a function; other kernels see only what was made."""

    def __init__(
        self,
        function: Callable[..., Any],
        make: Callable[[], Any],
        ready: Callable[..., Callable[..., Any] | None] | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self.__wrapped__ = function  # doctest and inspect look here
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__
        self._make = make
        self._made: Any = None
        self._ready = ready  # finds, for arguments, what runs without the compiler
        self.whole = whole  # it may be compiled for callers in Python

    @property
    def made(self) -> Any:
        """The compiled function. Whatever its module names is made with it: a kernel finds its callees there."""
        if self._made is None:
            self._made = self._make()
            settle(self.__wrapped__.__globals__)
        return self._made

    def __call__(self, *arguments: Any) -> Any:
        """Run it. What an earlier run has compiled never loads the compiler, however often it is called: that would
        choose a variant a few microseconds faster, but a stream stands still while it is loaded.
        """
        if self._made is None and self._ready is not None:
            found = self._ready(self.__wrapped__, arguments)
            if found is not None:
                return found(*arguments)
        return (self._made or self.made)(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy, pickle and inspect ask for what is not there
            raise AttributeError(name)
        return getattr(self.made, name)


def settle(names: dict[str, Any]) -> None:
    """Replace every stand-in among a module's names, and among those of the kernels' modules it names."""
    for name, value in list(names.items()):
        if isinstance(value, Lazy):
            names[name] = value.made
        elif isinstance(value, ModuleType) and value.__name__.startswith("shoal.kernels."):
            if any(isinstance(other, Lazy) for other in vars(value).values()):
                settle(vars(value))
