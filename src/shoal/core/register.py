"""A table beside a register of people: both coded by the same levels, so that a box covers entries of either."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from shoal.core.errors import InputError
from shoal.core.frames import require
from shoal.core.schema import Schema
from shoal.core.table import Register, Table, code


def beside_register(table: Table, frame: pl.DataFrame, schema: Schema, register: pl.DataFrame) -> Table:
    """The coded ``table`` of ``frame`` with a register; its levels then know the values of both.

    People of the register whose value is unknown or missing where rows would be withheld are left out: they hide
    nobody. O((rows + register) x columns) and one sort.

    >>> from shoal.core.schema import Column
    >>> frame, schema = pl.DataFrame({"age": [20, 30]}), Schema({"age": Column("quasi")})
    >>> beside = beside_register(code(frame, schema), frame, schema, pl.DataFrame({"age": [20, 25, 25]}))
    >>> beside.matrix.tolist(), beside.register.matrix.tolist(), beside.register.people.tolist()
    ([[0], [2]], [[0], [1]], [1, 2])
    """
    names = list(table.names)
    require(register, names, "register")
    rows = frame.select(names)
    both = code(pl.concat([rows, _alike(rows, register.select(names))]), Schema({n: schema[n] for n in names}))
    place = np.full(frame.height + register.height, -1, np.int64)
    place[both.rows] = np.arange(both.size)
    others = place[frame.height :]
    entries, people = np.unique(both.matrix[others[others >= 0]], axis=0, return_counts=True)
    return replace(
        table,
        matrix=both.matrix[place[table.rows]],
        levels=both.levels,
        register=Register(entries.astype(np.int32), people.astype(np.int64)),
    )


def _alike(rows: pl.DataFrame, register: pl.DataFrame) -> pl.DataFrame:
    """The register with the types of the table."""
    out = []
    for name in rows.columns:
        try:
            out.append(register[name].cast(rows[name].dtype))
        except pl.exceptions.PolarsError:
            raise InputError(
                f"holds {register[name].dtype} in the register and {rows[name].dtype} in the table",
                where=f"column {name!r}",
                hint="write it alike in both",
            ) from None
    return pl.DataFrame(out)
