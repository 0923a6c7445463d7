"""Limits of columns: rows that may not be published together are grouped apart, by any method that recodes locally.

A column that may be published at level L at most keeps the nodes of that level apart. So rows are parted by their nodes
in all limited columns, and each part is grouped by itself; what is published of a part lies within its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import PromiseError, UsageError
from shoal.core.release import dense
from shoal.core.table import Table
from shoal.promises.base import Promise, those_about
from shoal.tables.base import Grouping, Progress, groups_of, taken

if TYPE_CHECKING:
    from shoal.tables.base import TableMethod

Labels = NDArray[np.int32]


def parts_of(table: Table) -> Labels:
    """The part of every row: those of one part share a node at its highest level in every limited column.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> frame = pl.DataFrame({"sex": ["f", "m", "f"], "age": [20, 30, 40]})
    >>> parts_of(code(frame, Schema.build(quasi={"sex": None, "age": None}, at_most={"sex": 0}))).tolist()
    [0, 0, 1]
    """
    key = np.zeros(table.size, np.int64)
    for j, level in table.limits.items():
        nodes = table.levels[j].codes[table.matrix[:, j], level].astype(np.int64)
        key = np.unique(key * (int(nodes.max(initial=0)) + 1) + nodes, return_inverse=True)[1]
    return key.astype(np.int32)


def group_within(
    method: TableMethod, table: Table, promises: Sequence[Promise], *, seed: int, progress: Progress
) -> Grouping:
    """Groups that keep every promise and every limit; a part whose rows cannot keep the promises is suppressed.

    Costs what the method costs on every part of at least twice k people; smaller ones are one group.
    """
    _refuse(method, promises)
    parts, shares = _standing(table, promises)
    k = max(p.rule().k for p in promises)
    out = np.full(table.size, -1, np.int32)
    order = np.argsort(parts, kind="stable")
    cuts = np.cumsum(np.bincount(parts + 1))
    made = 0
    for part, rows in enumerate(np.split(order, cuts[:-1])[1:]):
        inside = replace(taken(table, rows), limits={}, whole=shares, withheld={})
        if inside.crowd < 2 * k:
            labels = np.zeros(len(rows), np.int32)
        else:
            labels = method.group(inside, promises, seed=(seed + part) % 2**63).labels
        out[rows] = np.where(labels >= 0, labels + made, -1)
        made += int(labels.max(initial=-1)) + 1
        progress(0.1 + 0.8 * cuts[part + 1] / table.size, "grouping within the limits of columns")
    return Grouping(out)


def _standing(table: Table, promises: Sequence[Promise]) -> tuple[Labels, dict[str, NDArray[np.float64]]]:
    """The parts whose rows keep every promise as one group (the others -1), and how values are spread in them all."""
    parts = parts_of(table)
    while True:
        if (parts < 0).all():
            raise PromiseError(
                "within the limits of its columns no row can be released with its promises",
                where="at_most",
                hint="let a column go higher, ask for less, or bring more people",
            )
        shares = _shares(table, parts >= 0, promises)
        groups = groups_of(replace(table, whole=shares), parts)
        broken = np.zeros(groups.count, np.bool_)
        for promise in promises:
            broken |= ~promise.measure(groups)[1]
        if not broken.any():
            return parts, shares
        parts = dense(np.where((parts >= 0) & ~broken[parts], parts, -1).astype(np.int32))


def _shares(table: Table, kept: NDArray[np.bool_], promises: Sequence[Promise]) -> dict[str, NDArray[np.float64]]:
    """The share of all people who are left that hold each value, where groups are compared with all of them."""
    out = {}
    for name in {p.sensitive for p in promises if p.compares_with_all and p.sensitive is not None}:
        codes, size = table.sensitive[name].codes[kept], len(table.sensitive[name].values)
        if table.people is None:
            out[name] = np.bincount(codes, minlength=size) / len(codes)
        else:  # a person who has a value twice has it once
            people = table.people[kept].astype(np.int64)
            held = np.unique(people << 32 | codes) & 0xFFFFFFFF
            out[name] = np.bincount(held, minlength=size) / len(np.unique(people))
    return out


def _refuse(method: TableMethod, promises: Sequence[Promise]) -> None:
    """What cannot be said of parts one by one."""
    if not method.local_recoding:
        raise UsageError(
            f"has no effect on {method.use}, which gives whole columns one level",
            where="at_most",
            hint="use local, topdown, mondrian, forest or microaggregation",
        )
    relative = any(p.compares_with_all for p in promises)
    if beside := those_about(promises, "register") or [p for p in promises if p.follows_people]:
        raise UsageError(
            f"cannot be kept beside {beside[0].use}, which speaks about all rows together",
            where="at_most",
            hint="leave one of them out",
        )
    suppress: float = getattr(method, "suppress", 0.0)
    if relative and suppress:
        raise UsageError(
            "what the method suppresses in one part changes what groups of others are compared with",
            where="suppress",
            hint="leave it out, or leave the limits of columns out",
        )
