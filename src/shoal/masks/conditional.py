"""Substitution that depends on the tuple (Allgöwer 2023, section 3.2.2, Figures 9 to 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running, Scope, as_text, dtype_of, text_of
from shoal.masks.condition import Condition, Scalar
from shoal.masks.substitute import kind_of

if TYPE_CHECKING:
    import polars as pl


class Conditional(Mask, frozen=True, tag="conditional"):
    """Where ``when`` holds, the value becomes ``then`` (a constant) or what ``mask`` makes of it; elsewhere it stays.

    A text in place of a number makes the whole column text, in every record, so that its type is known beforehand.

    Protects against: reading the values the condition selects.
    Does not protect against: the selection itself. That a salary is hidden says that a manager earns it.
    Cost: the condition; time grows with the text alone, also for regular expressions.

    >>> hide = Conditional(when=Condition(column="rank", equals="Manager"), then="*")
    >>> running = hide.start(Context(column="salary", type="int"))
    >>> running.one(135000, "Manager"), running.one(45000, "Assistant")
    ('*', '45000')
    """

    scope: ClassVar[Scope] = "tuple"
    repeatable: ClassVar[bool] = False
    attack: ClassVar[str] = "the selection: what is hidden tells that the condition holds"

    when: Condition
    then: Scalar | None = None
    mask: dict[str, Any] | str | None = None

    def __post_init__(self) -> None:
        if (self.then is None) == (self.mask is None):
            raise UsageError("expected either `then` or `mask`", where="conditional")
        if self.mask is not None and self._inner().scope == "window":
            raise UsageError("`mask` must be a mask of single values", where="conditional")

    def _inner(self) -> Mask:
        from shoal.masks import MASKS

        return MASKS.decode(self.mask, where="conditional")

    @property
    def partly_keyed(self) -> bool:
        """See :class:`Mask`."""
        return self.mask is not None and self._inner().keyed

    @property
    def reads(self) -> Sequence[str]:
        """See :class:`Mask`."""
        return self.when.columns()

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        if self.then is None:
            made = self._inner().output(kind)
        else:
            made = kind_of(self.then)
            # `then: 0` among decimals is 0.0, no reason to make texts of them
            if kind == "float" and made == "int":
                made = "float"
        return made if kind is None or made == kind else "str"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        inner = None if self.mask is None else self._inner().start(context)
        return _Conditional(self, context, inner)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"{self.then if self.then is not None else self._inner().describe()} on a condition"


class _Conditional(Running):
    def __init__(self, spec: Conditional, context: Context, inner: Running | None) -> None:
        reads = spec.when.columns()
        super().__init__(spec.output(context.type), by=[*reads, *(inner.by if inner else ())])
        self._inner, self._then, self._when, self._reads = inner, spec.then, spec.when, len(reads)
        self._context = context
        self._test = spec.when.test({None: 0, **{name: at for at, name in enumerate(reads, 1)}})
        self._text = self.type == "str" and context.type not in ("str", None)
        if inner is None and self.type == "float":
            self._then = float(spec.then)  # type: ignore[arg-type]

    def one(self, value: Any, *by: Any) -> Any:
        if self._test((value, *by)) is not False:  # what cannot be told is hidden
            made = self._then if self._inner is None else self._inner.one(value, *by[self._reads :])
            return text_of(made) if self._text and made is not None else made
        return text_of(value) if self._text else value

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        import polars as pl

        names: list[str | None] = [None, *self.by[: self._reads]]
        kinds = {name: self._context.types.get(name) if name else self._context.type for name in names}
        holds = self._when.express(dict(zip(names, [column, *by], strict=False)), kinds)
        if self._inner is None:
            made = pl.lit(text_of(self._then) if self._text else self._then, dtype=dtype_of(self.type))
        else:
            made = self._inner.expression(column, *by[self._reads :])
            if self._text:
                made = as_text(made, self._inner.type)
        kept = as_text(column, self._context.type) if self._text else column
        # what cannot be told is hidden, as in `one`
        return pl.when(column.is_null()).then(None).when(holds.fill_null(True)).then(made).otherwise(kept)

    def settle(self) -> None:
        if self._inner:
            self._inner.settle()
