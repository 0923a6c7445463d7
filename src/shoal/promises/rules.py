"""Promises made ready for kernels: what a method must keep at every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.table import Sensitive, Table
from shoal.kernels.shared import promises as compiled
from shoal.promises.base import Promise, Rule, among, lacks_register

KINDS = {
    "distinct": compiled.DISTINCT,
    "entropy": compiled.ENTROPY,
    "recursive": compiled.RECURSIVE,
    "frequency": compiled.FREQUENCY,
    "alpha": compiled.ALPHA,
    "equal": compiled.T_EQUAL,
    "ordered": compiled.T_ORDERED,
    "hierarchical": compiled.T_HIERARCHICAL,
    "beta": compiled.BETA,
    "enhanced-beta": compiled.BETA_ENHANCED,
}


def least_people(promises: Sequence[Promise]) -> int:
    """The fewest people that any group may have: the k of k-anonymity, and of whatever asks for one.

    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> least_people([KAnonymity(3), KAnonymity(5)])
    5
    """
    return max((p.rule().k for p in promises), default=1)


def compile_rules(table: Table, promises: Sequence[Promise]) -> compiled.Rules:
    """The promises about groups of this table's rows, as arrays. Memory O(rows x promises about sensitive columns).

    >>> import polars as pl
    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.core.table import code
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> table = code(pl.DataFrame({"age": [20, 30]}), Schema({"age": Column("quasi")}))
    >>> int(compile_rules(table, [KAnonymity(2)]).k)
    2
    """
    for promise in promises:
        if promise.about not in ("groups", "register"):
            raise UsageError(f"{promise.use} is not a promise about groups of rows", where="promises")
        if promise.about == "register" and table.register is None:
            raise lacks_register(promise)
        if promise.sensitive is not None and promise.sensitive not in table.sensitive:
            raise UsageError(
                f"{promise.sensitive!r} is not a sensitive column",
                where=promise.use,
                hint=f"the sensitive columns are: {', '.join(table.sensitive) or 'none'}",
            )
    about = [(p, p.rule()) for p in promises if p.rule().check]
    columns = [_column(table, p.use, rule) for p, rule in about]
    size = np.array([len(c.values) for c in columns], np.int64)
    most = int(size.max(initial=1))
    depth = np.array([c.levels.depth if c.levels else 1 for c in columns], np.int64)
    node = np.zeros((len(about), most, int(depth.max(initial=1))), np.int32)
    overall = np.zeros((len(about), most))
    # who has one row only is a row: the faster way to the same answer
    people = table.people if table.people is not None and table.crowd < table.size else None
    pair = np.zeros((len(about), 0 if people is None else table.size), np.int32)
    pairs = np.zeros(len(about), np.int64)
    missing = np.full(len(about), -1, np.int64)
    for s, column in enumerate(columns):
        first = np.arange(table.size)
        if table.people is not None and len(column.values) and column.values[-1] is None:
            missing[s] = len(column.values) - 1
        if people is not None:
            both = people.astype(np.int64) * len(column.values) + column.codes
            unique, first, pair[s] = _unique(both)
            pairs[s] = len(unique)
        counted = np.bincount(column.codes[first], minlength=len(column.values))
        shares = counted / max(1, table.size if people is None else table.crowd)
        overall[s, : len(column.values)] = table.whole.get(about[s][1].column, shares)
        if named := about[s][1].values:
            node[s, : len(column.values), 0] = ~among(column.values, named)
        elif column.levels is not None and about[s][1].check == "hierarchical":
            node[s, : column.levels.size, : column.levels.depth] = column.levels.codes
    return compiled.Rules(
        least_people(promises),
        np.zeros(0, np.int32) if people is None else people,
        0 if people is None else int(people.max(initial=-1)) + 1,
        np.array([c.codes for c in columns], np.int32).reshape(len(columns), table.size),
        pair,
        pairs,
        np.array([KINDS[rule.check] for _, rule in about], np.int64),
        np.array([rule.bound for _, rule in about], np.float64),
        np.array([rule.c for _, rule in about], np.float64),
        size,
        overall,
        node,
        depth,
        missing,
    )


def _column(table: Table, where: str, rule: Rule) -> Sensitive:
    column = table.sensitive[rule.column]
    if rule.check == "hierarchical" and column.levels is None:
        raise UsageError(
            f"hierarchical distance needs a hierarchy of column {rule.column!r}",
            where=where,
            hint="declare it in the schema, or use `equal` or `ordered`",
        )
    if rule.check == "ordered" and column.levels is not None:
        # a hierarchy orders its codes by its nodes; this distance knows only the order of the values
        ordered = column.values.sort(nulls_last=True)
        rank = np.empty(len(ordered), np.int32)
        rank[column.values.arg_sort(nulls_last=True).to_numpy()] = np.arange(len(ordered))
        return Sensitive(rank[column.codes], ordered)
    return column


def _unique(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    unique, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return unique, first, inverse.astype(np.int32)
