"""Groups opened anew, many at once: never worse, every promise kept, the same each time."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.hierarchy.prefix import Prefix
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.kernels.tables.local_pairs import make_pairs
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules
from shoal.tables import local, local_reopen
from shoal.tables.improve import Improver, loss_of, ordered
from shoal.tables.local import Local
from shoal.tables.local_reopen import can_reopen, reopen, search
from shoal.tables.local_start import start


def people(rows: int, seed: int, subject: bool = False) -> Table:
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": random.integers(0, 60, rows),
            "zip": [f"{x:03d}" for x in random.integers(0, 400, rows)],
            "s": random.integers(0, 5, rows),
            "who": np.arange(rows) // 2,
        }
    )
    more = {"subject": "who"} if subject else {}
    return code(frame, Schema.build(quasi={"age": None, "zip": Prefix(3)}, sensitive=["s"], **more))


def begun(table: Table, promises: list[Promise], seed: int) -> Improver:
    view = ordered(table)
    rules = compile_rules(view, promises)
    pairs = make_pairs(view.shape())
    return Improver(view.matrix, pairs, rules, start(view.matrix, pairs, rules, seed), seed)


@given(rows=st.integers(40, 1500), k=st.integers(2, 40), seed=st.integers(0, 2**64 - 1))
@settings(max_examples=15)
def test_no_group_is_too_small_and_the_loss_only_falls(rows, k, seed):
    table = people(rows, seed % 1000)
    improver = begun(table, [KAnonymity(min(k, rows))], seed)
    before = improver.loss
    reopen(improver, 3)
    assert np.bincount(improver.labels).min() >= min(k, rows)
    assert improver.loss <= before
    assert improver.loss == pytest.approx(loss_of(improver.matrix, improver.pairs, improver.labels))
    again = begun(table, [KAnonymity(min(k, rows))], seed)
    reopen(again, 3)
    assert again.labels.tolist() == improver.labels.tolist()


def test_it_finds_what_was_not_found_before():
    improver = begun(people(1500, 3), [KAnonymity(30)], 0)
    improver.run(2000)
    before = improver.loss
    reopen(improver, 20)
    assert improver.loss < before


@pytest.mark.parametrize(
    ("table", "promises", "can"),
    [
        (people(60, 1), [KAnonymity(3)], True),
        (people(60, 1), [KAnonymity(3), LDiversity(2, "s")], False),
        (people(60, 1, subject=True), [KAnonymity(3)], False),
    ],
)
def test_only_promises_that_count_rows_allow_it(table, promises, can):
    assert can_reopen(begun(table, promises, 0)) is can


def test_high_effort_does_it_where_steps_are_few_for_the_rows(monkeypatch):
    times = []
    monkeypatch.setattr(local_reopen, "reopen", lambda improver, many, begin: times.append(many))
    monkeypatch.setattr(local, "HIGH", 1)
    table = people(300, 5)
    shares = []
    Local(effort="high").group(table, [KAnonymity(50)], progress=lambda share, word: shares.append(share))
    assert times == [1] * local_reopen.ROUNDS
    assert shares == sorted(shares)
    Local(effort="high").group(table, [KAnonymity(2)])
    Local().group(table, [KAnonymity(50)])
    assert len(times) == local_reopen.ROUNDS


def test_it_begins_with_the_best_of_several_beginnings():
    random = np.random.default_rng(7)
    letters = {f"c{j}": [f"{x:02d}" for x in random.zipf(1.5, 1500).clip(0, 60)] for j in range(5)}
    table = code(pl.DataFrame(letters), Schema.build(quasi={name: Prefix(2) for name in letters}))
    found = begun(table, [KAnonymity(30)], 0)
    others = [
        loss_of(found.matrix, found.pairs, start(found.matrix, found.pairs, found.rules, 0, schedule=schedule))
        for schedule in local_reopen.OTHERS
    ]
    assert len({round(x, 6) for x in others}) > 1
    search(found, 0)
    assert found.loss <= min(others) + 1e-9
