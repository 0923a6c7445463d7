"""What each role sees, as a table: rows are columns, columns are roles."""

from __future__ import annotations

import msgspec

from shoal.core.cells import SUPPRESSED
from shoal.core.schema import Column, Type
from shoal.policy.document import Policy, View
from shoal.views.role_view import RoleView

LINKS = "⇄"


class Sight(msgspec.Struct, frozen=True):
    """What a role sees of a column, as what type, and how that can be attacked."""

    text: str
    type: Type | None = None
    attack: str = ""
    reversible: bool = False
    links: list[str] = []  # the roles whose form of the column can be compared with this one

    @property
    def marked(self) -> str:
        """What is seen, with a mark if other roles can compare it with theirs."""
        return f"{self.text} {LINKS}" if self.links else self.text


class Explained(msgspec.Struct, frozen=True):
    """The whole policy, readable."""

    columns: dict[str, str]  # name: role of the column
    views: dict[str, dict[str, Sight]]
    promises: dict[str, list[str]]
    users: dict[str, list[str]]
    samples: dict[str, float] = {}  # the share of people a view shows, if not everybody

    def linkable(self) -> list[tuple[str, list[str]]]:
        """The columns that two or more roles can compare record by record, and these roles."""
        out = []
        for name in self.columns:
            roles = [role for role, seen in self.views.items() if name in seen and seen[name].links]
            out += [(name, roles)] if roles else []
        return out

    def rows(self) -> list[list[str]]:
        """The table, with a header."""
        header = ["column", "is", *self.views]
        body = [
            [name, role, *(seen[name].marked if name in seen else "" for seen in self.views.values())]
            for name, role in self.columns.items()
        ]
        kept = ["promises", "", *("; ".join(self.promises[v]) or "none" for v in self.views)]
        drawn = (
            f"{100 * self.samples[v]:.4g} % of the people" if v in self.samples else "everybody" for v in self.views
        )
        return [header, *body, *([["sample", "", *drawn]] if self.samples else []), kept]


def explain(policy: Policy) -> Explained:
    """What each role sees; types are known before any record is.

    >>> from shoal.policy.load import parse
    >>> policy = parse("{columns: {name: identifier, age: quasi}, views: {ward: {show: [age]}}}")
    >>> [(column, sight.text) for column, sight in explain(policy).views["ward"].items()]
    [('name', '*'), ('age', 'shown')]
    """
    views = _linked(policy, {name: _sights(policy, view) for name, view in policy.views.items()})
    promises = {name: [_promise(p) for p in view.promises] for name, view in policy.views.items()}
    users = {name: list(view.users) for name, view in policy.views.items()}
    roles = {name: _kind(column) for name, column in policy.schema.columns.items()}
    samples = {name: view.sample for name, view in policy.views.items() if view.sample is not None}
    return Explained(roles, views, promises, users, samples)


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


def _linked(policy: Policy, views: dict[str, dict[str, Sight]]) -> dict[str, dict[str, Sight]]:
    """With the roles that can compare a column of theirs: it tells something, and no key stands between the two, or
    the value stays near to what it was.
    """
    open_to: dict[str, set[str]] = {}
    for role in views:
        resolved = RoleView.of(policy, role)
        secret = {c for c, m in resolved.masks.items() if m.keyed and not (m.near or getattr(m, "linkable", False))}
        constant = {c for c, m in resolved.masks.items() if m.use == "suppress"}
        open_to[role] = {*resolved.shown, *resolved.masks} - secret - constant
    return {
        role: {
            name: msgspec.structs.replace(
                sight, links=[other for other in views if other != role and name in open_to[role] & open_to[other]]
            )
            for name, sight in seen.items()
        }
        for role, seen in views.items()
    }


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
