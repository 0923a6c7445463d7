"""A view with promises on a table: masks first, then a method, which counts people by the unmasked subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import polars as pl

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import PolicyError
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.policy.document import Policy
from shoal.views.derived import refuse_sources_in_clear
from shoal.views.frames import FrameGate
from shoal.views.role_view import RoleView

BESIDE = "\x00subject"  # no file can have a column of this name


@dataclass(frozen=True)
class MaskedTable:
    """What a method gets: masked columns, the true subject beside them, and the schema that says so.

    >>> from shoal.policy.load import parse
    >>> policy = parse("columns: {name: identifier, age: quasi}\\nviews: {w: {show: [age]}}")
    >>> masked_table(policy, "w", pl.DataFrame({"name": ["F. Ott"], "age": [30]}), KeyRing()).frame.columns
    ['age']
    """

    frame: pl.DataFrame
    schema: Schema
    view: RoleView
    rows: pl.Series
    notes: tuple[str, ...] = ()

    def finish(self, released: pl.DataFrame, parts: Mapping[str, tuple[str, ...]] | None = None) -> pl.DataFrame:
        """The released frame with the hidden columns in their places; ``parts`` stand where their column stood."""
        if self.view.hidden == "drop":
            return released
        value = SUPPRESSED if self.view.hidden == "star" else None
        hidden = [
            pl.lit(value, dtype=pl.String).alias(c)
            for c in self.view.hides
            if c not in released.columns and c not in (parts or {})
        ]
        places = ((parts or {}).get(c, (c,)) for c in self.view.schema.columns if c != BESIDE)
        return released.with_columns(hidden).select([name for place in places for name in place])


def masked_table(policy: Policy, role: str, frame: pl.DataFrame, keys: KeyRing | None = None) -> MaskedTable:
    """The masked table of a role, ready for a method.

    >>> from shoal.policy.load import parse
    >>> views = "{ward: {show: [age], promises: [{use: k-anonymity, k: 2}]}}"
    >>> policy = parse(f"{{columns: {{pid: subject, age: quasi}}, views: {views}}}")
    >>> made = masked_table(policy, "ward", pl.DataFrame({"pid": ["a", "b"], "age": [30, 31]}), KeyRing())
    >>> made.frame.columns == ["age", BESIDE], made.finish(made.frame.select("age")).columns
    (True, ['pid', 'age'])
    """
    view = RoleView.of(policy, role)
    keys = KeyRing.load() if keys is None else keys
    if any("." in c or "[" in c for c in [*view.shown, *view.masks] if c not in frame.columns):
        raise PolicyError("a view with promises needs flat columns", where=f"views.{role}")
    if view.sample is not None:
        raise PolicyError("a view with promises shows everybody, not a sample", where=f"views.{role}.sample")
    refuse_sources_in_clear(view)
    gate = FrameGate(view, frame.schema, keys)
    viewed = gate.apply(frame)
    data = viewed.data.drop(view.hides, strict=False)
    columns = {c: _column(view, c) for c in data.columns}
    if viewed.subjects is not None:
        # people are counted by who they are, not by the pseudonym a role sees: two people may share one, or one have
        # two
        data = data.with_columns(viewed.subjects.alias(BESIDE))
        columns[BESIDE] = Column("subject")
    return MaskedTable(data, Schema(columns), view, viewed.rows, tuple(gate.notes(frame)))


def _column(view: RoleView, name: str) -> Column:
    declared = view.schema[name]
    if declared.role in ("subject", "identifier"):
        if name in view.shown:
            raise PolicyError(
                f"the column {name!r} names people and is shown in clear in a view with promises",
                where=f"views.{view.role}.show",
                hint="mask it, or do not show it",
            )
        # what its mask left stands beside the groups: the adversary judges what it links
        return Column("plain")
    if name in view.masks and declared.role == "quasi":
        # what a mask made of a value is no longer a leaf of its hierarchy
        return msgspec.structs.replace(declared, hierarchy=Suppress(), type=None, derive=None)
    return msgspec.structs.replace(declared, derive=None)  # it is made: from here on it is a column like any other
