"""What a release of events loses and risks, read off its texts: the same for every stream method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.bounds import bounded

Ints = NDArray[np.int64]


def event_loss(original: pl.DataFrame, released: pl.DataFrame, events: Ints, columns: Sequence[str]) -> float:
    """The mean loss of a quasi cell, 0 to 1; an event that was withheld counts 1 in each of its cells.

    ``events`` says which original row each released one is, -1 for invented ones. A number loses the width of its
    interval over the width of the column; another value loses by how many different ones stand under its text.

    >>> before = pl.DataFrame({"site": ["a.x", "b.x", "c.y"]})
    >>> round(event_loss(before, pl.DataFrame({"site": ["x", "x"]}), np.array([0, 1]), ["site"]), 3)
    0.667
    """
    real = events >= 0
    shown = released.filter(pl.Series(real)).select(columns)
    true = original.select(columns)[events[real]]
    if not original.height or not len(columns):
        return 0.0
    kept = sum(float((1 - _column_loss(original[name], true[name], shown[name])).sum()) for name in columns)
    return 1 - kept / (original.height * len(columns))


def _column_loss(column: pl.Series, true: pl.Series, shown: pl.Series) -> NDArray[np.float64]:
    if column.dtype.is_numeric() and shown.dtype == pl.String:
        ends, made = bounded(shown.to_frame(), [shown.name])
        width = float(column.max() or 0) - float(column.min() or 0)  # type: ignore[arg-type]
        if made:
            low, high = (ends[name].cast(pl.Float64).to_numpy() for name in made[shown.name])
            lost = np.clip((high - low) / width, 0, 1) if width > 0 else np.zeros(len(low))
            # a cell without ends is a star: everything is lost
            return np.where(np.isnan(lost), 1.0, lost)
    pairs = pl.DataFrame({"true": true, "shown": shown})
    under = pairs.select(pl.col("true").n_unique().over("shown"))["true"].to_numpy()
    # of the whole column: values that were withheld count, too
    everything = column.n_unique()
    lost = (under - 1) / (everything - 1) if everything > 1 else np.zeros(len(under))
    return np.where(shown.is_null().to_numpy(), 1.0, lost)  # this cell of the event was withheld


def window_risk(people: pl.Series, cells: pl.DataFrame, windows: Ints) -> float:
    """The mean chance of finding a person by all that is released of them within one window.

    >>> who = pl.Series(["ada", "bob", "eve"])
    >>> round(window_risk(who, pl.DataFrame({"site": ["x", "x", "y"]}), np.zeros(3, np.int64)), 3)
    0.667
    """
    if not len(people):
        return 0.0
    # each cell once: how often somebody shows it is not what is compared
    told = pl.DataFrame({"who": people, "window": windows, "cells": cells.to_struct("cells")}).unique()
    sets = told.group_by("window", "who").agg(pl.col("cells").sort())
    alike = sets.group_by("window", "cells").len()
    # the mean over people of 1 by the size of their set
    return alike.height / sets.height
