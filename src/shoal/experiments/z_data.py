"""The streams of the z experiments: generated ones of the published shape, and real ones where they are at hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from shoal.core.hierarchy.path import Path as PathHierarchy
from shoal.datasets.streams import stream
from shoal.promises.z_anonymity import WindowHours, ZAnonymity
from shoal.streams.z_stream import Pushed, ZStream, z_anonymity

KEY = b"experiment" * 4
BATCH = 65_536
NAMES = ("ecommerce", "domains", "positions")
# hours of the afternoon at the published size: traffic is as at the hour of a usual event (`USUAL` of the generator)
AFTERNOON = {"ecommerce": (15.0, 18.0), "domains": (15.0, 16.5), "positions": (15.0, 18.0)}
# whole days, thinned: what is kept of people and values
THIN = {"ecommerce": 0.05, "domains": 0.03, "positions": 0.1}
SHRINK = 1.0  # tests make everything smaller with it


def afternoon() -> dict[str, pl.DataFrame]:
    """Some hours of each use case, at the published density."""
    return {name: stream(name, SHRINK, hours=AFTERNOON[name]) for name in NAMES}


def days() -> dict[str, pl.DataFrame]:
    """Each use case over its days and nights, thinned."""
    return {name: stream(name, THIN[name] * SHRINK) for name in NAMES}


def real(shared: Path | None) -> dict[str, pl.DataFrame]:
    """Real streams below ``shared``, if it is given and has them: shop events, names asked for, check-ins."""
    places = () if shared is None else (shared, shared / "data")
    root = next((p for p in places if (p / "ecommerce_events").is_dir()), None)
    if root is None:
        return {}
    made = {
        "ecommerce, real": _shop(root / "ecommerce_events" / "ecommerce_oct2019_first_3h.parquet"),
        "domains, real": _names(root / "network_domains" / "dns_queries.parquet"),
        "positions, real": _places(root / "gowalla_nyc" / "checkins.parquet"),
    }
    return {name: frame for name, frame in made.items() if frame is not None}


def _shop(path: Path) -> pl.DataFrame | None:
    if not path.exists():
        return None
    value = pl.col("category_code").fill_null("none") + "." + pl.col("product_id").cast(pl.String)
    when = pl.col("event_time").cast(pl.String).str.slice(0, 19).str.to_datetime().dt.epoch("s").cast(pl.Float64)
    return pl.read_parquet(path).select(time=when, subject=pl.col("user_id").cast(pl.String), value=value)


def _names(path: Path) -> pl.DataFrame | None:
    """Names asked for, written most general step first."""
    if not path.exists():
        return None
    value = pl.col("domain").str.split(".").list.reverse().list.join(".")
    return pl.read_parquet(path).select(time=_seconds(), subject="client", value=value).drop_nulls().sort("time")


def _places(path: Path) -> pl.DataFrame | None:
    """Check-ins of the busiest week, as cells of a tenth and a hundredth of a degree, then the venue."""
    if not path.exists():
        return None
    frame = pl.read_parquet(path).drop_nulls()
    busiest = frame.group_by(pl.col("ts").dt.truncate("1w")).len().sort("len", "ts")["ts"][-1]
    cells = [
        (pl.col("lat") * by).floor().cast(pl.Int64).cast(pl.String)
        + "x"
        + (pl.col("lon") * by).floor().cast(pl.Int64).cast(pl.String)
        for by in (10, 100)
    ]
    value = cells[0] + "." + cells[1] + "." + pl.col("venue_id").cast(pl.String)
    week = frame.filter(pl.col("ts").dt.truncate("1w") == busiest)
    return week.select(time=_seconds(), subject=pl.col("user").cast(pl.String), value=value).sort("time")


def _seconds() -> pl.Expr:
    return pl.col("ts").dt.epoch("us").cast(pl.Float64) / 1e6


def play(
    frame: pl.DataFrame, z: int, *, every: str | None = None, k: int = 2, **options: Any
) -> tuple[ZStream, list[Pushed], list[dict[str, Any]]]:
    """A stream through z-anonymity, window one hour (``windows`` by schedule): the outcomes, and the figures."""
    windows = tuple(WindowHours(*hours) for hours in options.pop("windows", ()))
    made = z_anonymity(z, "1h", "path", key=KEY, **options)
    if windows:
        made = ZStream(ZAnonymity(z, "1h", windows), PathHierarchy(), made.method, key=KEY)
    watch = made.watch(every, k) if every is not None else None
    parts = [made.push_many(part["time"], part["subject"], part["value"]) for part in frame.iter_slices(BATCH)]
    return made, parts, watch.finish() if watch is not None else []


def played(frame: pl.DataFrame, z: int, look: Callable[[int, Pushed], None], **options: Any) -> pl.Series:
    """What is released of a stream; ``look`` sees where each batch begins and what became of it, then it is gone."""
    made = z_anonymity(z, "1h", "path", key=KEY, **options)
    values, first = [], 0
    for part in frame.iter_slices(BATCH):
        pushed = made.push_many(part["time"], part["subject"], part["value"])
        look(first, pushed)
        values.append(pushed.values)
        first += part.height
    released: pl.Series = pl.concat(values)
    return released
