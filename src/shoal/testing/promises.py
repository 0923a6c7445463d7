"""Laws of promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import ShoalError
from shoal.core.groups import Groups
from shoal.core.register import beside_register
from shoal.core.schema import Column, Schema
from shoal.core.table import Table, code
from shoal.kernels.shared import promises as compiled
from shoal.promises.base import Promise
from shoal.promises.rules import compile_rules
from shoal.tables.base import groups_of
from shoal.testing.law import law

ROUNDS = 20


def check_promise(spec: Promise, values: Sequence[Any] = ("a", "b", "c", "d")) -> None:
    """Hold a promise to its laws, on random groups of rows whose sensitive column has some of ``values``.

    A promise that is not about groups (of events, of curves) must only refuse to judge groups.

    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> check_promise(KAnonymity(3))
    """
    rng = np.random.default_rng(0)
    if spec.about not in ("groups", "register"):
        _refuses(spec, _table(spec, values, rng))
        return
    nothing = _table(spec, values, rng)
    finding = spec.judge(groups_of(nothing, np.full(nothing.size, -1, np.int32)))
    law(finding.kept and finding.note, spec, "nothing released keeps it, and the finding says that nothing was")
    for _ in range(ROUNDS):
        table = _table(spec, values, rng)
        labels = np.unique(rng.integers(0, 5, table.size), return_inverse=True)[1].astype(np.int32)
        groups = groups_of(table, labels)
        kept = _judged(spec, groups)
        _order(spec, table, labels, kept, rng)
        _union(spec, table, labels, kept)
        _rule(spec, table, labels, kept)


def _table(spec: Promise, values: Sequence[Any], rng: np.random.Generator) -> Table:
    n = int(rng.integers(5, 40))
    name = spec.sensitive or "sensitive"
    some = [values[i] for i in rng.choice(len(values), n, p=rng.dirichlet(np.ones(len(values))))]
    frame = pl.DataFrame({"quasi": np.arange(n), name: some})
    schema = Schema({"quasi": Column("quasi"), name: Column("sensitive")})
    if spec.follows_people:
        frame = frame.with_columns(pl.Series("who", rng.integers(0, n, n)))
        schema = Schema({**schema.columns, "who": Column("subject")})
    table = code(frame, schema)
    if spec.about != "register":
        return table
    register = pl.DataFrame({"quasi": np.repeat(np.arange(n), rng.integers(1, 6, n))})
    return beside_register(table, frame, schema, register)


def _refuses(spec: Promise, table: Table) -> None:
    try:
        spec.judge(groups_of(table, np.zeros(table.size, np.int32)))
    except ShoalError:
        return
    law(False, spec, f"a promise about {spec.about} refuses to judge groups of rows")


def _judged(spec: Promise, groups: Groups) -> NDArray[np.bool_]:
    reached, kept = spec.measure(groups)
    law(len(reached) == len(kept) == groups.count, spec, "every group is measured")
    finding = spec.judge(groups)
    law(finding.broken == (~kept).sum() and finding.kept == kept.all(), spec, "it is kept if every group keeps it")
    worst = reached.max() if spec.higher_is_worse else reached.min()
    law(finding.reached == worst and finding.asked == spec.asked, spec, "the finding tells the worst group")
    return kept


def _order(
    spec: Promise, table: Table, labels: NDArray[np.int32], kept: NDArray[np.bool_], rng: np.random.Generator
) -> None:
    renamed = rng.permutation(len(kept)).astype(np.int32)
    _, again = spec.measure(groups_of(table, renamed[labels]))
    law(np.array_equal(again[renamed], kept), spec, "the number of a group does not matter")


def _union(spec: Promise, table: Table, labels: NDArray[np.int32], kept: NDArray[np.bool_]) -> None:
    both = np.flatnonzero(kept)[:2]
    if len(both) < 2 or not spec.closed_under_union:
        return
    united = np.where(labels == both[1], both[0], labels)
    dense = np.unique(united, return_inverse=True)[1].astype(np.int32)
    _, after = spec.measure(groups_of(table, dense))
    law(after[dense[labels == both[0]][0]], spec, "two groups that keep it also keep it together")


def _rule(spec: Promise, table: Table, labels: NDArray[np.int32], kept: NDArray[np.bool_]) -> None:
    """The compiled twin: whatever keeps the promise passes; if the rule is complete, nothing else does."""
    rules = compile_rules(table, [spec])
    work = compiled.workspace(rules)
    for group, enough in enumerate(kept):
        rows = np.flatnonzero(labels == group).astype(np.int32)
        passes = bool(compiled.holds(rules, rows, 0, len(rows), work))
        law(passes or not enough, spec, "its rule refuses no group that keeps it")
        if spec.rule().complete:
            law(enough or not passes, spec, "a complete rule accepts no group that breaks it")
