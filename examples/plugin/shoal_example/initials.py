"""A mask: a name becomes its initials."""

from __future__ import annotations

from typing import Any, ClassVar

from shoal.masks.base import Context, Mask, Plain, Running, text_of


class Initials(Mask, frozen=True, tag="initials"):
    """``Ada Lovelace`` → ``A. L.``; a value without a word becomes ``*``.

    >>> Initials().start(Context(type="str")).one("Ada Lovelace")
    'A. L.'
    """

    attack: ClassVar[str] = "who knows the people recognizes rare initials"

    def start(self, context: Context) -> Running:
        """A function of the value alone; it must answer for every value and never raise."""
        return Plain("str", _initials)


def _initials(value: Any) -> str:
    return " ".join(f"{word[0]}." for word in text_of(value).split()) or "*"
