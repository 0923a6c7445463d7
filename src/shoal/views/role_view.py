"""A view: what one role sees of every record. An allow-list: what is not shown is suppressed.

:class:`RoleView` says for every declared column whether it is shown, masked or hidden. It is compiled twice, with the
same results: to one function over JSON records (:mod:`shoal.views.records`) and to polars expressions over columns
(:mod:`shoal.views.frames`). Columns that are not declared never leave, in either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from shoal.core.errors import PolicyError, ShoalError, UsageError
from shoal.core.keys import KeyRing
from shoal.core.schema import Schema, Type
from shoal.masks.base import Context, Mask, Running
from shoal.masks.chain import Chain
from shoal.masks.window_mask import RunningWindow, WindowMask
from shoal.policy.document import Policy
from shoal.policy.paths import EACH, Node, matching, tree

Hidden = Literal["star", "null", "drop"]


@dataclass(frozen=True)
class RoleView:
    """One role's view, resolved: ``shown`` in clear, ``masks`` by column; every other declared column is hidden.

    ``hidden`` says how: ``*`` in its place, null, or not there at all. ``sample`` is the share of people shown at all.

    >>> from shoal.core.schema import Column
    >>> schema = Schema({"pid": Column("subject"), "name": Column("identifier"), "diag": Column("sensitive")})
    >>> RoleView.resolve("ward", schema, ["diag"]).hides
    ['pid', 'name']
    """

    role: str
    schema: Schema
    shown: tuple[str, ...]
    masks: Mapping[str, Mask] = field(default_factory=dict)
    hidden: Hidden = "star"
    folder: Path = field(default_factory=Path)
    sample: float | None = None

    @classmethod
    def resolve(
        cls,
        role: str,
        schema: Schema,
        show: Sequence[str] | Literal["everything"],
        masks: Mapping[str, Mask] | None = None,
        *,
        hidden: Hidden = "star",
        folder: Path | None = None,
        sample: float | None = None,
    ) -> RoleView:
        """A view from what a policy says; names that mean nothing are errors, never skipped."""
        where = f"views.{role}"
        declared = list(schema.columns)
        # a field that is declared as a value and as an object with parts is refused here
        tree(declared)
        listed = declared if show == "everything" else [c for p in show for c in _meant(p, declared, f"{where}.show")]
        chosen: dict[str, Mask] = {}
        for path, mask in (masks or {}).items():
            for column in _meant(path, declared, f"{where}.masks"):
                if column not in listed:
                    raise PolicyError(
                        f"the column {column!r} is masked but not shown",
                        where=f"{where}.masks.{path}",
                        hint="a masked column must be listed in `show`, too",
                    )
                chosen[column] = mask
        # in the order of the schema, not of `show`: two policies that say the same make the same record, byte for byte
        shown = tuple(c for c in declared if c in set(listed) and c not in chosen)
        view = cls(role, schema, shown, chosen, hidden, folder or Path(), sample)
        view._check()
        return view

    @classmethod
    def of(cls, policy: Policy, role: str) -> RoleView:
        """The view of a role, as a policy says it."""
        view = policy.view(role)
        masks = {column: many[0] if len(many) == 1 else Chain(many) for column, many in view.masks.items() if many}
        folder = Path(policy.path).parent if policy.path else Path()
        return cls.resolve(role, policy.schema, view.show, masks, hidden=view.hidden, folder=folder, sample=view.sample)

    @property
    def hides(self) -> list[str]:
        """The declared columns this role does not see."""
        return [c for c in self.schema.columns if c not in self.shown and c not in self.masks]

    @property
    def windows(self) -> dict[str, WindowMask]:
        """The masks that need a window of records."""
        return {c: m for c, m in self.masks.items() if isinstance(m, WindowMask)}

    def context(self, column: str, keys: KeyRing, types: Mapping[str, Type | None] | None = None) -> Context:
        """Where a mask of this view works."""
        declared = {name: c.type for name, c in self.schema.columns.items()}
        known = {**declared, **(types or {})}
        time = next(iter(self.schema.of("time")), None)
        return Context(
            column=column,
            type=known[column],
            role=self.role,
            keys=keys,
            hierarchy=self.schema[column].hierarchy,
            subject=self.schema.subject,
            time=time,
            unit=self.schema[time].unit if time else "s",
            types=known,
            folder=self.folder,
        )

    def start(self, keys: KeyRing, types: Mapping[str, Type | None] | None = None) -> dict[str, Running]:
        """All masks at work; the first that cannot be says where."""
        out: dict[str, Running] = {}
        for column, mask in self.masks.items():
            where = f"views.{self.role}.masks.{column}"
            try:
                out[column] = mask.start(self.context(column, keys, types))
            # a mask knows neither role nor column: only here can the error say where the policy is wrong
            except ShoalError as error:
                raise PolicyError(error.message, where=where, hint=error.hint) from None
            for name in out[column].by:
                # a list has many values per record: which of them would decide how this one is masked?
                if name not in self.schema.columns or EACH in name:
                    raise PolicyError(
                        f"the mask reads {name!r}, which is no declared single value",
                        where=where,
                        hint=f"declared: {', '.join(self.schema.columns)}",
                    )
            if isinstance(out[column], RunningWindow) and EACH in column:
                raise PolicyError("a window mask cannot work inside lists", where=where)
        return out

    def outputs(self) -> dict[str, Type | None]:
        """The type of every column of the view, as far as it is declared; known before any record is seen."""
        # a star is text, whatever the column held: a number here would promise readers something that never comes
        hidden: dict[str, Type | None] = dict.fromkeys(self.hides, "str") if self.hidden != "drop" else {}
        made = {c: m.output(self.schema[c].type) for c, m in self.masks.items()}
        plain = {c: self.schema[c].type for c in self.shown}
        every = {**hidden, **made, **plain}
        return {c: every[c] for c in self.schema.columns if c in every}

    def node(self) -> Node:
        """The tree of what this view publishes."""
        keep = [c for c in self.schema.columns if self.hidden != "drop" or c not in self.hides]
        return tree(keep)

    def is_hidden(self, node: Node) -> bool:
        """Whether nothing at or below a place is seen: then not even its shape is."""
        return all(c not in self.shown and c not in self.masks for c in node.leaves())

    def _check(self) -> None:
        for column, mask in self.masks.items():
            try:
                # asked without keys or data, so that a mask on the wrong type is found when the policy is read
                mask.output(self.schema[column].type)
            except UsageError as error:
                where = f"views.{self.role}.masks.{column}"
                raise PolicyError(error.message, where=where, hint=error.hint) from None


def _meant(path: str, declared: Sequence[str], where: str) -> list[str]:
    found = matching(path, declared)
    if not found:
        import difflib

        near = difflib.get_close_matches(path, declared, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"declared: {', '.join(declared)}"
        raise PolicyError(f"there is no column {path!r}", where=where, hint=hint)
    return found
