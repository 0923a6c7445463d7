"""The compact form of released curves: a row per group with its envelope, and in one cell the words of its members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from shoal.core.errors import InputError

GROUP, PATTERN, LEVEL, SIZE, MEMBERS = "group", "pattern", "level", "size", "members"


class Subgroup(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Members of a group that publish one word: how many, and their sensitive values, a row each."""

    pattern: str
    level: int
    count: int
    values: list[list[Any]] = []


class Members(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The cell of one group, as JSON: its subgroups, and the names of the sensitive columns."""

    subgroups: list[Subgroup]
    sensitive: list[str] = []


def is_compact(released: pl.DataFrame) -> bool:
    """Whether a release is in the compact form.

    >>> is_compact(pl.DataFrame({"age": [30]}))
    False
    """
    return {GROUP, SIZE, MEMBERS} <= set(released.columns) and PATTERN not in released.columns


def compact(wide: pl.DataFrame, instants: Sequence[str]) -> pl.DataFrame:
    """A wide release as one row per group.

    >>> wide = pl.DataFrame({"group": [0, 0], "W0": ["[1, 2]"] * 2, "pattern": ["ab"] * 2, "level": [2] * 2})
    >>> compact(wide, ["W0"]).row(0)
    (0, 2, '[1, 2]', '{"subgroups":[{"pattern":"ab","level":2,"count":2}]}')
    """
    # records of a subgroup read alike, so their sensitive values are one list of the subgroup
    beside = [c for c in wide.columns if c not in (GROUP, PATTERN, LEVEL, *instants)]
    rows = []
    for (group,), part in wide.partition_by(GROUP, as_dict=True, maintain_order=True).items():
        subgroups = [
            Subgroup(word, level, few.height, [list(row) for row in few.select(beside).rows()] if beside else [])
            for (word, level), few in part.partition_by(PATTERN, LEVEL, as_dict=True, maintain_order=True).items()
        ]
        cell = msgspec.json.encode(Members(subgroups, beside), enc_hook=str).decode()
        rows.append((group, part.height, *part.select(instants).row(0), cell))
    kinds: dict[str, Any] = {
        GROUP: wide[GROUP].dtype,
        SIZE: pl.Int64,
        **{n: wide[n].dtype for n in instants},
        MEMBERS: pl.String,
    }
    return pl.DataFrame(rows, schema=kinds, orient="row")


def expand(released: pl.DataFrame) -> pl.DataFrame:
    """A compact release as a wide one, a row per record; sizes must agree with the members.

    >>> cell = '{"subgroups":[{"pattern":"ab","level":2,"count":2}]}'
    >>> expand(pl.DataFrame({"group": [0], "size": [2], "W0": ["[1, 2]"], "members": [cell]})).rows()
    [(0, '[1, 2]', 'ab', 2), (0, '[1, 2]', 'ab', 2)]
    """
    instants = [c for c in released.columns if c not in (GROUP, SIZE, MEMBERS)]
    words: list[str] = []
    levels: list[int] = []
    beside: dict[str, list[Any]] = {}
    copies = []
    names: list[str] | None = None
    for at, (size, cell) in enumerate(released.select(SIZE, MEMBERS).iter_rows()):
        found = _members(cell, at)
        names = found.sensitive if names is None else names
        rows = [row for part in found.subgroups for row in part.values]
        counts = [part.count for part in found.subgroups]
        lists = [len(part.values) for part in found.subgroups] if names else counts
        # the judge counts members: a group that claims more than it lists must not pass as large enough
        if size != sum(counts) or min(counts, default=0) < 1 or found.sensitive != names or lists != counts:
            raise _wrong(at)
        if any(len(row) != len(names) for row in rows):
            raise _wrong(at)
        copies.append(size)
        for part in found.subgroups:
            words += [part.pattern] * part.count
            levels += [part.level] * part.count
        for column, name in enumerate(names):
            beside.setdefault(name, []).extend(row[column] for row in rows)
    wide = released.select(GROUP, *instants)[np.repeat(np.arange(released.height), copies)]
    about = [pl.Series(PATTERN, words, dtype=pl.String), pl.Series(LEVEL, levels, dtype=pl.Int64)]
    return wide.with_columns(*about, *[pl.Series(name, column, strict=False) for name, column in beside.items()])


def _members(cell: Any, at: int) -> Members:
    try:
        return msgspec.json.decode(cell, type=Members)
    except (msgspec.DecodeError, TypeError):
        raise _wrong(at) from None


def _wrong(at: int) -> InputError:
    return InputError(
        f"expected the members of a group with their words and counts, found something else in row {at + 1}",
        where=f"column {MEMBERS!r}",
        hint="a compact release is written by --compact",
    )
