"""Every published column: what it is, how it was generalized or masked, what it still tells, and what it lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
import polars as pl

from shoal.core.schema import Schema
from shoal.core.table import hierarchy_for
from shoal.measures.loss import Loss
from shoal.promises.base import Promise

NEARLY_ALL = 0.95  # of the detail of a column: beyond, a person should hear why
IN_CLEAR = ("plain", "time", "subject", "identifier")


class Published(msgspec.Struct, frozen=True):
    """One published column. ``alone`` counts rows whose value no other row has; ``loss`` is of quasi columns only, and
    methods minimized it times ``weight``. ``in_crowd``: a promise that is kept says how many others each of its values
    may stand for.

    >>> Published("note", "plain", None, 3, 3, None).singles_out
    True
    """

    name: str
    role: str
    hierarchy: str | None
    distinct: int
    alone: int
    loss: float | None
    mask: str | None = None
    hint: str = ""
    weight: float = 1.0
    in_crowd: bool = False

    @property
    def singles_out(self) -> bool:
        """Whether whoever knows a value of this column, which no group hides, finds somebody by it."""
        return self.role in IN_CLEAR and self.alone > 0 and not self.in_crowd


def published(original: pl.DataFrame, released: pl.DataFrame, schema: Schema, lost: Loss) -> list[Published]:
    """The columns of a release, in its order.

    >>> import shoal
    >>> ages = pl.DataFrame({"age": [20, 22, 50, 52]})
    >>> made = shoal.anonymize(ages, quasi=["age"], k=2, method="mondrian")
    >>> [(column.name, column.role) for column in made.report.columns]
    [('age', 'quasi')]
    """
    out = []
    for name in released.columns:
        column = schema[name]
        sizes = released.group_by(name).len()["len"]
        uses = hierarchy_for(original[name], column).use if column.role == "quasi" else None
        share = lost.columns.get(name)
        hint = why_lost(original[name].dtype, uses or "", share)
        alone = int((sizes == 1).sum())
        out.append(Published(name, column.role, uses, len(sizes), alone, share, None, hint, column.weight))
    return out


def masked(columns: list[Published], masks: Mapping[str, str]) -> list[Published]:
    """The same columns, with the names of their masks.

    >>> masked([], {"pid": "pseudonym"})
    []
    """
    return [msgspec.structs.replace(c, mask=masks[c.name]) if c.name in masks else c for c in columns]


def in_crowds(columns: list[Published], promises: Sequence[Promise], pseudonyms: Collection[str]) -> list[Published]:
    """The same columns, pseudonyms marked where a promise follows people through all rows that bear theirs.

    >>> from shoal.promises.trajectory_anonymity import TrajectoryAnonymity
    >>> columns = [Published("pid", "plain", None, 3, 3, None)]
    >>> in_crowds(columns, [TrajectoryAnonymity(3)], ["pid"])[0].singles_out
    False
    """
    if not any(p.follows_people for p in promises):
        return columns
    return [msgspec.structs.replace(c, in_crowd=c.name in pseudonyms) for c in columns]


def why_lost(dtype: pl.DataType, hierarchy: str, share: float | None) -> str:
    """Why a column lost nearly everything, and what would help; nothing if it did not.

    >>> why_lost(pl.String(), "suppress", 1.0)
    '`suppress` knows all or nothing: ... If its texts are dates or numbers, declare its type.'
    >>> why_lost(pl.Int64(), "range", 0.2)
    ''
    """
    if share is None or share < NEARLY_ALL:
        return ""
    if hierarchy == "suppress":
        words = "`suppress` knows all or nothing: a tree, a prefix, a path or `sets` would keep a part."
        return f"{words} If its texts are dates or numbers, declare its type." if dtype == pl.String else words
    return "Too many quasi columns, or too much promised, for so few rows: leave one out, or ask for less."
