"""Blind groups keep every promise, and values exchanged inside released groups change nothing above them."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import PromiseError, UsageError
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules
from shoal.promises.t_closeness import TCloseness
from shoal.tables import TABLE_METHODS
from shoal.tables.base import groups_of
from shoal.tables.blind import halve_blindly, stop

SCHEMA = Schema.build(quasi={"age": Range(min=0, max=31), "zip": Range(min=0, max=31)}, sensitive=["ill"])
PROMISES = st.sampled_from(
    [
        [KAnonymity(2), LDiversity(2, "ill")],
        [KAnonymity(2), TCloseness(0.4, "ill")],
        [LDiversity(2, "ill", kind="frequency")],
    ]
)
ROWS = st.lists(
    st.tuples(st.integers(0, 31), st.integers(0, 31), st.sampled_from(["cold", "flu", "hiv"])), min_size=2, max_size=24
)


def coded(rows: list[tuple[int, int, str]]) -> Table:
    return code(pl.DataFrame(rows, schema=["age", "zip", "ill"], orient="row"), SCHEMA)


@settings(max_examples=40)
@given(ROWS, PROMISES, st.sampled_from(["mondrian", "topdown"]), st.integers(0, 2**40))
def test_blind_groups_keep_every_promise(rows, promises, name, seed):
    table = coded(rows)
    method = TABLE_METHODS.decode({"use": name, "blind": True})
    try:
        grouping = method.group(table, promises, seed=seed)
    except PromiseError:
        return
    assert (grouping.labels >= 0).all()
    assert all(p.judge(groups_of(table, grouping.labels)).kept for p in promises)


@settings(max_examples=40)
@given(ROWS, st.integers(0, 2**40), st.randoms(use_true_random=False))
def test_no_way_to_part_depends_on_who_has_which_value_of_a_group(rows, seed, random):
    """With the same draws, exchanged values give the same groups or finer or coarser ones: never others."""
    table = coded(rows)
    promises = [KAnonymity(2), LDiversity(2, "ill")]
    rules = compile_rules(table, promises)
    blind = (np.arange(table.size) // 2).astype(np.int32)
    labels = halve_blindly(table, rules, blind, seed)
    codes = table.sensitive["ill"].codes.copy()
    for group in range(int(labels.max()) + 1):
        members = np.flatnonzero(labels == group)
        codes[members] = codes[random.sample(list(members), len(members))]
    exchanged = dataclasses.replace(table, sensitive={"ill": dataclasses.replace(table.sensitive["ill"], codes=codes)})
    again = halve_blindly(exchanged, compile_rules(exchanged, promises), blind, seed)
    assert again[0] >= 0
    # every group that is halved again was a whole group: nothing above it changed
    for group in range(int(labels.max()) + 1):
        members = labels == group
        assert not (set(again[members]) & set(again[~members]))


def test_the_chance_to_stop_is_the_same_in_every_world() -> None:
    """Two blind groups are left whole, though they could be halved, in about a quarter of the draws."""
    table = coded([(0, 0, "cold"), (0, 0, "flu"), (31, 31, "cold"), (31, 31, "flu")])
    rules = compile_rules(table, [KAnonymity(2), LDiversity(2, "ill")])
    blind = np.array([0, 0, 1, 1], np.int32)
    whole = sum(int(halve_blindly(table, rules, blind, seed).max()) == 0 for seed in range(2000))
    assert abs(whole / 2000 - stop(2)) < 0.06  # more than six standard deviations


@pytest.mark.parametrize("name", ["datafly", "lattice"])
def test_whole_columns_at_one_level_cannot_be_blind(name):
    method = TABLE_METHODS.decode({"use": name, "blind": True})
    with pytest.raises(UsageError, match="whole columns at one level"):
        method.group(coded([(1, 1, "cold"), (2, 2, "flu")]), [KAnonymity(2), LDiversity(2, "ill")])
