"""A release joined with a register, as an attacker who has both would."""

from __future__ import annotations

import polars as pl

from shoal.core.frames import require
from shoal.core.schema import Schema
from shoal.core.table import hierarchy_for
from shoal.measures.attack import Attack, join, members


def attacked(
    shown: pl.DataFrame,
    known: pl.DataFrame,
    names: list[str],
    schema: Schema | None = None,
    representatives: pl.DataFrame | None = None,
) -> Attack:
    """What the join on some columns finds; a schema's hierarchies are known, and so are the means of curves.

    >>> attacked(pl.DataFrame({"age": ["[20, 29]"]}), pl.DataFrame({"age": [21, 25]}), ["age"]).unique
    0
    """
    for frame, where in ((shown, "release"), (known, "register")):
        require(frame, names, where)
    if representatives is not None:
        from shoal.series.narrowing import narrow

        shown = narrow(shown, representatives, names)
    nodes = {}
    for name in names:
        if schema is not None and name in schema.columns:
            hierarchy = hierarchy_for(known[name], schema[name])
            nodes[name] = members(hierarchy.compile(known[name].unique())[0])
    return join(shown, known, names, nodes)
