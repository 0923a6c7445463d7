"""Huge tables: rows that no group of a region could use join groups of that region, and every promise holds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.kernels.shared.promises import Rules, holds, workspace
from shoal.kernels.tables.local_pairs import make_pairs
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules
from shoal.promises.t_closeness import TCloseness
from shoal.tables import local_start
from shoal.tables.improve import loss_of, ordered
from shoal.tables.regions import cut


def people(rows: int) -> Table:
    random = np.random.default_rng(1)
    frame = pl.DataFrame({f"c{j}": random.integers(0, 1000, rows) for j in range(3)})
    frame = frame.with_columns(pl.Series("s", random.integers(0, 4, rows)))
    return ordered(code(frame, Schema.build(quasi=dict.fromkeys(["c0", "c1", "c2"]), sensitive=["s"])))


def kept(rules: Rules, labels: np.ndarray) -> bool:
    work = workspace(rules)
    groups = [np.flatnonzero(labels == g).astype(np.int32) for g in range(labels.max() + 1)]
    return all(holds(rules, rows, 0, len(rows), work) for rows in groups)


@pytest.mark.parametrize(
    "more", [[], [LDiversity(2, "s")], [LDiversity(1.8, "s", kind="entropy")], [TCloseness(0.4, "s")]]
)
def test_the_rest_of_a_region_joins_its_own_groups(more: list[Promise], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_start, "REGION", 160)
    table = people(900)
    rules = compile_rules(table, [KAnonymity(5), *more])
    pairs = make_pairs(table.shape())
    rows = np.arange(table.size)
    monkeypatch.setattr(local_start, "HUGE", 100)
    found = local_start._grow(table.matrix, rows, pairs, rules, 0)
    region = cut(table.matrix, pairs.shape, 80).of(table.matrix)
    assert region.max() > 5
    for group in range(found.max() + 1):
        assert len(set(region[found == group])) == 1
    assert kept(rules, found)
    if not more:  # with k alone, no row is left over
        assert (found >= 0).all()
    whole = local_start.assign_rest(table.matrix, pairs, rules, found)
    assert (whole >= 0).all()
    assert kept(rules, whole)


def test_it_loses_hardly_more_than_a_look_at_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people(3000)
    rules = compile_rules(table, [KAnonymity(5)])
    pairs = make_pairs(table.shape())
    lost = []
    for region, huge in ((200, 10**9), (400, 100)):  # regions of 200 rows both times
        monkeypatch.setattr(local_start, "REGION", region)
        monkeypatch.setattr(local_start, "HUGE", huge)
        found = local_start._grow(table.matrix, np.arange(table.size), pairs, rules, 0)
        lost.append(loss_of(table.matrix, pairs, local_start.assign_rest(table.matrix, pairs, rules, found)))
    assert lost[1] < 1.03 * lost[0]
