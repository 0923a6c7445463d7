"""Nested fields: ``a.b`` is a field of an object, ``a[*].b`` a field of every object in a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from shoal.core.errors import PolicyError

EACH = "[*]"


@dataclass
class Node:
    """A place in a record: an object with ``fields``, a list of ``element``, or the value of the column ``leaf``.

    >>> tree(["visits[*].ward"]).fields["visits"].element.fields["ward"].leaf
    'visits[*].ward'
    """

    fields: dict[str, Node] = field(default_factory=dict)
    element: Node | None = None
    leaf: str | None = None

    def leaves(self) -> Iterator[str]:
        """The columns at and below this place."""
        if self.leaf is not None:
            yield self.leaf
        for below in [*self.fields.values(), *([self.element] if self.element else [])]:
            yield from below.leaves()


def steps(path: str, where: str | None = None) -> list[str]:
    """The steps of a path.

    >>> steps("visits[*].ward.name")
    ['visits', '[*]', 'ward', 'name']
    """
    out: list[str] = []
    for part in path.split("."):
        name, lists = part, 0
        while name.endswith(EACH):
            name, lists = name[: -len(EACH)], lists + 1
        if not name or "[" in name or "]" in name:
            raise PolicyError(
                f"{path!r} is not the path of a field",
                where=where,
                hint="for example `insurance.number`, `visits[*].ward`",
            )
        out += [name, *[EACH] * lists]
    return out


def tree(paths: Iterable[str], where: str = "columns") -> Node:
    """All declared columns as one tree.

    >>> [*tree(["pid", "visits[*].ward"]).leaves()]
    ['pid', 'visits[*].ward']
    """
    root = Node()
    for path in paths:
        at = root
        for step in steps(path, f"{where}.{path}"):
            at = _below(at, step, path, where)
        # a value cannot have parts as well: masking one would leave the other
        if at.fields or at.element or at.leaf is not None:
            raise _clash(path, where)
        at.leaf = path
    return root


def _below(at: Node, step: str, path: str, where: str) -> Node:
    if at.leaf is not None or (at.fields and step == EACH) or (at.element is not None and step != EACH):
        raise _clash(path, where)
    if step == EACH:
        at.element = at.element or Node()
        return at.element
    return at.fields.setdefault(step, Node())


def _clash(path: str, where: str) -> PolicyError:
    return PolicyError(
        "the same field is declared both as a value and as something with parts",
        where=f"{where}.{path}",
        hint="declare either the whole field or its parts",
    )


def matching(path: str, declared: Iterable[str]) -> list[str]:
    """The declared columns a path means: itself, or everything below it.

    >>> matching("visits", ["pid", "visits[*].ward", "visits[*].at"])
    ['visits[*].ward', 'visits[*].at']
    """
    columns = list(declared)
    if path in columns:
        return [path]
    # with the mark behind it: `visit` does not mean the columns of `visits`
    return [c for c in columns if c.startswith((f"{path}.", f"{path}{EACH}"))]
