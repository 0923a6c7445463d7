"""Cuts by node: the compiled parting beside a plain one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.core.table import code
from shoal.kernels.shared import promises as compiled
from shoal.kernels.tables.mondrian_nodes import by_node
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules

NODES = {"a": {"b": ["1", "2", "3"], "c": ["4"]}, "d": {"e": ["5", "6"], "f": ["7", "8", "9"]}}
PATH = {v: (v, mid, top) for top, below in NODES.items() for mid, leaves in below.items() for v in leaves}


def parted(values: list[str], ill: list[str], k: int, l: int) -> list[list[int]]:
    """Children that keep the promises alone, largest first, then all others; the smallest join these while needed."""
    paths = {v: (*PATH[v], "*") for v in values}
    level = next(at for at in range(4) if len({paths[v][at] for v in values}) == 1)
    child = defaultdict(list)
    for row, value in enumerate(values):
        child[paths[value][level - 1]].append(row)

    def fine(rows: list[int]) -> bool:
        return len(rows) >= k and len({ill[row] for row in rows}) >= l

    kept = sorted((rows for rows in child.values() if fine(rows)), key=len)
    rest = [row for rows in child.values() if not fine(rows) for row in rows]
    while kept and rest and not fine(rest):
        rest += kept.pop(0)
    parts = kept + ([rest] if rest else [])
    return parts if len(parts) > 1 else []


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(PATH)), st.sampled_from("xyz")), min_size=2, max_size=25),
    st.integers(1, 4),
    st.integers(1, 2),
)
def test_parts_are_children_that_keep_the_promises_and_a_rest(rows, k, l):
    frame = pl.DataFrame(rows, schema=["q", "s"], orient="row")
    table = code(frame, Schema.build(quasi={"q": Tree(nodes=NODES)}, sensitive=["s"]))
    low, high = int(table.matrix.min()), int(table.matrix.max())
    if low == high:
        return
    rules = compile_rules(table, [KAnonymity(k), LDiversity(l, "s")])
    n, most = table.size, table.levels[0].size
    order, ends = np.empty(most, np.int64), np.empty(most + 2, np.int64)
    work, laid = compiled.workspace(rules), np.arange(n).astype(np.int32)
    scratch = (work, np.zeros(most, np.int64), order, ends)
    count = by_node(
        table.matrix,
        table.shape(),
        rules,
        laid,
        np.empty(n, np.int32),
        0,
        n,
        0,
        np.int32(low),
        np.int32(high),
        *scratch,
    )
    sorted_rows = [rows[i] for i in table.rows]
    expected = parted([v for v, _ in sorted_rows], [s for _, s in sorted_rows], k, l)
    found = [sorted(laid[ends[p] : ends[p + 1]].tolist()) for p in range(count)]
    assert sorted(laid.tolist()) == list(range(n)), "no row is lost"
    if len({len(part) for part in expected}) == len(expected) or not expected:  # equal sizes may be taken in any order
        assert sorted(found) == sorted(sorted(part) for part in expected)
    assert len(found) == len(expected)
