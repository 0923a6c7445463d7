"""Promises made ready for kernels: what a method must keep at every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.table import Sensitive, Table
from shoal.kernels.shared import promises as compiled
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness

KINDS = {
    "distinct": compiled.DISTINCT,
    "entropy": compiled.ENTROPY,
    "recursive": compiled.RECURSIVE,
    "frequency": compiled.FREQUENCY,
    "equal": compiled.T_EQUAL,
    "ordered": compiled.T_ORDERED,
    "hierarchical": compiled.T_HIERARCHICAL,
}


def compile_rules(table: Table, promises: Sequence[Promise]) -> compiled.Rules:
    """The promises about groups of this table's rows, as arrays. Memory O(rows x promises about sensitive columns)."""
    k = max((p.k for p in promises if isinstance(p, KAnonymity)), default=1)
    about = [p for p in promises if isinstance(p, LDiversity | TCloseness)]
    for promise in promises:
        if not isinstance(promise, KAnonymity | LDiversity | TCloseness):
            raise UsageError(f"{promise.use} is not a promise about groups of rows", where="promises")
    columns = [_column(table, p) for p in about]
    size = np.array([len(c.values) for c in columns], np.int64)
    most = int(size.max(initial=1))
    depth = np.array([c.levels.depth if c.levels else 1 for c in columns], np.int64)
    node = np.zeros((len(about), most, int(depth.max(initial=1))), np.int32)
    overall = np.zeros((len(about), most))
    pair = np.zeros((len(about), 0 if table.people is None else table.size), np.int32)
    pairs = np.zeros(len(about), np.int64)
    for s, column in enumerate(columns):
        first = np.arange(table.size)
        if table.people is not None:
            both = table.people.astype(np.int64) * len(column.values) + column.codes
            unique, first, pair[s] = _unique(both)
            pairs[s] = len(unique)
        counted = np.bincount(column.codes[first], minlength=len(column.values))
        overall[s, : len(column.values)] = counted / max(1, counted.sum())
        if column.levels is not None:
            node[s, : column.levels.size, : column.levels.depth] = column.levels.codes
    return compiled.Rules(
        k,
        np.zeros(0, np.int32) if table.people is None else table.people,
        0 if table.people is None else int(table.people.max(initial=-1)) + 1,
        np.array([c.codes for c in columns], np.int32).reshape(len(columns), table.size),
        pair,
        pairs,
        np.array([KINDS[p.kind if isinstance(p, LDiversity) else p.distance] for p in about], np.int64),
        np.array([p.l if isinstance(p, LDiversity) else p.t for p in about], np.float64),
        np.array([p.c if isinstance(p, LDiversity) else 0.0 for p in about], np.float64),
        size,
        overall,
        node,
        depth,
    )


def _column(table: Table, promise: LDiversity | TCloseness) -> Sensitive:
    if promise.column not in table.sensitive:
        raise UsageError(
            f"{promise.column!r} is not a sensitive column",
            where=promise.use,
            hint=f"the sensitive columns are: {', '.join(table.sensitive) or 'none'}",
        )
    column = table.sensitive[promise.column]
    if isinstance(promise, TCloseness) and promise.distance == "hierarchical" and column.levels is None:
        raise UsageError(
            f"hierarchical distance needs a hierarchy of column {promise.column!r}",
            where=promise.use,
            hint="declare it in the schema, or use `equal` or `ordered`",
        )
    if isinstance(promise, TCloseness) and promise.distance == "ordered" and column.levels is not None:
        # a hierarchy orders its codes by its nodes; this distance knows only the order of the values
        ordered = column.values.sort(nulls_last=True)
        rank = np.empty(len(ordered), np.int32)
        rank[column.values.arg_sort(nulls_last=True).to_numpy()] = np.arange(len(ordered))
        return Sensitive(rank[column.codes], ordered)
    return column


def _unique(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    unique, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return unique, first, inverse.astype(np.int32)
