"""A policy as values: the columns, and per view (role) what is shown, masked, promised, and by which method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from shoal.core.errors import PolicyError
from shoal.core.schema import Schema
from shoal.core.spec import Spec
from shoal.masks.base import Mask
from shoal.policy.paths import matching
from shoal.promises.base import Promise

# risks beside the promises that a policy may accept, and what each means; see shoal.release.adversary
WAIVERS = {
    "linked-rows": "a column links the rows of one person, and together they may fit fewer people than promised",
    "unique-plain": "a plain column has a value of its own for most people",
    "earlier-release": "together with an earlier release, people stand in smaller or less diverse groups than promised",
    "order": "rows stand in the order of the input, which tells whose row is whose",
}


class View(msgspec.Struct, frozen=True):
    """What one role sees: an allow-list. What is not shown is suppressed, also columns that appear later.

    ``hidden`` says how a suppressed column reads: ``*``, null, or not at all. ``service`` holds what a stream manager
    needs (topic, partitions, retention), untouched. ``waive`` lists risks beside the promises that somebody accepted;
    every report shows them. ``sample`` is the share of people whose rows are shown at all.

    >>> View("ward", ("visits",)).shows("visits[*].ward"), View("ward", ("age",)).shows("name")
    (True, False)
    """

    name: str
    show: tuple[str, ...] | Literal["everything"]
    users: tuple[str, ...] = ()
    masks: Mapping[str, tuple[Mask, ...]] = {}
    promises: tuple[Promise, ...] = ()
    method: Spec | None = None
    service: Mapping[str, Any] = {}
    hidden: Literal["star", "null", "drop"] = "star"
    waive: tuple[str, ...] = ()
    sample: float | None = None

    def shows(self, column: str) -> bool:
        """Whether this role sees anything of a column."""
        return self.show == "everything" or any(column in matching(path, [column]) for path in self.show)


class Policy(msgspec.Struct, frozen=True):
    """One file that a person can read.

    >>> from shoal.core.schema import Column
    >>> policy = Policy("visits", Schema({"age": Column("quasi", type="int")}), {"all": View("all", "everything")})
    >>> policy.view().name, policy.types()
    ('all', {'age': 'int'})
    """

    dataset: str
    schema: Schema
    views: Mapping[str, View] = {}
    source: Mapping[str, Any] = {}
    path: str = ""

    def view(self, name: str | None = None) -> View:
        """A view by name; without one, the only one, or the only one that promises something."""
        if name is not None:
            if name not in self.views:
                raise PolicyError(
                    f"there is no view {name!r}", where=self.path, hint=f"one of: {', '.join(self.views) or 'none'}"
                )
            return self.views[name]
        candidates = [v for v in self.views.values() if v.promises] or list(self.views.values())
        if len(candidates) != 1:
            raise PolicyError(
                f"expected one view to choose, found {len(candidates)}",
                where=self.path,
                hint=f"name one with --view: {', '.join(self.views) or 'the policy has none'}",
            )
        return candidates[0]

    def types(self) -> dict[str, str]:
        """The declared column types, with the form of their texts after a colon."""
        return self.schema.types()

    def exact(self, view: View) -> list[str]:
        """The columns that leave a view as they stand, byte for byte: shown, not masked, not grouped, of no type."""
        # groups and conditions compare values: there a number is a number however it is written
        compared = view.promises or any(m.use == "conditional" for many in view.masks.values() for m in many)
        valued = ("quasi", "sensitive") if compared else ()
        return [
            name
            for name, column in self.schema.given.items()
            if column.role not in valued and column.type is None and view.shows(name) and name not in view.masks
        ]
