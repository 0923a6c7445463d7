"""Writes the function behind :class:`shoal.views.records.RecordViews`.

The generated source holds positions only, never a name or a value of a policy: those are constants it is given.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence, Set
from typing import Annotated, Any

import msgspec

from shoal.core.cells import SUPPRESSED
from shoal.core.schema import Schema, Type
from shoal.masks.base import Running
from shoal.masks.suppress import Constant
from shoal.policy.paths import Node, steps, tree
from shoal.views.role_view import RoleView

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
TYPES: dict[Type | None, Any] = {
    "int": Whole | None,
    "float": float | None,
    "str": str | None,
    "bool": bool | None,
    "date": datetime.date | None,
    "datetime": datetime.datetime | None,
    None: str | int | float | bool | None,
}
NULL = msgspec.Raw(b"null")
KEPT: tuple[Type, ...] = ("int", "str")  # types whose equal values are the same value: 1.0 and True equal 1
MOST = 65_536  # answers kept of one mask
Part = bytes | str  # a constant, or the source of an expression that yields bytes


def record_type(node: Node, schema: Schema, raw: Set[str] = frozenset(), *, root: bool = True) -> Any:
    """The type a place is decoded to, columns in ``raw`` not at all; fields are numbered, their names are data."""
    if node.leaf is not None:
        return msgspec.Raw if node.leaf in raw else TYPES[schema[node.leaf].type]
    if node.element is not None:
        return list[record_type(node.element, schema, raw, root=False)] | None  # type: ignore[misc]
    kinds = [record_type(below, schema, raw, root=False) for below in node.fields.values()]
    fields = [(f"f{at}", kind, NULL if kind is msgspec.Raw else None) for at, kind in enumerate(kinds)]
    rename = {f"f{at}": name for at, name in enumerate(node.fields)}
    made = msgspec.defstruct("Record", fields, rename=rename, gc=False)
    return made if root else made | None


class RecordWriter:
    """What to read of a record, and per role what to join."""

    def __init__(self, views: Sequence[RoleView], masks: Sequence[dict[str, Running]]) -> None:
        self._views, self._masks = views, masks
        self._schema = views[0].schema
        self._shown = {c for v in views for c in v.shown}
        # a constant needs no reading, but a part of an object needs to know whether there is one
        working = {c for m in masks for c, r in m.items() if not _is_constant(r) or len(steps(c)) > 1}
        reads = {name for m in masks for r in m.values() for name in r.by}
        self._decoded = working | reads
        self._root = tree(c for c in self._schema.columns if c in self._shown | self._decoded)
        self._names: dict[str, Any] = {"join": b"".join, "comma": b",".join, "en": msgspec.json.Encoder().encode}
        self._names |= {"null": b"null"}
        self._lists = 0

    def function(self) -> Callable[[bytes], tuple[bytes, ...]]:
        """The compiled function: a record's bytes to one record per role."""
        self._names["de"] = msgspec.json.Decoder(record_type(self._root, self._schema, self._shown)).decode
        lines = ["def views(record):", "o = de(record)"]
        for at, below in enumerate(self._root.fields.values()):
            lines.append(f"x{at} = o.f{at}")
            if below.leaf in self._shown & self._decoded:
                lines.append(f"y{at} = {self._decoder(below.leaf)}(x{at})")
        outs = []
        for view, masks in zip(self._views, self._masks, strict=True):
            outs.append(self.join(_Role(self, view, masks).fields(view.node(), self._root, "")))
        source = "\n ".join([*lines, f"return ({', '.join(outs)},)"])
        exec(compile(source, "<view>", "exec"), self._names)
        return self._names["views"]  # type: ignore[no-any-return]

    def constant(self, value: Any) -> str:
        """A name the generated source knows a value by."""
        name = f"k{len(self._names)}"
        self._names[name] = value
        return name

    def new_item(self) -> str:
        """A variable for the items of a list."""
        self._lists += 1
        return f"e{self._lists}"

    def child(self, read: Node, at: str, name: str) -> str:
        """The source of a field of the object in variable ``at`` (the record itself if empty)."""
        number = list(read.fields).index(name)
        return f"{at}.f{number}" if at else f"x{number}"

    def value(self, column: str, source: str) -> str:
        """The source of a decoded value: where a role sees the bytes, they are decoded beside."""
        if column not in self._shown:
            return source
        return f"y{source[1:]}" if source[0] == "x" and "." not in source else f"{self._decoder(column)}({source})"

    def elsewhere(self, column: str) -> str:
        """The source of another column's value, from the top of the record."""
        read, at, guards = self._root, "", []
        for step in steps(column):
            at = self.child(read, at, step)
            read = read.fields[step]
            if read.leaf is None:
                guards.append(f"{at} is None")
        source = self.value(column, at)
        return f"(None if {' or '.join(guards)} else {source})" if guards else source

    def _decoder(self, column: str | None) -> str:
        assert column is not None
        return self.constant(msgspec.json.Decoder(TYPES[self._schema[column].type]).decode)

    def join(self, parts: Sequence[Part]) -> str:
        """The source that joins parts; neighbouring constants become one."""
        merged: list[Part] = []
        for part in parts:
            if isinstance(part, bytes) and merged and isinstance(merged[-1], bytes):
                merged[-1] += part
            else:
                merged.append(part)
        items = [self.constant(p) if isinstance(p, bytes) else p for p in merged]
        return f"join(({', '.join(items)},))"


class _Role:
    """The parts of one role's record."""

    def __init__(self, writer: RecordWriter, view: RoleView, masks: dict[str, Running]) -> None:
        self._writer, self._view, self._masks = writer, view, masks

    def fields(self, node: Node, read: Node, at: str) -> list[Part]:
        parts: list[Part] = []
        for number, (name, below) in enumerate(node.fields.items()):
            parts.append((b"," if number else b"{") + msgspec.json.encode(name) + b":")
            if self._view.is_hidden(below):
                parts.append(msgspec.json.encode(None if self._view.hidden == "null" else SUPPRESSED))
            elif below.leaf is not None and _is_constant(self._masks.get(below.leaf)):
                parts.append(msgspec.json.encode(self._masks[below.leaf].one(None)))
            else:
                parts.append(self._place(below, read.fields[name], self._writer.child(read, at, name)))
        return [*parts, b"}" if node.fields else b"{}"]

    def _place(self, node: Node, read: Node, source: str) -> str:
        if node.leaf is not None:
            return self._leaf(node.leaf, source)
        if node.element is not None:
            assert read.element is not None
            item = self._writer.new_item()
            inner = self._place(node.element, read.element, item)
            return f"(null if {source} is None else b'[' + comma([{inner} for {item} in {source}]) + b']')"
        return f"(null if {source} is None else {self._writer.join(self.fields(node, read, source))})"

    def _leaf(self, column: str, source: str) -> str:
        mask = self._masks.get(column)
        if mask is None:
            return source
        value = self._writer.value(column, source)
        if isinstance(mask, Constant):  # one answer for all: no need to ask, or to write it twice
            answer = self._writer.constant(msgspec.json.encode(mask.value))
            return answer if mask.nulls else f"(null if {value} is None else {answer})"
        others = "".join(f", {self._writer.elsewhere(name)}" for name in mask.by)
        if mask.pure and not mask.by and not mask.nulls and self._view.schema[column].type in KEPT:
            answers = Answers(mask.one)
            known, ask = self._writer.constant(answers.get), self._writer.constant(answers.ask)
            return f"(null if (w := {value}) is None else {known}(w) or {ask}(w))"
        function = self._writer.constant(mask.one)
        if mask.nulls:
            return f"en({function}({value}{others}))"
        if value.isidentifier():
            return f"(null if {value} is None else en({function}({value}{others})))"
        return f"(null if (w := {value}) is None else en({function}(w{others})))"


def _is_constant(mask: Running | None) -> bool:
    return isinstance(mask, Constant) and mask.nulls


class Answers(dict[Any, bytes]):
    """What a pure mask has answered, as JSON: most columns have few values, and looking costs less than asking."""

    def __init__(self, one: Callable[[Any], Any]) -> None:
        self._one = one
        self._encode = msgspec.json.Encoder().encode

    def ask(self, value: Any) -> bytes:
        """Ask the mask, and keep the answer while there is room."""
        answer = self._encode(self._one(value))
        if len(self) < MOST:
            self[value] = answer
        return answer
