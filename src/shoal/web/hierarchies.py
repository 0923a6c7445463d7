"""Hierarchies as a person builds them: from fields of a form, by grouping values, or from another tool's file."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from shoal.core.comparable import comparable
from shoal.core.errors import InputError, UsageError
from shoal.core.hierarchy import HIERARCHIES
from shoal.core.hierarchy.tree import Tree, leaf_texts
from shoal.policy import hierarchies as natural

MOST_GROUPED = 300  # values that can be grouped by hand
STEP = "/"  # parts the names of groups inside groups
PERIODS = ("minute", "hour", "day", "week", "month", "quarter", "year", "decade")


def kinds_for(dtype: pl.DataType) -> dict[str, str]:
    """The hierarchies that fit a type, and what each does.

    >>> list(kinds_for(pl.Int64()))
    ['range', 'intervals', 'tree', 'suppress']
    """
    if dtype.is_numeric():
        return {
            "range": "intervals as narrow as each group allows",
            "intervals": "intervals between borders you choose",
            "tree": "groups of values",
            "suppress": "all or nothing",
        }
    if dtype in (pl.Date, pl.Datetime):
        return {"calendar": "days, months, years", "suppress": "all or nothing"}
    return {
        "tree": "groups of values",
        "prefix": "loses its last characters",
        "path": "loses its last steps",
        "grid": "positions on a grid",
        "sets": "the few values of each group, as a set",
        "suppress": "all or nothing",
    }


def started(column: pl.Series, use: str) -> dict[str, Any]:
    """A first hierarchy of a kind, fitted to the values.

    >>> started(pl.Series([18, 93]), "range")
    {'use': 'range', 'min': 10, 'max': 100}
    """
    import yaml

    if use == "range":
        made = yaml.safe_load(natural.span(column))
        return made if isinstance(made, dict) else {"use": "range"}
    if use == "intervals":
        return {"use": "intervals", "borders": borders_of(column)}
    if use == "prefix":
        return dict(yaml.safe_load(natural.prefix(column)))
    if use == "calendar":
        return dict(yaml.safe_load(natural.calendar(column.dtype)))
    if use == "grid":
        return dict(yaml.safe_load(natural.GRID))
    if use == "tree":
        return {"use": "tree", "nodes": {str(v): None for v in common(column, MOST_GROUPED)}}
    return {"use": use}


def borders_of(column: pl.Series, count: int = 4) -> list[float]:
    """Round borders that part the values about evenly.

    >>> borders_of(pl.Series(range(100)))
    [20, 40, 60, 80]
    """
    values = column.drop_nulls().cast(pl.Float64)
    values = values.filter(values.is_finite())
    if not len(values):
        return [0]
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    span = (high - low) or 1.0
    digits = 0
    while span * 10**digits < 20:
        digits += 1
    quantiles = [float(values.quantile((i + 1) / (count + 1)) or 0.0) for i in range(count)]
    step = 5 if span >= 50 else 1
    rounded = [round(q / step) * step if not digits else round(q, digits) for q in quantiles]
    kept = sorted({r for r in rounded if low < r <= high})
    return [int(r) if float(r).is_integer() else r for r in kept] or [round((low + high) / 2, digits + 1)]


def common(column: pl.Series, most: int) -> list[Any]:
    """The commonest values, as a tree writes them."""
    counted = comparable(column).drop_nulls().value_counts(sort=True, name="\0n")
    return leaf_texts(counted[counted.columns[0]].head(most)).to_list()


def preview(column: pl.Series, said: Any, most: int = 12) -> tuple[pl.DataFrame, list[int]]:
    """How common values read at every level, and how many nodes each level has."""
    hierarchy = HIERARCHIES.decode(said, "hierarchy")
    values = comparable(column).unique()
    levels, codes = hierarchy.compile(values, where="hierarchy")
    unknown = int((codes < 0).sum())
    if unknown == len(codes) and len(codes):
        raise UsageError(
            "no value of the column is known to this hierarchy",
            where="hierarchy",
            hint="does its file belong to this column?",
        )
    shown = comparable(column).drop_nulls().value_counts(sort=True, name="\0n")
    first = shown[shown.columns[0]].head(most).sort()
    place = {v: int(c) for v, c in zip(values.to_list(), codes.tolist(), strict=True)}
    kept = [v for v in first.to_list() if place.get(v, -1) >= 0]
    labels = {
        f"{at}": levels.labels(at).gather([int(levels.codes[place[v], at]) for v in kept]) for at in range(levels.depth)
    }
    return pl.DataFrame({"value": [str(v) for v in kept], **labels}), [
        int(levels.codes[:, at].max(initial=-1)) + 1 for at in range(levels.depth)
    ]


def nodes_of(groups: Mapping[str, str]) -> dict[str, Any]:
    """Nested nodes from each value's group; ``Europe / Germany`` is a group inside a group.

    >>> nodes_of({"Berlin": "Europe / Germany", "Rome": "Europe", "Lima": ""})
    {'Europe': {'Germany': {'Berlin': None}, 'Rome': None}, 'Lima': None}
    """
    out: dict[str, Any] = {}
    for value, group in groups.items():
        node = out
        for part in [p.strip() for p in group.split(STEP) if p.strip()]:
            if node.get(part) is None:
                node[part] = {}
            node = node[part]
        if node.get(value) is None:
            node[value] = None
        else:
            raise UsageError("a group has the name of a value", where="tree", hint="give the group another name")
    return out


def groups_of(nodes: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """Each value's group, as :func:`nodes_of` takes it.

    >>> groups_of({"Europe": {"Germany": ["Berlin"]}, "Lima": None})
    {'Berlin': 'Europe / Germany', 'Lima': ''}
    """
    out: dict[str, str] = {}
    for name, below in nodes.items():
        inside = f"{above} {STEP} {name}" if above else name
        if isinstance(below, Mapping) and below:
            out |= groups_of(below, inside)
        elif isinstance(below, list) and below:
            out |= {str(leaf): inside for leaf in below}
        else:
            out[name] = above
    return out


def imported(path: Path, shown_as: str) -> dict[str, Any]:
    """A tree from a CSV of paths, leaf first, as ARX writes it; the policy then holds it whole."""
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            first = lines.readline(1 << 16)
        mark = max(";,\t", key=first.count)
        paths = Tree(file=str(path), separator=mark).paths()
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InputError(
            "cannot be read as a tree", where=shown_as, hint="expected lines as Berlin;Germany;*"
        ) from None
    nodes: dict[str, Any] = {}
    for leaf, *inner in paths.values():
        node = nodes
        for label in reversed(inner[:-1]):
            node = node.setdefault(label, {})
        node[leaf] = None
    return {"use": "tree", "nodes": nodes}
