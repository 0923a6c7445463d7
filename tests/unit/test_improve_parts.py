"""The parts that phase 2 of `local` works on: there are some whatever the groups, and they hang on no machine."""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import polars as pl
import pytest

from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.kernels.tables.local_pairs import make_pairs
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.rules import compile_rules
from shoal.tables import improve
from shoal.tables.local import Local


def table_of(rows: int, values: int) -> Table:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"a": rng.integers(0, values, rows), "b": rng.integers(0, 2, rows)})
    return code(frame, Schema.build(quasi={"a": None, "b": None}))


@pytest.mark.parametrize("seed", range(12))
def test_a_round_has_parts_where_few_groups_have_all_rows(seed, monkeypatch):
    """Groups larger than a window: in most windows none begins, and those that are drawn may all be such."""
    monkeypatch.setattr(improve, "WINDOW", 64)
    table = table_of(5000, 2)
    groups = (table.matrix[:, 0] * 2 + table.matrix[:, 1]).astype(np.int32)
    rules = compile_rules(table, [KAnonymity(5)])
    improver = improve.Improver(table.matrix, make_pairs(table.shape()), rules, groups, seed)
    for improver.round in range(1, 6):
        parts = improver._parts()
        assert parts
        for rows in parts:  # whole groups
            assert set(groups[rows].tolist()).isdisjoint(np.delete(groups, rows).tolist())
    assert Local(effort=500).form(table, [KAnonymity(5)], seed=seed).labels.min() >= 0


def test_labels_do_not_hang_on_the_number_of_cores(monkeypatch):
    """Read anew for each number of cores, so that no constant may hang on it either."""
    table = table_of(6000, 3000)
    rules = compile_rules(table, [KAnonymity(4)])
    begun = Local(effort="low").form(table, [KAnonymity(4)]).labels
    monkeypatch.setattr(improve, "WINDOW", 500)
    found = []
    for cores in (1, 2, 8):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        spec = importlib.util.spec_from_file_location("read_anew", improve.__file__)
        anew = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(anew)
        anew.WINDOW = improve.WINDOW
        found.append(anew.improve(table, rules, begun, 4000, 3))
    assert (found[0] != begun).any()
    assert all((labels == found[0]).all() for labels in found)
