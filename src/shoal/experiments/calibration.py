"""Generated streams beside what is published of the real ones: shape, people, levels by z, exposure."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from shoal.datasets.streams import SHAPES, stream
from shoal.experiments import z_data
from shoal.experiments.z_data import AFTERNOON, play

# Bacconi 2021, Tables 4.1 to 4.3: percent of the events by level, the last of each row withheld. Of positions the
# thesis counts two levels of streets in Table 3.4 and one in Table 4.3: here both are "street"
PUBLISHED: dict[str, dict[int, tuple[float, ...]]] = {
    "ecommerce": {
        3: (64.2, 35.2, 0.1, 0.0, 0.5),
        5: (51.5, 47.1, 0.3, 0.0, 1.1),
        10: (37.5, 58.6, 0.8, 0.1, 3.0),
        20: (27.0, 64.0, 2.3, 0.3, 6.4),
    },
    "domains": {5: (88.9, 11.0, 0.1), 20: (82.0, 17.2, 0.8), 100: (72.1, 23.2, 4.7), 900: (46.7, 28.6, 24.7)},
    "positions": {
        2: (88.3, 10.1, 1.3, 0.2, 0.1, 0.0),
        5: (70.6, 24.8, 3.7, 0.6, 0.2, 0.1),
        50: (19.8, 51.7, 22.5, 3.2, 2.5, 0.3),
        150: (5.4, 48.7, 34.0, 8.0, 3.5, 0.4),
    },
}
TABLES = {"ecommerce": "Table 4.1", "domains": "Table 4.2", "positions": "Table 4.3"}
NAMES = {
    "ecommerce": ("0-generalization", "1-generalization", "2-generalization", "3-generalization", "anonymized"),
    "domains": ("attribute", "category", "anonymized"),
    "positions": ("street", "city", "province", "region", "country", "anonymized"),
}
# Jha et al. 2020, section VI: of 27,482 sites in an hour
EXPOSURE = {"most exposed site": 0.34, "sites above 0.1": 7.0, "sites above 0.01": 70.0}


def shape() -> list[dict[str, Any]]:
    """Tables 3.4 and 3.5: tuples, people, values of every level, over the whole published span."""
    rows: list[dict[str, Any]] = []
    for name, known in SHAPES.items():
        frame = stream(name, z_data.SHRINK)
        per_person = known.events / known.people
        rows += [
            _row("Table 3.4", name, "tuples", known.events * z_data.SHRINK, frame.height),
            _row("Table 3.5", name, "users", known.people * z_data.SHRINK, frame["subject"].n_unique()),
            _row("Table 3.5", name, "samples per user", per_person, frame.height / frame["subject"].n_unique()),
        ]
        counted = nodes(frame, len(known.levels))
        rows += [
            _row("Table 3.4", name, f"{at}-level categories" if at else "attributes", count * z_data.SHRINK, found)
            for at, (count, found) in enumerate(zip(known.levels, counted, strict=True))
        ]
    return rows


def nodes(frame: pl.DataFrame, depth: int) -> list[int]:
    """Different nodes of each level; a value whose path is short has none above its last."""
    steps = frame.select(s=pl.col("value").unique().str.split("."))
    left = [pl.col("s").list.len().cast(pl.Int64) - at for at in range(depth)]
    return [int(steps.filter(n > 0).select(pl.col("s").list.head(n).list.join(".").n_unique()).item()) for n in left]


def levels() -> list[dict[str, Any]]:
    """Tables 4.1 to 4.3: percent of the events by level and z, on hours of usual traffic."""
    rows = []
    for name, published in PUBLISHED.items():
        frame = stream(name, z_data.SHRINK, hours=AFTERNOON[name])
        for z, wanted in published.items():
            count = play(frame, max(1, round(z * z_data.SHRINK)))[0].counters
            found = [100 * count.get(f"level_{at}", 0) / frame.height for at in range(6)]
            if name == "positions":
                found = [found[0] + found[1], *found[2:]]
            ours = [*found[: len(wanted) - 1], 100 * count["withheld"] / frame.height]
            rows += [
                _row(TABLES[name], name, f"z = {z}: {NAMES[name][at]}, %", value, ours[at])
                for at, value in enumerate(wanted)
            ]
    return rows


def exposure() -> list[dict[str, Any]]:
    """p_a of an hour of domains: which share of the people shows each site."""
    hour = stream("domains", z_data.SHRINK, hours=(15.5, 16.5)).select("subject", "value").unique()
    shares = hour.group_by("value").len()["len"].to_numpy() / hour["subject"].n_unique()
    ours = (shares.max(), np.sum(shares > 0.1), np.sum(shares > 0.01))
    return [
        _row("Jha et al. 2020, section VI", "domains", what, value, found)
        for (what, value), found in zip(EXPOSURE.items(), ours, strict=True)
    ]


def _row(item: str, name: str, what: str, published: float, ours: float) -> dict[str, Any]:
    return {"item": item, "stream": name, "what": what, "published": float(published), "ours": float(ours)}


def table() -> pl.DataFrame:
    """All of it."""
    return pl.DataFrame([*shape(), *levels(), *exposure()])
