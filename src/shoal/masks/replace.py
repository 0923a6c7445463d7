"""What a pattern finds inside a text is replaced; the rest stays."""

from __future__ import annotations

from typing import Any, ClassVar

from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Plain, Running, text_of
from shoal.masks.condition import pattern


class Replace(Mask, frozen=True, tag="replace"):
    """Every place where the regular expression ``find`` matches becomes ``by``.

    The engine is RE2: time grows with the text alone, whatever the pattern.

    Protects against: reading what the pattern finds.
    Does not protect against: what it does not find; a text nobody foresaw stays as it was.
    Cost: one pass over each distinct text.

    >>> Replace(find="[0-9]{4,}", by="#").start(Context()).one("call 0301234 or 12")
    'call # or 12'
    """

    attack: ClassVar[str] = "what the pattern misses stays in clear"

    find: str
    by: str = "*"

    def __post_init__(self) -> None:
        pattern(self.find)

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        return "str"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        found, by = pattern(self.find), self.by

        def replaced(value: Any) -> str:
            # surrogates alone are no text that RE2 could read
            text = text_of(value).encode("utf-8", "replace").decode()
            return str(found.sub(lambda match: by, text))

        return Plain("str", replaced)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return "found text replaced"
