"""More regions than a few share the steps of these few, unless a number of steps was given."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from shoal.core.schema import Schema
from shoal.core.table import code
from shoal.promises.k_anonymity import KAnonymity
from shoal.tables.improve import Improver
from shoal.tables.local import SHARED, Local


def steps_of(method: Local, parts: int, monkeypatch) -> int:
    table = code(pl.DataFrame({"age": list(range(400))}), Schema.build(quasi={"age": None}))
    spent: list[int] = []
    monkeypatch.setattr(Improver, "run", lambda self, steps, *_: spent.append(steps))
    method.group(replace(table, parts=parts), [KAnonymity(2)])
    return spent[0]


@pytest.mark.parametrize("effort", ["normal", "high"])
def test_many_regions_share_the_steps_of_a_few(effort, monkeypatch):
    alone = steps_of(Local(effort=effort), 1, monkeypatch)
    assert alone > 0
    assert steps_of(Local(effort=effort), SHARED, monkeypatch) == alone
    assert steps_of(Local(effort=effort), 4 * SHARED, monkeypatch) == -(-alone // 4)


def test_a_number_of_steps_is_what_each_region_gets(monkeypatch):
    assert steps_of(Local(effort=700), 4 * SHARED, monkeypatch) == 700
