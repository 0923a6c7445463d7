"""Writes the function behind :class:`shoal.views.records.RecordGate`.

The generated source holds positions only, never a name or a value of a policy: those are constants it is given. A
record is decoded once, to the declared types, and every role's record is one object that is encoded at once. Nothing
goes through undecoded: bytes that nobody looked at could hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from shoal.core.cells import SUPPRESSED
from shoal.core.schema import Type
from shoal.masks.base import Mask, Running
from shoal.masks.suppress import Constant
from shoal.policy.paths import Node, steps, tree
from shoal.views.role_view import RoleView
from shoal.views.types import decoder, in_utc, struct_of

KEPT: tuple[Type, ...] = ("int", "str")  # types whose equal values are the same value: 1.0 and True equal 1
# records, what is unreadable, what to do with such a one; answers a list per role
Many = Callable[
    [Iterable[bytes], tuple[type[Exception], ...], Callable[[tuple[int, Exception]], None]], list[list[bytes]]
]
MOST_ANSWERS = 65_536  # answers kept of one mask


class RecordWriter:
    """What to read of a record, and per role what to write."""

    def __init__(self, views: Sequence[RoleView], masks: Sequence[dict[str, Running]]) -> None:
        self._views, self._masks = views, masks
        self._schema = views[0].schema
        shown = {c for v in views for c in v.shown}
        # a constant needs no reading, but a part of an object needs to know whether there is one
        working = {c for m in masks for c, r in m.items() if not _is_constant(r) or len(steps(c)) > 1}
        reads = {name for m in masks for r in m.values() for name in r.by}
        needed = shown | working | reads
        self._derived = {c: f"d{at}" for at, c in enumerate(c for c in self._schema.derived if c in needed)}
        needed |= {source for c in self._derived for source in self._schema.derived[c].sources}
        self._root = tree(c for c in self._schema.given if c in needed)
        self._names: dict[str, Any] = {"en": msgspec.json.Encoder().encode, "utc": in_utc}
        self._lists = 0
        self._known: dict[Any, str] = {}  # constants that several roles share
        self._shared: list[tuple[str, Mask, str]] = []  # column, mask, and the variable of its answer
        self._answers: list[str] = []  # the lines that make those

    def functions(self) -> tuple[Callable[[bytes], tuple[bytes, ...]], Many]:
        """The compiled functions: a record's bytes to one record per role; and many records to many per role.

        The second goes over the records by itself and is told what to do with one that cannot be read: a call and a
        tuple per record would cost as much as a mask.
        """
        lines, made, outs = self._written()
        given = ", ".join(made[out] for out in outs)
        one = ["def views(record):", *(f" {line}" for line in lines), f" return ({given},)"]
        many = [
            "def many(records, unreadable, refuse):",
            *(f" l{variable} = []; a{variable} = l{variable}.append" for variable in made.values()),
            " for at, record in enumerate(records):",
            "  try:",
            *(f"   {line}" for line in lines),
            "  except unreadable as error:",
            "   refuse((at, error))",
            "   continue",
            *(f"  a{variable}({variable})" for variable in made.values()),
            f" return [{', '.join('l' + made[out] for out in outs)}]",
        ]
        # only numbered names stand in the source: column names and values are data, and never code
        exec(compile("\n".join(one), "<view>", "exec"), self._names)
        exec(compile("\n".join(many), "<views>", "exec"), self._names)
        return self._names["views"], self._names["many"]

    def _written(self) -> tuple[list[str], dict[str, str], list[str]]:
        """The lines that make all roles' records, the variable of each different record, and each role's record."""
        self._names["de"] = decoder(self._root, self._schema)
        lines = ["o = de(record)"]
        for at, below in enumerate(self._root.fields.values()):
            lines.append(f"x{at} = {self.value(below.leaf, f'o.f{at}')}")
        lines += [f"{variable} = {self._made(column)}" for column, variable in self._derived.items()]
        outs = [self._record(v, m) for v, m in zip(self._views, self._masks, strict=True)]
        # roles that see the same get the same bytes: they are written once
        made = {out: f"r{at}" for at, out in enumerate(dict.fromkeys(outs))}
        lines += [*self._answers, *(f"{variable} = en({out})" for out, variable in made.items())]
        return lines, made, outs

    def _record(self, view: RoleView, masks: dict[str, Running]) -> str:
        role = _Role(self, view, masks)
        node = view.node()
        return "o" if role.is_clear(node, self._root) else role.fields(node, self._root, "")

    def _made(self, column: str) -> str:
        """The source of a derived value: missing, if one of its sources is."""
        derive = self._schema.derived[column]
        values = [self.elsewhere(source) for source in derive.sources]
        lacking = " or ".join(f"(s{at} := {value}) is None" for at, value in enumerate(values))
        given = ", ".join(f"s{at}" for at in range(len(values)))
        return f"None if {lacking} else {self.constant(derive.one(self._schema.columns))}({given})"

    def derived(self, column: str | None) -> str | None:
        """The variable of a derived value, if the column is one."""
        return self._derived.get(column) if column is not None else None

    def constant(self, value: Any) -> str:
        """A name the generated source knows a value by."""
        # others may have no hash, or equal a value of another type, as 1 does True
        known = (type(value), value) if isinstance(value, (str, type(None))) else None
        if known in self._known:
            return self._known[known]
        name = f"k{len(self._names)}"
        self._names[name] = value
        if known is not None:
            self._known[known] = name
        return name

    def struct(self, node: Node) -> str:
        """The name of the object with the fields of a place; one for all roles that see the same fields."""
        known = tuple(node.fields)
        if known not in self._known:
            self._known[known] = self.constant(struct_of(node))
        return self._known[known]

    def answer(self, column: str, spec: Mask, value: str, source: str) -> str:
        """The source of a pure mask's answer; what is asked of a column's own variable is asked once for all roles."""
        # inside an object that may not be there, or an item of a list: asked where it stands
        if value[0] not in "xd" or not value[1:].isdigit():
            return source
        for other, same, variable in self._shared:
            if other == column and same == spec:
                return variable
        variable = f"m{len(self._shared)}"
        self._shared.append((column, spec, variable))
        self._answers.append(f"{variable} = {source}")
        return variable

    def new_item(self) -> str:
        """A variable for the items of a list."""
        self._lists += 1
        return f"e{self._lists}"

    def child(self, read: Node, at: str, name: str) -> str:
        """The source of a field of the object in variable ``at`` (the record itself if empty)."""
        number = list(read.fields).index(name)
        return f"{at}.f{number}" if at else f"x{number}"

    def value(self, column: str | None, source: str) -> str:
        """The source of a value read from a record, in the form columns have it, too."""
        return f"utc({source})" if self.is_moment(column) else source

    def is_moment(self, column: str | None) -> bool:
        """Whether a column holds moments, which are told in UTC."""
        return column is not None and self._schema[column].type == "datetime"

    def elsewhere(self, column: str) -> str:
        """The source of another column's value, from the top of the record."""
        if column in self._derived:
            return self._derived[column]
        read, at, guards = self._root, "", []
        for step in steps(column):
            at = self.child(read, at, step)
            read = read.fields[step]
            if read.leaf is None:
                guards.append(f"{at} is None")
        return f"(None if {' or '.join(guards)} else {self.value(column, at)})" if guards else at


class _Role:
    """The source of one role's record."""

    def __init__(self, writer: RecordWriter, view: RoleView, masks: dict[str, Running]) -> None:
        self._writer, self._view, self._masks = writer, view, masks

    def is_clear(self, node: Node, read: Node) -> bool:
        """Whether a place leaves exactly as it was read: all its parts are shown, and no others were read."""
        if node.leaf is not None:
            # moments leave in UTC, however they were written
            return node.leaf in self._view.shown and not self._writer.is_moment(node.leaf)
        if node.element is not None:
            return read.element is not None and self.is_clear(node.element, read.element)
        # in the same order, too: the object that was read is encoded as it is
        same = list(node.fields) == list(read.fields)
        return same and all(self.is_clear(below, read.fields[name]) for name, below in node.fields.items())

    def fields(self, node: Node, read: Node, at: str) -> str:
        """The source of an object; what is hidden in it is a constant."""
        parts: list[str] = []
        for name, below in node.fields.items():
            if self._view.is_hidden(below):
                parts.append(self._writer.constant(None if self._view.hidden == "null" else SUPPRESSED))
            elif below.leaf is not None and _is_constant(self._masks.get(below.leaf)):
                parts.append(self._writer.constant(self._masks[below.leaf].one(None)))
            elif below.leaf is not None and (made := self._writer.derived(below.leaf)) is not None:
                parts.append(self._leaf(below.leaf, made))
            else:
                parts.append(self._source(below, read.fields[name], self._writer.child(read, at, name)))
        return f"{self._writer.struct(node)}({', '.join(parts)})"

    def _source(self, node: Node, read: Node, source: str) -> str:
        if self.is_clear(node, read):
            return source
        if node.leaf is not None:
            return self._leaf(
                node.leaf,
                source if source[1:].isdigit() and source[0] == "x" else self._writer.value(node.leaf, source),
            )
        if node.element is not None:
            assert read.element is not None
            item = self._writer.new_item()
            inner = self._source(node.element, read.element, item)
            return f"(None if {source} is None else [{inner} for {item} in {source}])"
        return f"(None if {source} is None else {self.fields(node, read, source)})"

    def _leaf(self, column: str, value: str) -> str:
        mask = self._masks.get(column)
        if mask is None:
            return value
        if isinstance(mask, Constant):  # one answer for all: no need to ask
            answer = self._writer.constant(mask.value)
            return answer if mask.nulls else f"(None if {value} is None else {answer})"
        others = "".join(f", {self._writer.elsewhere(name)}" for name in mask.by)
        # a column repeats its values, and a look-up is cheaper than a mask
        if mask.pure and not mask.by and not mask.nulls and self._view.schema[column].type in KEPT:
            asked = f"(None if (w := {value}) is None else {self._writer.constant(Answers(mask.one))}[w])"
            return self._writer.answer(column, self._view.masks[column], value, asked)
        function = self._writer.constant(mask.one)
        if mask.nulls:
            return f"{function}({value}{others})"
        return f"(None if (w := {value}) is None else {function}(w{others}))"


def _is_constant(mask: Running | None) -> bool:
    # only if null is answered alike: then nothing need be read
    return isinstance(mask, Constant) and mask.nulls


class Answers(dict[Any, Any]):
    """What a pure mask has answered: most columns have few values, and looking costs less than asking.

    >>> kept = Answers(str.upper)
    >>> kept["a"], kept
    ('A', {'a': 'A'})
    """

    def __init__(self, one: Callable[[Any], Any]) -> None:
        self._one = one

    def __missing__(self, value: Any) -> Any:
        """Ask the mask, and keep the answer while there is room."""
        answer = self._one(value)
        # a column of ever new values must not fill the memory
        if len(self) < MOST_ANSWERS:
            self[value] = answer
        return answer
