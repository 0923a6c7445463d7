"""Figures 5.9 to 5.12 of Bacconi 2021: what a goal costs, in z (median, least, most) and in residual information."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median
from typing import Any

import polars as pl

from shoal.experiments.progress import said
from shoal.experiments.z_data import days, play, real
from shoal.report.chart import Axis, Lines, Series, draw, write

SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
KS = (2, 3, 4, 5, 6, 7, 8, 9)


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """One row per stream and goal, and two pictures of each stream for each way to vary it."""
    rows: list[dict[str, Any]] = []
    for name, frame in said({**days(), **real(shared)}.items()):
        rows += [_row(name, frame, "p", p, 3) for p in said(SHARES, f"{name}, p =")]
        rows += [_row(name, frame, "k", 0.8, k) for k in said(KS, f"{name}, k =")]
    table = pl.DataFrame(rows, infer_schema_length=None)
    table.write_csv(out / "goals.csv")
    for (name, by), part in table.group_by("stream", "by", maintain_order=True):
        at = f"{by}_{name}".replace(", ", "_")
        write(draw(_z(str(name), str(by), part)), out / f"{'5.9' if by == 'p' else '5.10'}_z_by_{at}.svg")
        write(draw(_left(str(name), str(by), part)), out / f"{'5.11' if by == 'p' else '5.12'}_residual_by_{at}.svg")
    return table


def _row(name: str, frame: pl.DataFrame, by: str, p: float, k: int) -> dict[str, Any]:
    tune = {"goal": {"k": k, "probability": p}, "every": "30m"}
    made, _, found = play(frame, 1, every="30m", k=k, tune=tune)
    zs = [d.z for d in made.decisions] or [made.z]
    out = {"stream": name, "by": by, "p": p, "k": k, "z_median": median(zs), "z_least": min(zs), "z_most": max(zs)}
    reached = [d.reached for d in made.decisions]
    return out | {"residual": mean(r["residual"] for r in found), "reached": mean(reached) if reached else None}


def _x(by: str) -> Axis:
    return Axis("goal: people hidden", form="percent") if by == "p" else Axis("goal: k", form="whole")


def _z(name: str, by: str, part: pl.DataFrame) -> Lines:
    x = [float(v) for v in part[by]]
    low, high = part["z_least"].to_list(), part["z_most"].to_list()
    median_z = [float(v) for v in part["z_median"]]
    return Lines(
        name=f"z-by-{by}-{name}",
        title=f"z by goal (median; band: least to most): {name}",
        x=_x(by),
        y=Axis("z", low=0),
        series=[Series("z", x, median_z, markers=True, low=low, high=high)],
    )


def _left(name: str, by: str, part: pl.DataFrame) -> Lines:
    return Lines(
        name=f"residual-by-{by}-{name}",
        title=f"Residual information by goal: {name}",
        x=_x(by),
        y=Axis("of the entropy", form="percent", low=0, high=1),
        series=[Series("residual", [float(v) for v in part[by]], part["residual"].to_list(), markers=True)],
    )
