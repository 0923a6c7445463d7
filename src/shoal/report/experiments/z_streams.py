"""Seed 000, chapters 4 to 6, on generated streams of the published shape and on real ones: CSV and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.datasets.streams import stream
from shoal.measures.entropy import entropy, k_share, released_sets, residual
from shoal.report.chart import Axis, Lines, Mark, Series, draw, write
from shoal.streams.z_stream import Pushed, ZStream, z_anonymity

SCALE = 0.02  # of the published sizes
ZS = {"ecommerce": (1, 3, 5, 10, 20), "domains": (1, 5, 20, 100, 900), "positions": (1, 2, 5, 50, 150)}


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """Tables 4.1-4.3 and 6.1-6.5, p_k against z, and z over time under each tuner, into ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    sets = _sets(shared)
    table = pl.DataFrame(
        [row for name, frame in sets.items() for row in _levels(name, frame)], infer_schema_length=None
    )
    table.write_csv(out / "levels.csv")
    pl.DataFrame([row for name, frame in sets.items() for row in _noise(name, frame)]).write_csv(out / "noise.csv")
    tuned = pl.DataFrame([row for name, frame in sets.items() for row in _tuned(name, frame)])
    tuned.write_csv(out / "tuned.csv")
    for name in sets:
        write(draw(_p_by_z(name, table)), out / f"p_by_z_{name}.svg")
        write(draw(_z_over_time(name, tuned)), out / f"z_over_time_{name}.svg")
    return table


def _sets(shared: Path | None) -> dict[str, pl.DataFrame]:
    sets = {name: stream(name, SCALE) for name in ZS}
    real = (
        None if shared is None else next((p for p in (shared, shared / "data") if (p / "gowalla_nyc").is_dir()), None)
    )
    if real is not None:
        shop = pl.read_parquet(real / "ecommerce_events" / "ecommerce_oct2019_first_3h.parquet")
        path = pl.col("category_code").fill_null("none") + "." + pl.col("product_id").cast(pl.String)
        when = pl.col("event_time").cast(pl.String).str.slice(0, 19).str.to_datetime().dt.epoch("s").cast(pl.Float64)
        sets["ecommerce, real"] = shop.select(time=when, subject=pl.col("user_id").cast(pl.String), value=path)
    return sets


def _run(frame: pl.DataFrame, z: int, **options: Any) -> tuple[ZStream, Pushed]:
    made = z_anonymity(z, "1h", "path", key=b"experiment" * 4, **options)
    return made, made.push_many(frame["time"], frame["subject"], frame["value"])


def _hidden(frame: pl.DataFrame, values: pl.Series, k: int) -> tuple[float, float]:
    """p_k over everyone in the last window, and the entropy of what is released of them."""
    last = frame["time"] >= frame["time"].max() - 3600  # type: ignore[operator]
    people = frame["subject"].filter(last).rank("dense").cast(pl.Int32).to_numpy() - 1
    nodes = values.filter(last).rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
    sizes, empty = released_sets(np.ascontiguousarray(people), np.ascontiguousarray(nodes), int(people.max()) + 1)
    return k_share(sizes, empty, k), entropy(sizes)


def _levels(name: str, frame: pl.DataFrame) -> list[dict[str, Any]]:
    rows = []
    before = _hidden(frame, frame["value"], 2)[1]
    for z in ZS[name.split(",")[0]]:
        for generalize in (True, False):
            made, out = _run(frame, z, generalize=generalize)
            count = made.counters
            p, after = _hidden(frame, out.values, 2)
            shares = {f"level_{at}": 100 * count.get(f"level_{at}", 0) / frame.height for at in range(6)}
            row = {"stream": name, "z": z, "generalized": generalize, **shares}
            rows.append(
                row
                | {"withheld": 100 * count["withheld"] / frame.height, "p_2": p, "residual": residual(after, before)}
            )
    return rows


def _noise(name: str, frame: pl.DataFrame) -> list[dict[str, Any]]:
    rows = []
    z = ZS[name.split(",")[0]][3]
    for generalize in (False, True):
        for most in (0.0, 0.25, 1 / 3, 0.5):
            for count in (False, True) if most else (False,):
                noise: dict[str, Any] = {"noise": {"most": most, "count": count}, "allow_noise": True} if most else {}
                made, out = _run(frame, z, generalize=generalize, **noise)
                released = made.counters["released"]
                rows.append(
                    {
                        "stream": name,
                        "z": z,
                        "generalized": generalize,
                        "most": most,
                        "counted": count,
                        "withheld": 100 * made.counters["withheld"] / frame.height,
                        "volume": 100 * (released + len(out.fakes) - frame.height) / frame.height,
                        "least_real": made.figures()["least_real"],
                    }
                )
    return rows


def _tuned(name: str, frame: pl.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for by in ("search", "incremental", "model"):
        tune = {"goal": {"k": 2, "probability": 0.8}, "every": "30m", "by": by, "start": 10}
        made, _ = _run(frame, 1, tune=tune)
        rows += [
            {"stream": name, "by": by, "hour": d.effect / 3.6e9, "z": d.z, "p": d.p, "reached": d.reached}
            for d in made.decisions
        ]
    return rows


def _p_by_z(name: str, table: pl.DataFrame) -> Lines:
    rows = table.filter(pl.col("stream") == name)
    series = [
        Series(label, part["z"].to_list(), part["p_2"].to_list(), markers=True)
        for label, part in (
            ("generalized", rows.filter("generalized")),
            ("exact or nothing", rows.filter(~pl.col("generalized"))),
        )
    ]
    return Lines(
        name=f"p-by-z-{name}",
        title=f"People hidden among two, by z: {name}",
        x=Axis("z", log=True),
        y=Axis("people hidden", form="percent", low=0, high=1),
        series=series,
    )


def _z_over_time(name: str, table: pl.DataFrame) -> Lines:
    rows = table.filter(pl.col("stream") == name)
    series = [
        Series(str(by), part["hour"].to_list(), part["p"].to_list(), step=True)
        for (by,), part in rows.group_by("by", maintain_order=True)
    ]
    return Lines(
        name=f"z-over-time-{name}",
        title=f"p reached by each tuner over time: {name}",
        x=Axis("hours"),
        y=Axis("people hidden among two", form="percent", low=0, high=1),
        series=series,
        marks=[Mark(0.8, "goal")],
    )
