"""Curves as the methods take them: a matrix without gaps, and beside it what is published with every curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import InputError, UsageError
from shoal.series.pattern import Floats

Missing = Literal["error", "drop", "previous", "interpolate", "stretch", "zero"]
MADE = ("interpolate", "stretch")  # rules that make numbers which were not there
LARGEST = 1e100  # squares of widths must stay finite


@dataclass(frozen=True)
class Curves:
    """A row of ``values`` per subject, a column per instant; ``sensitive`` has the same rows."""

    values: Floats
    instants: Sequence[Any]  # column names, or points in time
    sensitive: pl.DataFrame
    rows: NDArray[np.int64]  # the input position of each curve (of its first row)
    whole: bool  # all values were integers
    left_out: tuple[str, ...] = ()  # columns that are not published
    dropped: int = 0  # subjects that fell to the rule for missing instants
    variables: tuple[str, ...] = ()  # of a panel: as many blocks of instants stand side by side

    @property
    def names(self) -> list[str]:
        """A name per column: the instant, of a panel after the name of its variable."""
        times = [str(i) for i in self.instants]
        return [f"{name} {time}" for name in self.variables for time in times] if self.variables else times


def complete(
    values: Floats, rule: Missing, instants: Sequence[Any], where: str, *, at: Floats | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Values without gaps (NaN), and which curves are left; ``at`` says how far apart instants are, if unevenly.

    >>> complete(np.array([[1.0, np.nan, 3.0]]), "interpolate", ["W0", "W1", "W2"], "data")[0].tolist()
    [[1.0, 2.0, 3.0]]
    """
    gaps = np.isnan(values)
    if np.isinf(values).any() or (np.abs(values[~gaps]) > LARGEST).any():
        row, column = np.argwhere(np.isinf(values) | (np.abs(np.where(gaps, 0.0, values)) > LARGEST))[0]
        raise InputError(
            f"expected a finite number up to {LARGEST:g}, found another at instant {instants[column]} of row {row + 1}",
            where=where,
            hint="scale the values, or drop the series",
        )
    kept: NDArray[np.bool_] = np.ones(len(values), np.bool_)
    if not gaps.any():
        return values, kept
    if rule == "error":
        row, column = np.argwhere(gaps)[0]
        raise InputError(
            f"{int(gaps.sum()):,} instants are missing in {int(gaps.any(axis=1).sum()):,} of {len(values):,} series; "
            f"the first is instant {instants[column]} of row {row + 1}",
            where=where,
            hint="declare a rule: missing = drop, previous, interpolate, stretch or zero",
        )
    # a curve of gaps alone has nothing to fill them from
    kept = np.asarray(~(gaps.any(axis=1) if rule == "drop" else gaps.all(axis=1)))
    values, gaps = values[kept].copy(), gaps[kept]
    if rule == "zero":
        values[gaps] = 0.0
    elif rule in ("previous", "interpolate", "stretch"):
        for row in np.flatnonzero(gaps.any(axis=1)):
            values[row] = _fill(values[row], gaps[row], rule, np.arange(values.shape[1]) if at is None else at)
    elif rule != "drop":
        raise UsageError(
            f"there is no rule {rule!r} for missing instants",
            where="missing",
            hint="one of: error, drop, previous, interpolate, stretch, zero",
        )
    return values, kept


def complete_blocks(
    values: Floats, rule: Missing, instants: Sequence[Any], blocks: int, *, at: Floats | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """The same for the variables of a panel, block by block; a curve is left if every block of it is."""
    parts = np.split(values, blocks, axis=1)
    done = [complete(part, rule, instants, "series", at=at) for part in parts]
    kept = np.logical_and.reduce([fine for _, fine in done])
    whole = np.full((len(values), values.shape[1]), np.nan)
    width = len(instants)
    for block, (part, fine) in enumerate(done):
        # blocks may have dropped different curves: they meet again by their rows
        whole[fine, block * width : (block + 1) * width] = part
    return whole[kept], kept


def _fill(curve: Floats, gap: NDArray[np.bool_], rule: str, at: NDArray[Any]) -> Floats:
    known = np.flatnonzero(~gap)
    if rule == "interpolate":
        out: Floats = np.interp(at, at[known], curve[known])
        return out
    if rule == "stretch":  # a shorter curve is the same one, run through faster
        return np.interp(np.linspace(0, len(known) - 1, len(curve)), np.arange(len(known)), curve[known])
    # before the first known value there is no previous one: the first stands in
    last = known[np.maximum(np.searchsorted(known, np.arange(len(curve)), side="right") - 1, 0)]
    return curve[last]


def number_column(column: pl.Series, where: str) -> tuple[Floats, bool]:
    """A column as floats (missing: NaN), and whether it was whole numbers; text is refused, with its place.

    >>> values, whole = number_column(pl.Series([1, None, 3]), "W0")
    >>> values.tolist(), whole
    ([1.0, nan, 3.0], True)
    """
    if column.dtype.is_numeric() or column.dtype == pl.Null:
        return column.cast(pl.Float64).fill_null(np.nan).to_numpy().astype(np.float64), column.dtype.is_integer()
    numbers = column.cast(pl.Float64, strict=False) if column.dtype == pl.String else None
    wrong = [0] if numbers is None else (numbers.is_null() & column.is_not_null()).arg_true().to_list()
    if numbers is None or wrong:
        raise InputError(
            f"expected numbers in instant {column.name!r}, found {_kind(column)}, first in row {wrong[0] + 1}",
            where=where,
            hint="name the instants, or declare the column as sensitive or as the id",
        )
    return numbers.fill_null(np.nan).to_numpy().astype(np.float64), False


def _kind(column: pl.Series) -> str:
    return "text" if column.dtype == pl.String else f"values of type {column.dtype}"


def refuse_repeats(ids: pl.Series, where: str) -> None:
    """An id stands for one subject and must be there."""
    if ids.null_count():
        raise InputError(
            f"{ids.null_count():,} rows have no id; the first is row {int(ids.is_null().arg_true()[0]) + 1}",
            where=where,
            hint="give every series an id, or leave the id column out of the call",
        )
    repeated = ids.is_duplicated().arg_true()
    if len(repeated):
        raise InputError(
            f"{len(repeated):,} rows share their id with another row; the first is row {int(repeated[0]) + 1}",
            where=where,
            hint="one row per subject: aggregate the rows, or give a long table with `time` and `value`",
        )


def refuse_kind(column: pl.Series, where: str) -> None:
    """A column that stands beside curves holds single values of one kind: lists and objects cannot be compared."""
    kind = column.dtype
    if kind.is_nested() or kind in (pl.Object, pl.Unknown):
        raise InputError(
            f"expected numbers, text, dates or truth values of one kind, found {kind}",
            where=where,
            hint="convert the column to one plain type",
        )


def sensitive_column(name: str, values: Any) -> pl.Series:
    """Sensitive values given as a list or an array; ``None`` is a missing value.

    >>> sensitive_column("pay", [5, None]).to_list()
    [5, None]
    """
    try:
        if isinstance(values, np.ndarray) and values.dtype != object:
            column = pl.Series(name, values)
        else:
            column = pl.Series(name, list(values))
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):  # its message may quote a value
        raise InputError(
            "the values are of different kinds", where=f"sensitive {name!r}", hint="convert them to one type"
        ) from None
    refuse_kind(column, f"sensitive {name!r}")
    return column
