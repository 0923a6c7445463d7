"""Figures 4.4 and 5.1 to 5.8 of Bacconi 2021: what is released over days and nights, by a fixed z and each tuner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from shoal.core.hierarchy.grid import Grid
from shoal.experiments import z_data
from shoal.experiments.progress import said
from shoal.experiments.z_data import BATCH, KEY, THIN, days, play, real
from shoal.report.stream_figures import save
from shoal.streams.z_stream import z_anonymity

# z of Figure 4.4 and first z of Figures 5.1 to 5.4, at the published size
FIXED = {"ecommerce": 10, "domains": 900, "positions": 60}
START = {"ecommerce": 10, "domains": 900, "positions": 50}
# figure, k, goal, tuner, how often
FIGURES: tuple[tuple[str, int, float | None, str, str], ...] = (
    ("4.4 fixed", 2, None, "", ""),
    ("5.1 incremental, 30m", 2, 0.8, "incremental", "30m"),
    ("5.2 incremental, 5m", 2, 0.8, "incremental", "5m"),
    ("5.5 search", 2, 0.8, "search", "30m"),
    ("5.6 search, high goal", 3, 0.9, "search", "30m"),
    ("5.8 entropy", 3, 0.8, "search", "30m"),
)


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """One folder per figure and stream: figures.csv, volume by level, p_k, z, entropy. Returns all rows."""
    rows: list[dict[str, Any]] = []
    for name, frame in said({**days(), **real(shared)}.items()):
        kind = name.split(",")[0]
        fixed, start = (max(2, round(z * THIN[kind] * z_data.SHRINK)) for z in (FIXED[kind], START[kind]))
        for figure, k, goal, by, often in said(FIGURES, name):
            # the search as published: what Shoal adds to it is no part of these figures
            options = {
                "by": by,
                "every": often,
                "start": start if by == "incremental" else None,
                "correct": by != "search",
            }
            tune = {} if goal is None else {"tune": {"goal": {"k": k, "probability": goal}, **options}}
            _, _, found = play(frame, fixed if goal is None else 1, every="15m", k=k, **tune)
            save(found, k, out / figure.split(" ")[0] / name.replace(", ", "_"), f"{name}, {figure}", goal)
            rows += [{"figure": figure, "stream": name, "k": k, "goal": goal, **row} for row in found]
    rows += _cells(out)
    table = pl.DataFrame(rows, infer_schema_length=None)
    table.write_csv(out / "over_time.csv")
    return table


def _cells(out: Path) -> list[dict[str, Any]]:
    """Figure 5.7: positions as cells of a grid, two choices of sizes, k = 3 and p = 0.9."""
    frame = days()["positions"]
    # places of the generated streets: each value stands at a point of its own in a square of about 220 km
    spot = frame["value"].hash(1)
    points = (
        pl.DataFrame({"h": spot})
        .select(
            (44 + (pl.col("h") % 20_000) / 10_000).cast(pl.String)
            + ","
            + (7 + (pl.col("h") // 20_000 % 28_000) / 10_000).cast(pl.String)
        )
        .to_series()
    )
    rows = []
    for figure, sizes in (("5.7a cells", (3000, 6000, 12_000, 48_000)), ("5.7b cells", (10_000, 50_000, 200_000))):
        tune = {"goal": {"k": 3, "probability": 0.9}, "every": "30m"}
        made = z_anonymity(1, "1h", Grid(sizes), key=KEY, tune=tune)
        watch = made.watch("15m")
        for at in range(0, frame.height, BATCH):
            part = frame[at : at + BATCH]
            made.push_many(part["time"], part["subject"], points[at : at + BATCH])
        found = watch.finish()
        save(found, 3, out / figure.split(" ")[0] / "positions", f"positions, {figure}", 0.9)
        rows += [{"figure": figure, "stream": "positions", "k": 3, "goal": 0.9, **row} for row in found]
    return rows
