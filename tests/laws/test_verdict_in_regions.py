"""A method that breaks a promise in one region of many: the verdict refuses, and nothing is left behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.connect import files
from shoal.core.errors import PromiseError
from shoal.promises.rules import least_people
from shoal.release.job import job_of
from shoal.release.regional.choose import LargeTable
from shoal.release.wishes import Wishes
from shoal.tables import TABLE_METHODS
from shoal.tables.base import Grouping, TableMethod

PEOPLE, EACH, YOUNGEST = 500, 5, 20


class Careless(TableMethod, frozen=True, tag="careless"):
    """Where the youngest are, as many people as asked but one have a group of their own; other rows are one group."""

    sound: bool = False

    def form(self, table, promises, *, seed=0, progress=None) -> Grouping:
        labels = np.zeros(table.size, np.int32)
        if self.sound or table.levels[0].text(table.matrix[:1, 0], table.matrix[:1, 0])[0] != f"{YOUNGEST}":
            return Grouping(labels)
        who = np.arange(table.size) if table.people is None else table.people
        new = np.zeros(table.size, np.bool_)
        new[np.unique(who, return_index=True)[1]] = True
        labels[np.cumsum(new) < least_people(promises)] = 1
        return Grouping(labels)


@pytest.fixture
def careless(monkeypatch):
    """The method, listed as one of another package, and regions of a few rows."""
    monkeypatch.setitem(vars(TABLE_METHODS), "_plugins", [SimpleNamespace(name="careless", load=lambda: Careless)])
    monkeypatch.setattr("shoal.release.regional.plan.FEWEST", 40)


def released(tmp_path, ending: str, **asked: Any):
    """Everybody has several rows, all of one age: few people are many rows."""
    age = np.repeat(YOUNGEST + np.arange(PEOPLE) // 8, EACH)
    frame = pl.DataFrame({"age": age, "who": np.repeat(np.arange(PEOPLE), EACH), "diag": ["a", "b"] * (len(age) // 2)})
    source, target = tmp_path / "table.parquet", tmp_path / f"release.{ending}"
    files.write(frame, str(source))
    job = job_of(Wishes({"quasi": ["age"], "sensitive": ["diag"], "k": 6, "seed": 5, **asked}))
    return LargeTable(job, str(source), frame.height, 400, 1, types=job.types, at_once=2).release(str(target)), target


ROADS = pytest.mark.parametrize(
    ("ending", "asked"),
    [
        ("csv", {}),
        ("parquet", {}),
        ("ndjson", {"cells": "bounds"}),
        ("csv", {"subject": "who", "waive": ["linked-rows"]}),
        ("parquet", {"subject": "who", "waive": ["linked-rows"], "cells": "bounds"}),
    ],
    ids=["rows", "parquet", "bounds", "people", "bounds of people"],
)


@ROADS
def test_one_group_of_too_few_in_one_region_stops_the_release(ending, asked, tmp_path, careless):
    with pytest.raises(PromiseError, match="the release was not made: 6-anonymity: broken") as error:
        released(tmp_path, ending, method="careless", **asked)
    assert f"({'people' if 'subject' in asked else 'rows'} counted)" in str(error.value)
    assert [f.name for f in tmp_path.iterdir()] == ["table.parquet"]


@ROADS
def test_the_same_method_without_its_fault_is_released(ending, asked, tmp_path, careless):
    release, target = released(tmp_path, ending, method={"use": "careless", "sound": True}, **asked)
    assert release.report.verified
    assert target.stat().st_size
