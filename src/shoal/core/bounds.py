"""Released numbers as two typed columns, the least and the greatest value a cell may stand for: for models and sums."""

from __future__ import annotations

import math
from collections.abc import Collection

import polars as pl

from shoal.core.cells import read
from shoal.core.errors import UsageError

LOW, HIGH = "_low", "_high"


def bounded(released: pl.DataFrame, numbers: Collection[str]) -> tuple[pl.DataFrame, dict[str, tuple[str, ...]]]:
    """The frame with ``age_low`` and ``age_high`` in the place of ``age``, and the columns that stand for each number.

    An exact number is both; of a set, the least and the greatest; a suppressed one lies between minus and plus
    infinity; a missing one stays missing. They are whole numbers where all are. An open end (``≥80``) is infinite.

    >>> frame, made = bounded(pl.DataFrame({"age": ["[20, 29]", "31", None], "sex": ["f", "*", "f"]}), ["age"])
    >>> frame.rows(), made
    ([(20, 29, 'f'), (31, 31, '*'), (None, None, 'f')], {'age': ('age_low', 'age_high')})
    """
    columns: list[pl.Series] = []
    made: dict[str, tuple[str, ...]] = {}
    for column in released.iter_columns():
        ends = _ends(column) if column.name in numbers and column.dtype == pl.String else None
        if ends is None:
            columns.append(column)
            continue
        names = (column.name + LOW, column.name + HIGH)
        taken = next((name for name in names if name in released.columns), None)
        if taken is not None:
            raise UsageError(f"there is a column {taken!r} already", where="cells", hint="rename it, or ask for text")
        made[column.name] = names
        columns += [_typed(end, name) for end, name in zip(ends, names, strict=True)]
    return pl.DataFrame(columns), made


def _ends(column: pl.Series) -> tuple[pl.Series, pl.Series] | None:
    """Both ends of every cell; nothing if a cell is neither a number, an interval nor suppressed."""
    cells = column.unique(maintain_order=True)
    ends: list[tuple[float | None, float | None]] = []
    for text in cells.to_list():
        cell = read(text)
        if text is None:
            ends.append((None, None))
        elif cell.kind == "suppressed":
            ends.append((-math.inf, math.inf))
        elif cell.kind == "interval":
            ends.append((cell.low, cell.high))
        else:
            try:
                numbers = [float(one) for one in cell.members or (text,)]
            except ValueError:
                return None
            ends.append((min(numbers), max(numbers)))
    at = pl.DataFrame({"cell": cells, "place": range(len(cells))})
    place = pl.DataFrame({"cell": column}).join(at, on="cell", nulls_equal=True, maintain_order="left")["place"]
    low, high = (pl.Series([pair[side] for pair in ends], dtype=pl.Float64).gather(place) for side in (0, 1))
    return low, high


def _typed(numbers: pl.Series, name: str) -> pl.Series:
    known = numbers.drop_nulls()
    whole = bool((known.is_finite() & (known.round() == known) & (known.abs() < 2**53)).all())
    return numbers.cast(pl.Int64 if whole else pl.Float64).alias(name)
