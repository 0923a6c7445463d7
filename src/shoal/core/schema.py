"""What each column gives away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from shoal.core.derive import Derive
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.time import duration

Role = Literal["subject", "identifier", "quasi", "sensitive", "time", "plain"]
Type = Literal["int", "float", "str", "bool", "date", "datetime"]
LossScale = Literal["linear", "rank", "log"]


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One column: its role, and what its values are.

    ``format`` is the form of a date, a time or a number in text: ``%d.%m.%Y``; ``ms`` since 1970; ``,`` for a
    decimal comma. ``missing`` says what an empty cell is: a value of its own, or a reason to suppress the row.
    ``weight`` scales the loss of a quasi column. ``loss`` says how that of numbers is measured: by their own
    distance (``linear``), by the share of rows between the two ends (``rank``), or by their order of magnitude
    (``log``); unless it is said, ``rank`` where tails are heavy (:mod:`shoal.core.scale`), else ``linear``.
    ``at_most`` is the highest level that its cells may be published at, 0 for a column that is never generalized; rows
    that no group can hold within it are withheld. ``unit``, ``late`` and ``ahead`` belong to the time column of a
    stream: how late an event may come, and how far ahead of the stream's clock one person alone may move it (by
    default an hour, for z-anonymity its window; ``0s``: not at all, two people must agree on every step of the clock).
    ``derive`` makes the column from others of the row; a column of that name in the data is then not read.

    >>> Column("quasi", type="int", weight=2.0).role
    'quasi'
    """

    role: Role
    type: Type | None = None
    format: str | None = None
    hierarchy: Hierarchy | None = None
    weight: float = 1.0
    missing: Literal["value", "suppress"] = "value"
    unit: Literal["s", "ms", "us", "ns"] = "s"
    late: str = "0s"
    ahead: str | None = None
    derive: Derive | None = None
    loss: LossScale | None = None
    at_most: int | None = None

    def __post_init__(self) -> None:
        if self.at_most is not None and (self.at_most < 0 or self.role != "quasi"):
            raise UsageError(
                "`at_most` is a level of a quasi column, and not below 0", where="column", hint="for example 2"
            )
        for name, role in OF_ONE_ROLE.items():
            if self.role != role and getattr(self, name) != _BY_DEFAULT[name]:
                raise UsageError(
                    f"`{name}` has no effect on a column of the role `{self.role}`",
                    where=f"column.{name}",
                    hint=f"it is said of a {role} column: leave it out",
                )
        if not 0 < self.weight < float("inf"):
            raise UsageError("`weight` must be positive and finite", where="column", hint="for example 2")
        if self.format is not None and self.type is None:
            raise UsageError("`format` needs a `type`", where="column", hint="for example type: date")
        for name, length in (("late", self.late), ("ahead", self.ahead)):
            if length is not None:
                duration(length, where=f"column.{name}")
        if self.derive is not None:
            if self.format is not None or self.type not in (None, self.derive.makes):
                raise UsageError(
                    f"a column derived by `{self.derive.use}` is of type {self.derive.makes}",
                    where="column",
                    hint="leave `type` and `format` out",
                )
            msgspec.structs.force_setattr(self, "type", self.derive.makes)


# what only columns of one role have; of any other it would be ignored
OF_ONE_ROLE: dict[str, Role] = {
    **dict.fromkeys(("weight", "loss", "missing"), "quasi"),
    **dict.fromkeys(("unit", "late", "ahead"), "time"),
}
_BY_DEFAULT = {field.name: field.default for field in msgspec.structs.fields(Column)}


def one_role_each(named: Mapping[str, Iterable[str]], where: str) -> None:
    """An error if one column is named for two things: the second role would replace the first unsaid.

    Whoever makes columns of options calls it first; a mapping that is built of their values merges equal names.

    >>> one_role_each({"subject": ["client"], "value": ["client"]}, "stream")
    Traceback (most recent call last):
    shoal.core.errors.UsageError: stream: column 'client' is declared twice: subject and value
    <BLANKLINE>
    hint: give it one role
    """
    seen: dict[str, str] = {}
    for role, names in named.items():
        for name in names:
            if name in seen:
                both = f": {seen[name]} and {role}" if seen[name] != role else ""
                raise UsageError(f"column {name!r} is declared twice{both}", where=where, hint="give it one role")
            seen[name] = role


def declared(column: Column) -> dict[str, Any]:
    """All that is declared of a column, as plain data. What came to columns later is left out where it is not used:
    states and services that were begun before stay what they are.

    >>> declared(Column("quasi", type="int"))["role"]
    'quasi'
    """
    plain: dict[str, Any] = msgspec.to_builtins(column, enc_hook=repr)
    for name in ("derive", "loss", "at_most"):
        if getattr(column, name) is None:
            del plain[name]
    return plain


class Schema(msgspec.Struct, frozen=True):
    """All declared columns, in order. A column that is not declared is not released.

    >>> schema = Schema({"pid": Column("subject"), "age": Column("quasi"), "diag": Column("sensitive")})
    >>> schema.subject, schema.quasi, schema.sensitive
    ('pid', ['age'], ['diag'])
    """

    columns: Mapping[str, Column]

    def __post_init__(self) -> None:
        if len(self.of("subject")) > 1:
            raise UsageError(
                "more than one column has the role `subject`", where="schema", hint="make the others identifiers"
            )

    def of(self, *roles: Role) -> list[str]:
        """The names of the columns with one of these roles."""
        return [name for name, column in self.columns.items() if column.role in roles]

    @property
    def given(self) -> dict[str, Column]:
        """The columns that the data bring themselves; the others are derived from them."""
        return {name: column for name, column in self.columns.items() if column.derive is None}

    @property
    def derived(self) -> dict[str, Derive]:
        """The columns made from others, and how."""
        return {name: column.derive for name, column in self.columns.items() if column.derive is not None}

    @property
    def subject(self) -> str | None:
        """The column that says whose row it is, if there is one."""
        return next(iter(self.of("subject")), None)

    @property
    def quasi(self) -> list[str]:
        """The columns an outsider may know."""
        return self.of("quasi")

    @property
    def sensitive(self) -> list[str]:
        """The columns an outsider must not learn."""
        return self.of("sensitive")

    def types(self) -> dict[str, str]:
        """The declared types of the columns the data bring, with the form of their texts after a colon.

        >>> Schema({"born": Column("quasi", "date", "%d.%m.%Y"), "age": Column("quasi", "int")}).types()
        {'born': 'date:%d.%m.%Y', 'age': 'int'}
        """
        return {
            name: c.type if c.format is None else f"{c.type}:{c.format}"
            for name, c in self.given.items()
            if c.type is not None
        }

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    @classmethod
    def build(
        cls,
        *,
        quasi: Mapping[str, Hierarchy | None],
        sensitive: list[str] | None = None,
        plain: list[str] | None = None,
        identifiers: list[str] | None = None,
        subject: str | None = None,
        weights: Mapping[str, float] | None = None,
        losses: Mapping[str, LossScale] | None = None,
        at_most: Mapping[str, int] | None = None,
    ) -> Schema:
        """A schema from lists of names, as the short calls (``shoal.api``) take them."""
        weights, losses, at_most = weights or {}, losses or {}, at_most or {}
        for name, weight in weights.items():
            if not 0 < weight < float("inf"):
                raise UsageError("`weight` must be positive and finite", where=f"column {name!r}", hint="for example 2")
        more: dict[Role, list[str]] = {
            "sensitive": sensitive or [],
            "plain": plain or [],
            "identifier": identifiers or [],
            "subject": [subject] if subject else [],
        }
        one_role_each({"quasi": quasi, **{str(role): names for role, names in more.items()}}, "schema")
        columns = {
            name: Column(
                "quasi", hierarchy=h, weight=weights.get(name, 1.0), loss=losses.get(name), at_most=at_most.get(name)
            )
            for name, h in quasi.items()
        }
        columns |= {name: Column(role) for role, names in more.items() for name in names}
        stated: list[tuple[str, Mapping[str, Any], str]] = [
            ("weights", weights, "weigh the columns an outsider may know"),
            ("losses", losses, "only of quasi columns a loss is measured"),
            ("at_most", at_most, "only quasi columns are generalized, and can be limited"),
        ]
        for what, given, hint in stated:
            if unknown := set(given) - set(quasi):
                raise UsageError(
                    f"{what} for columns that are not quasi: {', '.join(sorted(unknown))}",
                    where="schema",
                    hint=hint,
                )
        return cls(columns)


def refuse_limits(schema: Schema, why: str) -> None:
    """An error where the limit of a column could not be kept.

    >>> refuse_limits(Schema({"age": Column("quasi")}), "a stream")
    """
    if limited := next((name for name, column in schema.columns.items() if column.at_most is not None), None):
        raise UsageError(f"`at_most` cannot be kept: {why}", where=f"column {limited!r}", hint="leave it out")
