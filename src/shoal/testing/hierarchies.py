"""Laws of hierarchies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.core.hierarchy.base import Hierarchy
from shoal.core.levels import Levels
from shoal.testing.law import law

TEXTS = ("", "10115", "10117", "10", "a/b", "a/c", "F. Ott", "naïve 🐟", "*")


def check_hierarchy(spec: Hierarchy, values: Sequence[Any] | None = None) -> None:
    """Hold a hierarchy to its laws, on ``values`` it knows; by default its leaves, its domain, or some texts.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> check_hierarchy(Prefix(5), ["10115", "10117", "20095"])
    """
    distinct = _values(spec, values).drop_nulls().unique().sort()
    for present in (distinct, distinct.extend_constant(None, 1), distinct[:1]):
        before = present.clone()
        levels, codes = spec.compile(present)
        law(present.equals(before, null_equal=True), spec, "the input is untouched")
        law(len(codes) == len(present), spec, "every value has a code")
        law(bool((codes >= 0).all()), spec, "the values it was given are known to it")
        _nodes(spec, levels)
        _costs(spec, levels)
        again, same = spec.compile(present)
        law(np.array_equal(codes, same) and np.array_equal(levels.codes, again.codes), spec, "the same again")
        if present.null_count():
            law(codes[-1] == levels.missing == levels.size - 1, spec, "a missing value has the last code")
    _alone(spec, distinct)


def _values(spec: Hierarchy, values: Sequence[Any] | None) -> pl.Series:
    if values is not None:
        return pl.Series(values)
    leaves = spec.leaves()
    if leaves is not None:
        return leaves
    return pl.Series(TEXTS) if spec.ends is None else pl.Series(np.linspace(*spec.ends, 9))


def _nodes(spec: Hierarchy, levels: Levels) -> None:
    law(levels.codes.dtype == np.int32, spec, "codes are of 32 bits")
    law(bool((levels.codes[:, -1] == 0).all()), spec, "there is one root")
    for at in range(levels.depth):
        column = levels.codes[:, at]
        runs = column[0] == 0 and set(np.diff(column).tolist()) <= {0, 1}
        law(runs, spec, f"every node of level {at} is a run of codes")
        law(len(levels.labels(at)) == column[-1] + 1, spec, f"every node of level {at} has a label")
    for at in range(levels.depth - 1):
        pairs = np.unique(levels.codes[:, at : at + 2], axis=0)
        law(
            len(pairs) == levels.codes[-1, at] + 1, spec, f"every node of level {at} lies in one node of level {at + 1}"
        )


def _costs(spec: Hierarchy, levels: Levels) -> None:
    climb = np.array([levels.costs(at)[levels.codes[:, at]] for at in range(levels.depth)])
    law(bool((climb[0] == 0).all()), spec, "an exact value loses nothing")
    law(bool(((climb >= 0) & (climb <= 1)).all()), spec, "a loss lies between 0 and 1")
    law(bool((np.diff(climb, axis=0) >= 0).all()), spec, "the loss rises with the level")


def _alone(spec: Hierarchy, values: pl.Series) -> None:
    """Where levels are fixed, a value reads the same whoever else is there, and by the labeller, too."""
    if spec.grows is not None:
        return
    fixed = spec.fixed(spec.use)
    together = _labels(*fixed.compile(values))
    labeller = fixed.labeller()
    for at in range(len(values)):
        alone = _labels(*fixed.compile(values[at : at + 1]))[0]
        law(alone == together[at], spec, f"value {at} has the same labels alone as among others")
        if labeller is not None and values.dtype == pl.String:
            law(labeller(values[at]) == alone[:-1], spec, f"the labeller agrees about value {at}")


def _labels(levels: Levels, codes: Any) -> list[list[str]]:
    return [[levels.labels(at)[int(levels.codes[code, at])] for at in range(levels.depth)] for code in codes]
