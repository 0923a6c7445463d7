"""Loss of a release, from its text alone: no line of it is shared with the methods or measures it scores.

GCP is the mean over rows and quasi columns of a cell's normalized certainty penalty. Categories: leaves under the
label over leaves of the whole tree, 0 for a leaf. Numbers: width over width of the original's domain; the width of a
label of a tree is that of its members within that domain. A withheld row counts 1 in every column.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

SPAN = re.compile(r"^\[(-?[\d.]+), (-?[\d.]+)[\])]$")


def paths(file: Path) -> list[list[str]]:
    """The lines of a hierarchy file: leaf first, root last."""
    with file.open(encoding="utf-8", newline="") as lines:
        return [row for row in csv.reader(lines, delimiter=";") if row]


def penalties(original: pl.Series, tree: list[list[str]] | None) -> dict[str, float]:
    """The penalty of every label a column's cells may read."""
    if tree is None:
        return {}
    out: dict[str, float] = {}
    numeric = original.dtype.is_numeric()
    low, high = (float(original.min()), float(original.max())) if numeric else (0.0, 0.0)
    if numeric:
        tree = [path for path in tree if low <= float(path[0]) <= high]
    for level in range(len(tree[0])):
        under: dict[str, set[str]] = {}
        for path in tree:
            under.setdefault(path[level], set()).add(path[0])
        for label, leaves in under.items():
            if numeric:
                numbers = [float(leaf) for leaf in leaves]
                found = (max(numbers) - min(numbers)) / (high - low)
            else:
                found = len(leaves) / len(tree) if len(leaves) > 1 else 0.0
            out[label] = max(out.get(label, 0.0), found)
    return out


def gcp(original: pl.DataFrame, released: pl.DataFrame, trees: Mapping[str, list[list[str]] | None]) -> float:
    """GCP in percent of ``released``, whose missing rows count as withheld; ``trees`` names the quasi columns."""
    total = float((original.height - released.height) * len(trees))
    for name, tree in trees.items():
        known = penalties(original[name], tree)
        counts = released.group_by(name).len()
        for label, count in zip(counts[name].cast(pl.String), counts["len"], strict=True):
            total += count * (known[label] if tree is not None else _width(original[name], label))
    return 100 * total / (original.height * len(trees))


def smallest(released: pl.DataFrame, quasi: list[str]) -> int:
    """Rows of the smallest group of rows that read alike."""
    return int(released.group_by(quasi).len()["len"].min() or 0)


def _width(original: pl.Series, label: str) -> float:
    span = SPAN.match(label)
    if span is None:
        return 1.0 if label == "*" else 0.0
    return (float(span[2]) - float(span[1])) / (float(original.max()) - float(original.min()))
