"""Which published cells of a column cover a new value, by their texts alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED, read
from shoal.core.comparable import comparable
from shoal.core.errors import UsageError
from shoal.core.schema import Column
from shoal.core.table import hierarchy_for


def covers(distinct: pl.Series, column: Column, cells: Sequence[str | None], where: str) -> NDArray[np.bool_]:
    """``[value, cell]``: whether a cell may stand for a value. O(values x cells).

    A number is covered by its interval, any value by a set it is in, or by a label that its own hierarchy gives it at
    some level. A value that the hierarchy does not know is covered by nothing, not even by a suppressed cell: who was
    released had a known one.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> covers(pl.Series(["101", "201"]), Column("quasi", hierarchy=Prefix(3)), ["10*", "*"], "zip").tolist()
    [[True, True], [False, True]]
    """
    out = np.zeros((len(distinct), len(cells)), np.bool_)
    values = comparable(distinct)
    missing = values.is_null().to_numpy()
    place = {text: at for at, text in enumerate(cells)}
    hierarchy = hierarchy_for(values, column)
    try:
        levels, codes = hierarchy.compile(values, where=where)
    except UsageError:  # another type, or beyond the declared domain
        return out
    sets = _sets(cells) if levels.most else {}
    known = (codes >= 0) & ~missing
    rows = np.flatnonzero(known)
    for at in range(levels.depth):
        labels = levels.labels(at).gather(levels.codes[codes[rows], at]).to_list()
        for row, label in zip(rows, labels, strict=True):
            if label in place:
                out[row, place[label]] = True
            if at == 0 and label in sets:
                out[row, sets[label]] = True
    if values.dtype.is_numeric():
        numbers = values.cast(pl.Float64).fill_null(np.nan).to_numpy()
        for text, at in place.items():
            if text is not None and text != SUPPRESSED:
                cell = read(text)
                if cell.kind == "interval":
                    upper = numbers <= cell.high if cell.closed else numbers < cell.high
                    out[:, at] |= known & (numbers >= cell.low) & upper
                elif cell.kind == "exact":
                    out[:, at] |= known & np.array([cell.covers(v) for v in numbers], np.bool_)
    if SUPPRESSED in place:
        out[known, place[SUPPRESSED]] = True
    if column.missing == "value" and missing.any():
        for text in (None, SUPPRESSED):
            if text in place:
                out[missing, place[text]] = True
    return out


def _sets(cells: Sequence[str | None]) -> dict[str, list[int]]:
    """The sets that each value is in."""
    out: dict[str, list[int]] = {}
    for at, text in enumerate(cells):
        for member in read(text).members:
            out.setdefault(member, []).append(at)
    return out
