"""What a stream released over time, as a table and as pictures: volume by level, z, p_k, entropy, residual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.report.chart import Axis, Chart, Lines, Mark, Series, draw, write


def table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """One row per mark; levels that never occurred are left out."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    empty = [c for c in frame.columns if c.startswith("level_") and not frame[c].sum()]
    return frame.drop(empty)


def volume(found: pl.DataFrame, name: str = "stream") -> Lines:
    """Events by what became of them, on top of each other (Bacconi 2021, Figure 4.4)."""
    x = found["time"].to_list()
    names = [c for c in found.columns if c.startswith("level_")]
    bands, below = [], np.zeros(len(x))
    for at, column in enumerate([*names, "withheld"]):
        above = below + found[column].to_numpy()
        label = "withheld" if column == "withheld" else f"level {column.removeprefix('level_')}"
        bands.append(Series(label, x, low=below.tolist(), high=above.tolist(), colour=at))
        below = above
    return Lines(
        name=f"volume-{name}",
        title=f"Events by what became of them: {name}",
        x=Axis("", form="time"),
        y=Axis("events", form="whole", low=0),
        series=bands,
        width=760,
    )


def hidden(found: pl.DataFrame, k: int, name: str = "stream", goal: float | None = None) -> Lines:
    """p_k of what was released in the window before each mark."""
    return Lines(
        name=f"hidden-{name}",
        title=f"People hidden among {k}, over time: {name}",
        x=Axis("", form="time"),
        y=Axis("people hidden", form="percent", low=0, high=1),
        series=[Series(f"p_{k}", found["time"].to_list(), [_number(v) for v in found["p_k"]])],
        marks=[Mark(goal, "goal")] if goal is not None else [],
        width=760,
    )


def thresholds(found: pl.DataFrame, name: str = "stream") -> Lines:
    """The z in force."""
    return Lines(
        name=f"z-{name}",
        title=f"z over time: {name}",
        x=Axis("", form="time"),
        y=Axis("z", form="whole", low=0),
        series=[Series("z", found["time"].to_list(), [float(z) for z in found["z"]], step=True)],
        width=760,
    )


def information(found: pl.DataFrame, name: str = "stream") -> Lines:
    """Entropy of what people showed and of what was released of them (Bacconi 2021, Figure 5.8)."""
    x = found["time"].to_list()
    return Lines(
        name=f"entropy-{name}",
        title=f"Entropy before and after: {name}",
        x=Axis("", form="time"),
        y=Axis("bits", low=0),
        series=[
            Series("before", x, found["entropy_before"].to_list()),
            Series("after", x, found["entropy_after"].to_list()),
        ],
        width=760,
    )


def pictures(found: pl.DataFrame, k: int, name: str = "stream", goal: float | None = None) -> Mapping[str, Chart]:
    """All of them."""
    return {
        "volume": volume(found, name),
        "p_k": hidden(found, k, name, goal),
        "z": thresholds(found, name),
        "entropy": information(found, name),
    }


# what `shoal stream --figures` writes into its folder; page.html is made of the same figures
FIGURES = ("figures.csv", "volume.svg", "p_k.svg", "z.svg", "entropy.svg", "page.html")


def save(
    rows: Sequence[Mapping[str, Any]], k: int, folder: Path, name: str = "stream", goal: float | None = None
) -> list[Path]:
    """``figures.csv`` and one SVG per picture.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save([], 2, Path(folder))  # nobody watched: nothing to draw
    []
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not rows:
        return []
    found = table(rows)
    out = [folder / "figures.csv"]
    found.write_csv(out[0])
    for label, chart in pictures(found, k, name, goal).items():
        out.append(folder / f"{label}.svg")
        write(draw(chart), out[-1])
    return out


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
