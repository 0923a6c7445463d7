"""Specs are values: frozen structs whose fields are the parameters and whose tag is their name in a policy.

A *family* (hierarchies, promises, masks, methods) is the set of specs that may stand in one place. Its members
are listed by name and loaded when first asked for, so that naming a family costs nothing; members of other
people's packages join by the entry point group ``shoal.<family>`` and obey the same laws.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cached_property, reduce
from importlib.metadata import entry_points
from operator import or_
from typing import Any, Generic, TypeVar, cast

import msgspec

from shoal.core.errors import PolicyError


class Spec(msgspec.Struct, frozen=True, tag_field="use", forbid_unknown_fields=True):
    """Parameters of something that can be named in a policy. Subclasses set ``tag="its-name"``.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> Prefix(length=5).use
    'prefix'
    """

    @property
    def use(self) -> str:
        """The name in a policy."""
        return str(self.__struct_config__.tag)


S = TypeVar("S", bound=Spec)


class Family(Generic[S]):
    """Specs that may stand in the same place of a policy, by name.

    >>> from shoal.core.hierarchy import HIERARCHIES
    >>> HIERARCHIES.decode({"use": "prefix", "length": 5}, where="columns.zip.hierarchy")
    Prefix(length=5, words=False)
    """

    def __init__(self, name: str, package: str, members: Mapping[str, str]) -> None:
        self.name = name
        self._package = package
        self._members = dict(members)

    @property
    def noun(self) -> str:
        """What a member is called in a sentence."""
        return self.name.replace("_", " ")

    def names(self) -> list[str]:
        """The names of all members, those of other packages included."""
        return sorted({*self._members, *(e.name for e in self._plugins)})

    def get(self, name: str, where: str | None = None) -> type[S]:
        """The spec class called ``name``."""
        if name in self._members:
            module, _, attribute = self._members[name].partition(":")
            return cast(type[S], getattr(importlib.import_module(f"{self._package}.{module}"), attribute))
        for plugin in self._plugins:
            if plugin.name == name:
                return cast(type[S], plugin.load())
        raise PolicyError(
            f"there is no {self.noun} called {name!r}", where=where, hint=f"one of: {', '.join(self.names())}"
        )

    def classes(self) -> list[type[S]]:
        """All member classes (this loads them)."""
        return [self.get(name) for name in self.names()]

    def union(self) -> Any:
        """The type that decodes any member, for schemas."""
        return reduce(or_, self.classes())

    def decode(self, value: Any, where: str | None = None) -> S:
        """A member from plain data: its name alone, or a mapping with ``use`` and parameters."""
        if isinstance(value, Spec):
            return cast(S, value)
        if isinstance(value, str):
            value = {"use": value}
        if not isinstance(value, Mapping) or not isinstance(value.get("use"), str):
            raise PolicyError(
                f"expected the name of a {self.noun} or a mapping with `use`, found {type(value).__name__}",
                where=where,
                hint=f"for example {{use: {self.names()[0]}}}",
            )
        kind = self.get(value["use"], where)
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            fields = ", ".join(f.name for f in msgspec.structs.fields(kind)) or "none"
            raise PolicyError(str(error), where=where, hint=f"{value['use']} takes: {fields}") from None

    @cached_property
    def _plugins(self) -> list[Any]:  # looking through all installed packages takes longer than a small release
        return list(entry_points(group=f"shoal.{self.name}"))
