"""No silent waiting: kernels are compiled once per machine, and whoever waits is told so and what is left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[float, str], None]  # the share that is done, and what is left in words
ONCE = "compiling for this machine, once"
WIDTH = 24
_listeners: list[Tell] = []
_said = False


@contextmanager
def listening(tell: Tell) -> Iterator[None]:
    """Whoever has a bar or a page of its own shows the wait there; 1.0 says that it is over for now."""
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)


def show(share: float, left: int) -> None:
    """Show how far it is, where somebody looks; with a full cache nothing is compiled, and nothing is said."""
    global _said
    words = f"about {left} parts left" if share < 1 else ""
    if _listeners:
        _listeners[-1](share, words)
    elif _watched():
        if not _said:
            sys.stderr.write(f"{ONCE}; `shoal warm` does it beforehand\n")
            _said = True
        full = int(share * WIDTH)
        line = f"{'█' * full}{'·' * (WIDTH - full)} {words}"
        sys.stderr.write(f"\r{line:<{WIDTH + 24}}" if share < 1 else f"\r{' ' * (WIDTH + 24)}\r")
        sys.stderr.flush()


def _watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
