"""Nothing is left of the value (Allgöwer 2023, Figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shoal.core.cells import SUPPRESSED
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running, dtype_of

if TYPE_CHECKING:
    import polars as pl

# dates have no zero: they become null
ZERO: dict[Type | None, Any] = {"int": 0, "float": 0.0, "bool": False, "str": ""}


class Suppress(Mask, frozen=True, tag="suppress"):
    """Every value becomes the same: ``*``, null, or the zero of its type.

    ``to: star`` writes ``*`` (a number's column becomes text), ``null`` and ``zero`` keep the type. ``nulls`` hides
    also whether there was a value.

    Protects against: everything that could be read from the value.
    Does not protect against: the presence of a value, unless ``nulls``.
    Cost: none.

    >>> Suppress().start(Context()).one("Hauptstr. 1")
    '*'
    """

    attack: ClassVar[str] = "presence: who has a value at all, unless `nulls: true`"

    to: Literal["star", "null", "zero"] = "star"
    nulls: bool = False

    @property
    def constant(self) -> bool:
        """See :class:`Mask`."""
        return True

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        return "str" if self.to == "star" else kind

    def start(self, context: Context) -> Constant:
        """See :class:`Mask`."""
        kind = self.output(context.type)
        value = {"star": SUPPRESSED, "null": None, "zero": ZERO.get(context.type)}[self.to]
        return Constant(kind, value, nulls=self.nulls)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return {"star": SUPPRESSED, "null": "null", "zero": "zero"}[self.to]


class Constant(Running):
    """One and the same answer.

    >>> Constant("str", "*").one("F. Ott")
    '*'
    """

    def __init__(self, kind: Type | None, value: Any, *, nulls: bool = False) -> None:
        super().__init__(kind, nulls=nulls)
        self.value = value

    def one(self, value: Any, *by: Any) -> Any:
        """See :class:`Running`."""
        return self.value

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        """See :class:`Running`."""
        import polars as pl

        constant = pl.lit(self.value, dtype=dtype_of(self.type))
        return constant if self.nulls else pl.when(column.is_not_null()).then(constant)
