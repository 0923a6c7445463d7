"""Several masks, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running

if TYPE_CHECKING:
    import polars as pl


class Chain(Mask, frozen=True, tag="chain"):
    """Each mask works on what the one before it made. In a policy: a list of masks for one column.

    >>> from shoal.masks.blur import Blur
    >>> from shoal.masks.substitute import Substitute
    >>> Chain((Blur(first=2, length=1), Substitute(map={"10X": "Berlin"}))).start(Context(type="str")).one("10115")
    'Berlin'
    """

    masks: tuple[Mask, ...]

    def __post_init__(self) -> None:
        # a window withholds rows: the mask after it would work on fewer values than the record has
        if any(mask.scope == "window" for mask in self.masks):
            raise UsageError("a mask of a window cannot be one of several", hint="give it the column for itself")

    @property
    def keyed(self) -> bool:
        """See :class:`Mask`."""
        return any(mask.keyed for mask in self.masks)

    @property
    def near(self) -> bool:
        """See :class:`Mask`."""
        # one key that leaves nothing near is enough
        return all(mask.near for mask in self.masks if mask.keyed)

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        for mask in self.masks:
            kind = mask.output(kind)
        return kind

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        running: list[Running] = []
        for mask in self.masks:
            running.append(mask.start(context))
            # the next mask reads what this one makes, which need not be of the column's type any more
            context = replace(context, type=running[-1].type)
        return _Chain(running)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return ", then ".join(mask.describe() for mask in self.masks)


class _Chain(Running):
    def __init__(self, running: Sequence[Running]) -> None:
        super().__init__(
            running[-1].type, by=[name for r in running for name in r.by], nulls=any(r.nulls for r in running)
        )
        self._running = running
        self.alike = all(r.alike for r in running)

    def one(self, value: Any, *by: Any) -> Any:
        at = 0
        for running in self._running:
            # a mask in the middle may make a null; the next one sees it only if it asked for nulls
            if value is not None or running.nulls:
                value = running.one(value, *by[at : at + len(running.by)])
            at += len(running.by)
        return value

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        at = 0
        for running in self._running:
            column = running.expression(column, *by[at : at + len(running.by)])
            at += len(running.by)
        return column

    def reveal(self, text: str) -> Any:
        # of two masks the first may have lost what the second kept: half an answer would look like a whole one
        if len(self._running) > 1:
            raise UsageError("a chain of masks cannot be undone")
        return self._running[0].reveal(text)

    def settle(self) -> None:
        for running in self._running:
            running.settle()
