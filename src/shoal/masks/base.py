"""The seam of all masks: a spec says what, :class:`Context` says where, a :class:`Running` mask does it.

A mask never raises on a value. What it cannot mask (a word where it expects a number) it suppresses: text becomes
``*``, anything else null. A null stays null unless the mask was asked to hide it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.keys import KeyRing
from shoal.core.schema import Type
from shoal.core.spec import Spec
from shoal.core.texts import text_of as text_of
from shoal.core.texts import texts_of

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from shoal.core.hierarchy.base import Hierarchy
    from shoal.core.lines import Bytes, Numbers
    from shoal.core.time import Unit

    Chosen = NDArray[np.bool_]

Scope = Literal["value", "tuple", "window"]
Written = Callable[["Bytes", "Numbers", "Numbers"], tuple["Bytes", "Numbers", "Chosen"]]


@dataclass(frozen=True)
class Context:
    """Where a mask works: the column, what its values are, whose eyes it masks them for, and with which keys.

    >>> Context("age", "int", role="ward", subject="pid").need_subject("noise")
    'pid'
    """

    column: str = "value"
    type: Type | None = None
    role: str = ""
    keys: KeyRing = field(default_factory=KeyRing)
    hierarchy: Hierarchy | None = None
    subject: str | None = None
    time: str | None = None
    unit: Unit = "s"
    types: Mapping[str, Type | None] = field(default_factory=dict)
    folder: Path = field(default_factory=Path)

    def need_subject(self, mask: str) -> str:
        """The subject column, or an error that says why it is needed."""
        if self.subject is None:
            raise UsageError(
                f"{mask} needs to know whose value it is",
                where=self.column,
                hint="declare a column with `role: subject`, or name columns in `by`",
            )
        return self.subject


class Mask(Spec, frozen=True):
    """How a value is hidden.

    Traits, which the laws of :mod:`shoal.testing` hold every mask to: ``scope`` (value, tuple or window),
    ``reversible`` (whoever holds the key can undo it), ``repeatable`` (equal values of a column read alike in one
    role and epoch), ``keyed`` (outsiders cannot recompute it), ``constant`` (all values read alike), ``near`` (it moves
    a value a little, or now and then, so whoever sees another form of it can still compare the two). ``attack`` names
    what it falls to.

    >>> from shoal.masks.suppress import Suppress
    >>> Suppress().scope, Suppress().reversible, Suppress().keyed
    ('value', False, False)
    """

    scope: ClassVar[Scope] = "value"
    reversible: ClassVar[bool] = False
    repeatable: ClassVar[bool] = True
    attack: ClassVar[str] = ""

    @property
    def keyed(self) -> bool:
        """Whether outsiders cannot recompute it."""
        return False

    @property
    def near(self) -> bool:
        """Whether what it makes can be compared with the value although it is keyed."""
        return False

    @property
    def partly_keyed(self) -> bool:
        """Whether it hides some values under a key and shows others."""
        return False

    @property
    def constant(self) -> bool:
        """Whether all values read alike, so that nothing of them is told but whether there is one."""
        return False

    @property
    def reads(self) -> Sequence[str]:
        """The other columns that decide what it hides: who sees them can recompute it."""
        return ()

    def output(self, kind: Type | None) -> Type | None:
        """The type of the masked values, known before any is seen."""
        return "str"

    def start(self, context: Context) -> Running:
        """Ready to mask a column; what cannot work there raises ``UsageError`` now."""
        raise NotImplementedError

    def describe(self) -> str:
        """A few words for `shoal explain`."""
        return self.use


class Running:
    """A mask at work on one column: one value at a time, a column at once, or as an expression; all agree.

    >>> class Initial(Running):
    ...     def one(self, value, *by):
    ...         return value[0]
    >>> import polars as pl
    >>> Initial("str").many(pl.Series(["Ada", None])).to_list()
    ['A', None]
    """

    needs_by = False  # without the columns it reads, its answer is empty
    pure = False  # a function of the value alone, without keys or memory: its answers may be kept
    alike = False  # a function of the value alone, though keyed: equal values of a batch may be asked once
    # many texts at once, from where they stand in a buffer to how they stand in JSON: what is written, where each ends
    # (after a zero), and which were read; where a mask has none, or did not read one, `one` is asked
    written: Written | None = None

    def __init__(self, kind: Type | None, *, by: Sequence[str] = (), nulls: bool = False) -> None:
        self.type = kind
        self.by = tuple(by)
        self.nulls = nulls

    def one(self, value: Any, *by: Any) -> Any:
        """The masked value; never called for a null unless ``nulls``."""
        raise NotImplementedError

    def many(self, values: pl.Series, *by: pl.Series) -> pl.Series:
        """The masked column. By default one call per distinct value, or per row if other columns are read."""
        import numpy as np
        import polars as pl

        from shoal.core.distinct import different

        dtype = dtype_of(self.type)
        if self.by:  # equal values may be masked differently, so nothing can be shared between rows
            rows = zip(values.to_list(), *(s.to_list() for s in by), strict=True)
            one, nulls = self.one, self.nulls
            out = [None if row[0] is None and not nulls else one(*row) for row in rows]
            return pl.Series(values.name, out, dtype=dtype)
        some, codes = different(values)
        # behind the answers for values, where -1 finds it: the one for none
        missing = self.nulls and bool((codes < 0).any())
        out = [*map(self.one, some.to_list()), self.one(None) if missing else None]
        return pl.Series(values.name, out, dtype=dtype)[np.where(codes < 0, len(some), codes)]

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        """The masked column as a polars expression."""
        import polars as pl

        return pl.map_batches([column, *by], lambda s: self.many(*s), return_dtype=dtype_of(self.type))

    def notes(self, values: pl.Series, *by: pl.Series) -> list[str]:
        """What the owner of a column should know before it is published: counts, never values."""
        if not self.needs_by:
            return []
        lacking = values.is_not_null() & by[0].is_null()
        for other in by[1:]:
            lacking |= values.is_not_null() & other.is_null()
        count = int(lacking.sum())
        return [f"{count:,} cells are empty because their row lacks {' or '.join(self.by)}"] if count else []

    def reveal(self, text: str) -> Any:
        """The value behind a token, for masks that are reversible."""
        raise UsageError("this mask cannot be undone")

    def settle(self) -> None:
        """Make durable what the masked batch rests on; called before it is published."""


class Plain(Running):
    """A mask that is a function of the value alone.

    >>> Plain("str", str.upper).one("flu")
    'FLU'
    """

    alike = True

    def __init__(self, kind: Type | None, function: Callable[[Any], Any], *, nulls: bool = False) -> None:
        super().__init__(kind, nulls=nulls)
        self.one = function  # type: ignore[method-assign, assignment]


def dtype_of(kind: Type | None) -> pl.DataType:
    """The polars type of a declared type; undeclared reads as text.

    >>> dtype_of("int"), dtype_of(None)
    (Int64, String)
    """
    import polars as pl

    table: dict[Type | None, pl.DataType] = {
        "int": pl.Int64(),
        "float": pl.Float64(),
        "bool": pl.Boolean(),
        "date": pl.Date(),
        "datetime": pl.Datetime("us"),
    }
    return table.get(kind, pl.String())


def type_of(dtype: pl.DataType) -> Type | None:
    """The declared type that fits a polars type, if one does.

    >>> import polars as pl
    >>> type_of(pl.Int16()), type_of(pl.Binary())
    ('int', None)
    """
    import polars as pl

    if dtype.is_integer():
        return "int"
    if dtype.is_float() or dtype.is_decimal():
        return "float"
    if isinstance(dtype, pl.Datetime):
        return "datetime"
    if isinstance(dtype, (pl.Boolean, pl.Date)):
        return "bool" if isinstance(dtype, pl.Boolean) else "date"
    return "str" if isinstance(dtype, (pl.String, pl.Categorical, pl.Enum, pl.Null)) else None


def as_text(column: pl.Expr, kind: Type | None) -> pl.Expr:
    """Text of any column by the rules of :func:`shoal.core.texts.text_of`.

    >>> import polars as pl
    >>> pl.select(as_text(pl.lit(7.0), "float")).item()
    '7'
    """
    import polars as pl

    if kind == "str":
        return column

    # whole numbers read alike in polars and in `text_of`; decimals and moments do not
    return column.cast(pl.String) if kind == "int" else column.map_batches(texts_of, return_dtype=pl.String())


def unusable(kind: Type | None) -> Any:
    """What stands for a value that could not be masked."""
    return SUPPRESSED if kind in (None, "str") else None


def need_number(kind: Type | None, mask: str) -> Type | None:
    """Refuse columns that are declared to hold something else than numbers.

    >>> need_number("int", "noise")
    'int'
    """
    if kind not in (None, "int", "float"):
        raise UsageError(
            f"{mask} works on numbers, and the column holds {kind}", hint="declare `type: int` or `type: float`"
        )
    return kind


def is_number(value: Any) -> bool:
    """Whether a value is a finite number (a boolean is none).

    >>> is_number(2.5), is_number(True), is_number(float("nan"))
    (True, False, False)
    """
    if isinstance(value, bool):
        return False
    # infinity and NaN minus themselves are not 0
    return isinstance(value, int) or (isinstance(value, float) and value - value == 0)
