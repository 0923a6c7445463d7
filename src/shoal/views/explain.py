"""What each role sees, as a table: rows are columns, columns are roles."""

from __future__ import annotations

import msgspec

from shoal.core.cells import SUPPRESSED
from shoal.core.schema import Column, Type
from shoal.policy.document import Policy, View
from shoal.views.role_view import RoleView


class Sight(msgspec.Struct, frozen=True):
    """What a role sees of a column, as what type, and how that can be attacked."""

    text: str
    type: Type | None = None
    attack: str = ""
    reversible: bool = False


class Explained(msgspec.Struct, frozen=True):
    """The whole policy, readable."""

    columns: dict[str, str]  # name: role of the column
    views: dict[str, dict[str, Sight]]
    promises: dict[str, list[str]]
    users: dict[str, list[str]]

    def rows(self) -> list[list[str]]:
        """The table, with a header."""
        header = ["column", "is", *self.views]
        body = [
            [name, role, *(seen[name].text if name in seen else "" for seen in self.views.values())]
            for name, role in self.columns.items()
        ]
        kept = ["promises", "", *("; ".join(self.promises[v]) or "none" for v in self.views)]
        return [header, *body, kept]


def explain(policy: Policy) -> Explained:
    """What each role sees; types are known before any record is.

    >>> from shoal.policy.load import parse
    >>> policy = parse("{columns: {name: identifier, age: quasi}, views: {ward: {show: [age]}}}")
    >>> [(column, sight.text) for column, sight in explain(policy).views["ward"].items()]
    [('name', '*'), ('age', 'shown')]
    """
    views = {name: _sights(policy, view) for name, view in policy.views.items()}
    promises = {name: [_promise(p) for p in view.promises] for name, view in policy.views.items()}
    users = {name: list(view.users) for name, view in policy.views.items()}
    roles = {name: _kind(column) for name, column in policy.schema.columns.items()}
    return Explained(roles, views, promises, users)


def _sights(policy: Policy, view: View) -> dict[str, Sight]:
    resolved = RoleView.of(policy, view.name)
    out: dict[str, Sight] = {}
    for name, kind in resolved.outputs().items():
        if name in resolved.masks:
            mask = resolved.masks[name]
            out[name] = Sight(mask.describe(), kind, mask.attack, mask.reversible)
        elif name not in resolved.shown:
            out[name] = Sight(SUPPRESSED if view.hidden == "star" else "null", kind)
        elif view.promises and policy.schema[name].role == "quasi":
            out[name] = Sight("generalized", "str")
        else:
            out[name] = Sight("shown", kind)
    return out


def _kind(column: Column) -> str:
    derive = column.derive
    return column.role if derive is None else f"{column.role}, {derive.use} of {' and '.join(derive.sources)}"


def _promise(promise: msgspec.Struct) -> str:
    """Its name, and what is not as by default."""
    words = []
    for field in msgspec.structs.fields(promise):
        value = getattr(promise, field.name)
        if value != field.default:
            words.append(f"{field.name} {value:g}" if isinstance(value, float) else f"{field.name} {value}")
    name = str(promise.__struct_config__.tag)
    return f"{name} ({', '.join(words)})" if words else name
