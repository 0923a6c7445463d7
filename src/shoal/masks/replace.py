"""What a pattern finds inside a text is replaced; the rest stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running, as_text
from shoal.masks.patterns import for_columns, pattern, replacer

if TYPE_CHECKING:
    import polars as pl


class Replace(Mask, frozen=True, tag="replace"):
    """Every place where the regular expression ``find`` matches becomes ``by``.

    The engine is RE2: time grows with the text alone, whatever the pattern.

    Protects against: reading what the pattern finds.
    Does not protect against: what it does not find; a text nobody foresaw stays as it was.
    Cost: one pass over each text.

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
        return _Replace(self, context.type)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return "found text replaced"


class _Replace(Running):
    def __init__(self, spec: Replace, kind: Type | None) -> None:
        super().__init__("str")
        self._kind, self._by = kind, spec.by
        self._alike = for_columns(spec.find) if kind is not None else None
        self.one = replacer(spec.find, spec.by)  # type: ignore[method-assign, assignment]

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        if self._alike is None:
            return super().expression(column, *by)
        # a dollar in what stands instead is a dollar
        return as_text(column, self._kind).str.replace_all(self._alike, self._by.replace("$", "$$"))
