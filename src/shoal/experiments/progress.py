"""How far an experiment is, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import TypeVar

T = TypeVar("T")


def said(items: Collection[T], what: str = "") -> Iterator[T]:
    """Each of ``items``, named with its number while it is at work: a tuple by its first word.

    >>> list(said(["a", "b"]))
    ['a', 'b']
    """
    for at, item in enumerate(items, 1):
        name = item[0] if isinstance(item, tuple) else item
        say(f"[{at}/{len(items)}] {what}{' ' if what else ''}{name} …")
        yield item


def say(words: str) -> None:
    """One line of talk.

    >>> say("half done")
    """
    sys.stderr.write(words + "\n")
    sys.stderr.flush()
