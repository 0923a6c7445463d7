"""Small tables, promises and the loss by its definition: for the laws of `local`."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import strategies as st

from shoal.core.groups import Groups
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.promises.base import Promise
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness

QUASI = {"age": Range(), "zip": Prefix(3), "job": Tree(nodes={"office": ["clerk", "judge"], "sea": ["pilot"]})}
ROWS = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(0, 30),
        "zip": st.sampled_from(["101", "102", "119", "201", "300"]),
        "job": st.none() | st.sampled_from(["clerk", "judge", "pilot"]),
        "ill": st.sampled_from("abcd"),
        "who": st.integers(0, 12),
    }
)
TYPES = {"age": pl.Int64, "zip": pl.String, "job": pl.String, "ill": pl.String, "who": pl.Int64}
FRAMES = st.lists(ROWS, min_size=1, max_size=60).map(lambda rows: pl.DataFrame(rows, schema=TYPES))
PROMISES = st.sampled_from(
    [
        [],
        [LDiversity(3, "ill")],
        [LDiversity(1.8, "ill", kind="entropy")],
        [LDiversity(2, "ill", kind="recursive", c=1.5)],
        [LDiversity(2, "ill", kind="frequency")],
        [TCloseness(0.25, "ill")],
        [TCloseness(0.2, "ill", distance="ordered"), LDiversity(2, "ill")],
    ]
)
WEIGHTS = {"age": 2.0, "zip": 0.5}


def coded(frame: pl.DataFrame, people: bool) -> Table:
    return code(frame, Schema.build(quasi=QUASI, sensitive=["ill"], subject="who" if people else None, weights=WEIGHTS))


def loss(table: Table, labels: np.ndarray) -> float:
    """Total weighted loss by the definition, group by group; a withheld row is wholly lost."""
    total = float((labels < 0).sum() * table.weights.sum())
    for group in range(labels.max(initial=-1) + 1):
        rows = table.matrix[labels == group]
        for j, levels in enumerate(table.levels):
            low, high = rows[:, j].min(keepdims=True), rows[:, j].max(keepdims=True)
            total += len(rows) * table.weights[j] * levels.ncp(low, high)[0]
    return total


def judged(table: Table, labels: np.ndarray, promises: list[Promise]) -> bool:
    kept = labels >= 0
    groups = Groups(
        labels[kept],
        {name: s.values.gather(s.codes[kept]) for name, s in table.sensitive.items()},
        None if table.people is None else table.people[kept],
    )
    return all(p.judge(groups).kept for p in promises)


def reachable(table: Table, promises: list[Promise]) -> bool:
    return judged(table, np.zeros(table.size, np.int32), promises)
