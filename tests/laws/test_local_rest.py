"""`local` under promises about shares of values: rows that no group could use, and what stirring costs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.kernels.shared.promises import holds, workspace
from shoal.kernels.tables.local_pairs import make_pairs
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.rules import compile_rules
from shoal.promises.t_closeness import TCloseness
from shoal.tables import local_start
from shoal.tables import stir as stirring
from shoal.tables.improve import dense, loss_of
from shoal.tables.local import Local


def uneven(rows: int, seed: int) -> Table:
    """Many skewed values that hang together with the quasi columns, as diagnoses with age."""
    random = np.random.default_rng(seed)
    kind = random.normal(size=rows)
    frame = pl.DataFrame(
        {
            "n": np.round(50 + 20 * (kind + random.normal(size=rows))),
            "job": [f"j{v}" for v in random.integers(0, 6, rows)],
            "s": [f"v{v}" for v in np.round(random.geometric(0.15, rows) + np.abs(kind) * 4).astype(int)],
        }
    )
    return code(frame, Schema.build(quasi={"n": None, "job": None}, sensitive=["s"]))


@given(seed=st.integers(0, 50), t=st.sampled_from([0.25, 0.35]))
@settings(max_examples=4)
def test_rows_that_nobody_could_use_stand_together_or_apart_whichever_loses_less(seed: int, t: float) -> None:
    table = uneven(1500, seed)
    rules = local_start.at_least(compile_rules(table, [KAnonymity(3), TCloseness(t, "s")]))
    pairs, work = make_pairs(table.shape()), workspace(rules)
    opened = local_start.open_tuples(table.matrix, pairs, rules)
    assume((opened < 0).any() and opened.max() >= 0)
    apart = dense(local_start.gather(table.matrix, pairs, rules, dense(opened)))
    found = local_start.assign_rest(table.matrix, pairs, rules, opened.copy())
    for labels in (apart, found):
        for group in range(labels.max() + 1):
            rows = np.flatnonzero(labels == group).astype(np.int32)
            assert holds(rules, rows, 0, len(rows), work)
    assert loss_of(table.matrix, pairs, found) <= loss_of(table.matrix, pairs, apart)
    # rows that have a group stay with it, or go to the rest with the whole group
    for group in range(opened.max() + 1):
        assert len(set(apart[opened == group].tolist())) == 1


@pytest.mark.parametrize("seed", [0, 2])  # of which few groups come out
def test_a_large_table_of_few_groups_loses_next_to_nothing_to_stirring(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = uneven(6000, seed)
    promises: list[Promise] = [KAnonymity(3), TCloseness(0.15, "s")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stirring, "stir", lambda table, rules, labels, seed: labels)
        still = Local(effort=0).group(table, promises, seed=seed).labels
    rules = local_start.at_least(compile_rules(table, promises))

    def lost(labels: np.ndarray) -> float:
        return loss_of(table.matrix, make_pairs(table.shape()), labels)

    assert lost(stirring.stir(table, rules, still, seed)) <= 1.02 * lost(still)
    monkeypatch.setattr(stirring, "SMALL", table.size)  # as hot as in a small table
    assert lost(stirring.stir(table, rules, still, seed)) > 1.2 * lost(still)
