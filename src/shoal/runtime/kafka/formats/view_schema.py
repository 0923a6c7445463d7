"""The schema of what a view publishes, derived from the policy: only what the role may see has a place in it.

A masked column has the type its mask makes; a column that a method generalizes, or that is hidden behind ``*``, is
text. Everything may be null.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from shoal.core.errors import InputError, PolicyError
from shoal.core.schema import Type
from shoal.policy.document import Policy
from shoal.policy.paths import Node
from shoal.streams.base import StreamMethod
from shoal.views.role_view import RoleView

Kind = Literal["int", "float", "bool", "str", "any"]
KINDS: dict[Type | None, Kind] = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "date": "str",
    "datetime": "str",
    None: "any",
}
AVRO: dict[Kind, list[str]] = {
    "int": ["long"],
    "float": ["double"],
    "bool": ["boolean"],
    "str": ["string"],
    "any": ["string", "long", "double", "boolean"],
}
NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class ViewSchema:
    """What one role's records look like: a tree of places, and the kind of value at each leaf."""

    def __init__(self, policy: Policy, role: str) -> None:
        view = RoleView.of(policy, role)
        method = policy.views[role].method
        if isinstance(method, StreamMethod) and method.published(policy.schema, [*view.shown, *view.masks]) is not None:
            raise PolicyError("curves are served as JSON", where=f"views.{role}.method", hint="source: format: json")
        promised = bool(policy.views[role].promises)
        self.role = role
        self.root = view.node()
        self.kinds: dict[str, Kind] = {}
        for column, made in view.outputs().items():
            generalized = promised and view.schema[column].role == "quasi"
            self.kinds[column] = "str" if generalized else KINDS[made]
        self._view = view
        self._check(self.root)

    def is_hidden(self, node: Node) -> bool:
        """Whether a place shows nothing: then its parts have no place of their own."""
        return self._view.is_hidden(node)

    def kind(self, node: Node) -> Kind | None:
        """The kind of a leaf; none for a place with parts."""
        if self.is_hidden(node):
            return "str"
        return self.kinds[node.leaf] if node.leaf is not None else None

    def fit(self, value: Any, node: Node | None = None) -> Any:
        """A decoded JSON value in the form the schema says; text where text is promised.

        ``InputError`` on a value of another type than declared: what is shown in clear has not been looked at before.
        """
        node = node or self.root
        kind = self.kind(node)
        if value is None:
            return value
        if kind == "any":
            return value if _is(value, (str, int, float)) else msgspec.json.encode(value).decode()
        if kind == "str":
            # generalized cells and stars are text, whatever the column held
            return value if isinstance(value, str) else str(value)
        if kind is not None:
            if not _is(value, {"int": int, "float": (int, float), "bool": bool}[kind], boolean=kind == "bool"):
                raise InputError(f"expected {kind}, found {type(value).__name__}", where=f"columns.{node.leaf}")
            return float(value) if kind == "float" else value
        if node.element is not None and isinstance(value, list):
            return [self.fit(item, node.element) for item in value]
        if node.element is None and isinstance(value, dict):
            return {name: self.fit(value.get(name), below) for name, below in node.fields.items()}
        raise InputError(f"expected parts, found {type(value).__name__}", where=f"columns.{next(node.leaves())}")

    def avro(self) -> dict[str, Any]:
        """As an Avro record."""
        made: dict[str, Any] = self._avro(self.root, _titled(self.role))
        return made

    def _avro(self, node: Node, name: str) -> Any:
        kind = self.kind(node)
        if kind is not None:
            return AVRO[kind]
        if node.element is not None:
            return [{"type": "array", "items": ["null", *_many(self._avro(node.element, f"{name}Item"))]}]
        fields = [
            {"name": f, "type": ["null", *_many(self._avro(below, f"{name}_{f}"))], "default": None}
            for f, below in node.fields.items()
        ]
        return {"type": "record", "name": name, "fields": fields}

    def _check(self, node: Node) -> None:
        for name, below in node.fields.items():
            if not NAME.match(name):
                raise PolicyError(
                    f"{name!r} cannot be a field of Avro or Protobuf",
                    where=f"views.{self.role}",
                    hint="use format: json, or rename the column",
                )
            self._check(below)
        if node.element is not None:
            self._check(node.element)


def _is(value: Any, kind: Any, *, boolean: bool = True) -> bool:
    """Whether a value has a type, and an integer room in 64 bits; a boolean counts as a number only if asked."""
    if isinstance(value, bool):
        return boolean
    return isinstance(value, kind) and (not isinstance(value, int) or -(2**63) <= value < 2**63)


def _many(kind: Any) -> list[Any]:
    return kind if isinstance(kind, list) else [kind]


def _titled(role: str) -> str:
    """A role as the name of a record.

    >>> _titled("night-shift")
    'Night_shift'
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", role)
    return (name if NAME.match(name) else f"_{name}").capitalize()
