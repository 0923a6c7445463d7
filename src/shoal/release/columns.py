"""The columns a person named in the short forms, as a schema: names, or a mapping of names to hierarchies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.core.hierarchy import HIERARCHIES, Hierarchy
from shoal.core.originals import register
from shoal.core.schema import Schema
from shoal.release.wishes import Wishes


def schema_of(wishes: Wishes) -> Schema:
    """A schema from the short forms: names, or a mapping of names to hierarchies.

    >>> schema_of(Wishes({"quasi": {"age": "range"}, "sensitive": "diag"})).quasi
    ['age']
    """
    schema = wishes.take("schema")
    if schema is not None:
        return schema  # type: ignore[no-any-return]
    quasi = wishes.take("quasi", ())
    named = quasi if isinstance(quasi, Mapping) else dict.fromkeys([quasi] if isinstance(quasi, str) else quasi)
    return Schema.build(
        quasi={name: as_hierarchy(value, f"column {name!r}") for name, value in named.items()},
        sensitive=list(wishes.take("sensitive", ())),
        plain=list(wishes.take("plain", ())),
        subject=wishes.take("subject"),
        weights=wishes.take("weights"),
        losses=wishes.take("losses"),
        at_most=wishes.take("at_most"),
    )


def as_hierarchy(value: Hierarchy | str | Mapping[str, Any] | None, where: str) -> Hierarchy | None:
    """A hierarchy from a spec, a name, a mapping, or the path of a tree's file.

    >>> as_hierarchy({"use": "prefix", "length": 5}, "zip").use, as_hierarchy(None, "sex")
    ('prefix', None)
    """
    if value is None or isinstance(value, Hierarchy):
        return value
    # a name wins: a file called `suppress` in the working folder must not change what it means
    known = isinstance(value, str) and value in HIERARCHIES.names()
    if isinstance(value, str) and not known and (value.endswith(".csv") or Path(value).is_file()):
        from shoal.core.hierarchy.tree import Tree

        register(value)
        return Tree(file=value)
    return HIERARCHIES.decode(value, where)
