"""Laws of table methods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from shoal.core.errors import PromiseError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column, Schema
from shoal.core.table import code
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.release.job import job_of
from shoal.release.wishes import Wishes
from shoal.tables.base import TableMethod
from shoal.testing.law import law

JOBS = {"office": ["clerk", "judge"], "field": ["cook", "sailor"]}
COLUMNS = {
    "age": Column("quasi", hierarchy=Range(min=20, max=60)),
    "zip": Column("quasi", hierarchy=Prefix(3)),
    "job": Column("quasi", hierarchy=Tree(nodes=JOBS)),
    "ill": Column("sensitive"),
}
PROMISES: tuple[tuple[Promise, ...], ...] = ((KAnonymity(3),), (KAnonymity(2), LDiversity(2, "ill")))
ROUNDS = 3


def check_table_method(spec: TableMethod) -> None:
    """Hold a table method to its laws, on small random tables of a known shape.

    >>> from shoal.tables.mondrian import Mondrian
    >>> check_table_method(Mondrian())
    """
    for seed in range(ROUNDS):
        frame = _frame(seed)
        for promises in PROMISES:
            _released(spec, frame, promises, people=bool(seed % 2))
            _grouped(spec, frame, promises, seed)
    _refuses(spec)


def _frame(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    n = 30
    return pl.DataFrame(
        {
            "who": np.arange(n) % 25,
            "age": rng.integers(20, 60, n),
            "zip": rng.choice(["101", "102", "119", "201"], n),
            "job": rng.choice(["clerk", "judge", "cook", "sailor"], n),
            "ill": rng.choice(["asthma", "covid", "gout"], n),
        }
    )


def _released(spec: TableMethod, frame: pl.DataFrame, promises: Sequence[Promise], *, people: bool) -> None:
    schema = Schema(COLUMNS | ({"who": Column("subject")} if people else {}))
    asked = {"schema": schema, "promises": list(promises), "method": spec, "seed": 0, "keep_order": True}
    before = frame.clone()

    def released(rows: pl.DataFrame) -> pl.DataFrame:
        try:
            made = job_of(Wishes(dict(asked))).run(rows)
        except PromiseError as error:
            raise AssertionError(f"{spec.use}: the verifier accepts what it releases ({error})") from None
        law(made.report.verified, spec, "the verifier accepts what it releases")
        gone = sum(made.withheld.values())
        law(made.data.height + gone == rows.height, spec, "rows in are rows released and rows withheld")
        assert made.groups is not None
        kept = np.flatnonzero(made.groups >= 0)
        law(made.data["ill"].equals(rows["ill"].gather(kept)), spec, "sensitive values stay beside their rows")
        return made.data.select(list(COLUMNS))  # type: ignore[no-any-return]

    one = released(frame)
    law(frame.equals(before), spec, "the input is untouched")
    law(one.equals(released(frame)), spec, "the same seed gives the same release")
    turned = released(frame.reverse())
    law(one.sort(one.columns).equals(turned.sort(one.columns)), spec, "the order of the rows does not matter")


def _grouped(spec: TableMethod, frame: pl.DataFrame, promises: Sequence[Promise], seed: int) -> None:
    table = code(frame, Schema(dict(COLUMNS)))
    matrix = table.matrix.copy()
    found = spec.group(table, promises, seed=seed)
    law(np.array_equal(matrix, table.matrix), spec, "the table it is handed is untouched")
    law(found.labels.dtype == np.int32 and len(found.labels) == table.size, spec, "a label of 32 bits per row")
    used = np.unique(found.labels[found.labels >= 0])
    law(np.array_equal(used, np.arange(len(used))), spec, "labels are dense from 0")


def _refuses(spec: TableMethod) -> None:
    table = code(_frame(0)[:4], Schema(dict(COLUMNS)))
    try:
        spec.group(table, [KAnonymity(5)])
    except PromiseError:
        return
    law(False, spec, "a promise that no grouping keeps is a PromiseError (`reachable` raises it)")
