"""A value becomes its ancestor: Berlin becomes Germany (Allgöwer 2023, Figure 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import ShoalError, UsageError
from shoal.core.hierarchy import HIERARCHIES
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.tree import Tree
from shoal.masks.base import Context, Mask, Plain, Running, dtype_of, text_of

if TYPE_CHECKING:
    import polars as pl

REMEMBERED = 65_536


class Generalize(Mask, frozen=True, tag="generalize"):
    """Replace a value by its node at ``level`` of a hierarchy (the column's own, unless ``hierarchy`` names another).

    What the hierarchy does not know becomes ``*``.

    Protects against: reading more than the node says.
    Does not protect against: small nodes. A village of one inhabitant generalizes to itself with a new name; only a
    method with promises counts people.
    Cost: one look-up per value once its node is known; the last 65,536 are remembered.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> Generalize(level=2).start(Context(hierarchy=Prefix(5))).one("10115")
    '101**'
    """

    attack: ClassVar[str] = "background knowledge: a node may hold one person only; nobody counts"

    level: int
    hierarchy: dict[str, Any] | str | None = None

    def __post_init__(self) -> None:
        if self.level < 0:
            raise UsageError("`level` must not be negative", where="generalize")
        if self.hierarchy is not None:
            HIERARCHIES.decode(self.hierarchy, where="generalize")

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        given = None if self.hierarchy is None else HIERARCHIES.decode(self.hierarchy, where=context.column)
        hierarchy = context.hierarchy if given is None else given.beside(context.folder)
        if hierarchy is None:
            raise UsageError(
                "generalize needs a hierarchy", where=context.column, hint="declare one on the column, or in the mask"
            )
        self._need_closed(hierarchy, context)
        if isinstance(hierarchy, Tree):
            return Plain("str", _Ancestors(hierarchy, self.level, context.column))
        return _Generalize(hierarchy, self.level, context)

    @staticmethod
    def _need_closed(hierarchy: Hierarchy, context: Context) -> None:
        """A value's node must not hang on which other values happen to be there."""
        if hierarchy.grows is not None:
            why, hint = hierarchy.grows
            raise UsageError(f"generalize needs fixed levels: {why}", where=context.column, hint=hint)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"generalized, level {self.level}"


class _Ancestors:
    """A tree is read once, at the start: a look-up per value."""

    def __init__(self, tree: Tree, level: int, where: str) -> None:
        self._tree, self._level = tree, level
        self._known = {leaf: self._at(path) for leaf, path in tree.paths(where=where).items()}
        self._others: dict[str, str] = {}

    def _at(self, path: list[str], least: int = 0) -> str:
        # level 0 asks for the value itself, whatever node it lies under
        level = max(self._level, least) if self._level else 0
        return SUPPRESSED if level >= len(path) - 1 else path[level]

    def __call__(self, value: Any) -> str:
        text = text_of(value)
        if text in self._known or self._tree.default is None:
            return self._known.get(text, SUPPRESSED)
        if text not in self._others:
            if len(self._others) >= REMEMBERED:
                self._others.clear()
            path = self._tree.paths(_column(text))[text]
            # below the default node the value itself fills the levels: it must not be published as its own ancestor
            self._others[text] = self._at(path, path.index(self._tree.default, 1))
        return self._others[text]


def _column(text: str) -> pl.Series:
    """One text, as trees take it."""
    import polars as pl

    return pl.Series([text], dtype=pl.String)


class _Generalize(Running):
    alike = True

    def __init__(self, hierarchy: Hierarchy, level: int, context: Context) -> None:
        super().__init__("str")
        self._hierarchy, self._level, self._kind = hierarchy, level, context.type
        self._known: dict[Any, str] = {}

    def one(self, value: Any, *by: Any) -> Any:
        if value not in self._known:
            # cleared, not evicted one by one: a stream of ever new values then costs no more than without a memory
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[value] = self._label([value])[0]
        return self._known[value]

    def many(self, values: pl.Series, *by: pl.Series) -> pl.Series:
        import polars as pl

        distinct = values.unique()
        known = distinct.drop_nulls().to_list()
        table = pl.DataFrame({"was": pl.Series(known, dtype=distinct.dtype), "is": self._label(known)})
        found = pl.DataFrame({"was": values}).join(table, on="was", how="left", maintain_order="left")
        return found["is"].cast(pl.String).alias(values.name)

    def _label(self, values: list[Any]) -> list[str]:
        import polars as pl

        if not values:
            return []
        try:
            dtype = dtype_of(self._kind) if self._kind else None
            levels, codes = self._hierarchy.compile(pl.Series(values, dtype=dtype))
        except (ShoalError, pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            # one value the hierarchy refuses must not take the others with it
            return [SUPPRESSED] if len(values) == 1 else [self._label([v])[0] for v in values]
        # a level above the top is the top: never an error that would let the value out by another road
        level = min(self._level, levels.depth - 1)
        labels = levels.labels(level).to_list()
        return [SUPPRESSED if code < 0 else labels[levels.codes[code, level]] for code in codes.tolist()]
