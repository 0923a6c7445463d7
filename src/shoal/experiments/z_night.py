"""Bacconi 2021, 7.1: the dip of p_k at the morning rise, and what a longer window at night or a profile do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from shoal.experiments.progress import said
from shoal.experiments.z_data import days, play
from shoal.report.chart import Axis, Lines, Mark, Series, draw, write
from shoal.streams.tuning import Decision

GOAL = 0.8
NIGHT = (("22:00", "07:00", (), "3h"),)
MORNING = (4, 11)  # hours between which the dip is looked for


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """p_k over time as it is, with a longer window at night, and with z known from the day before."""
    out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    dips: list[dict[str, Any]] = []
    for name, frame in said(days().items()):
        twice = _second_day(frame)
        tune = {"goal": {"k": 2, "probability": GOAL}, "every": "30m"}
        plain, _, first = play(twice, 1, every="10m", tune=tune)
        ways = {
            "as it is": first,
            "window of 3 h at night": play(twice, 1, every="10m", tune=tune, windows=NIGHT)[2],
            "z by the hour known": play(twice, 1, every="10m", tune=tune | {"profile": _profile(plain.decisions)})[2],
            "z by the hour learned": play(twice, 1, every="10m", tune=tune | {"learn": True})[2],
        }
        for way, found in ways.items():
            rows += [{"stream": name, "way": way, **row} for row in found]
            dips.append({"stream": name, "way": way, **_dip(found)})
        write(draw(_picture(name, ways)), out / f"morning_{name}.svg")
    table = pl.DataFrame(dips)
    table.write_csv(out / "dips.csv")
    pl.DataFrame(rows, infer_schema_length=None).write_csv(out / "over_time.csv")
    return table


def _second_day(frame: pl.DataFrame) -> pl.DataFrame:
    """The first day twice, so that there is something to have learned."""
    day = frame.filter(pl.col("time") < 86400)
    return pl.concat([day, day.with_columns(pl.col("time") + 86400)])


def _profile(decisions: list[Decision]) -> list[dict[str, Any]]:
    """The greatest z that was chosen in each hour, and the next: a rise is expected half an hour before it comes."""
    most: dict[int, int] = {}
    for decision in decisions:
        hour = decision.effect // 3_600_000_000 % 24
        for at in (hour, (hour - 1) % 24):
            most[at] = max(most.get(at, 1), decision.z)
    return [{"from": f"{at:02d}:00", "to": f"{at + 1:02d}:00", "z": z} for at, z in sorted(most.items())]


def _dip(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The least p_k of the second morning, how far below the goal on average, and what it cost."""
    low, high = 24 + MORNING[0], 24 + MORNING[1]
    part = [r for r in found if low * 3600 <= r["time"] < high * 3600 and r["p_k"] is not None]
    missing = [max(0.0, GOAL - r["p_k"]) for r in part]
    exact, events = sum(r["level_0"] for r in part), sum(r["events"] for r in part)
    return {
        "least_p": min((r["p_k"] for r in part), default=None),
        "mean_shortfall": sum(missing) / max(1, len(missing)),
        "exact_share": exact / max(1, events),
    }


def _picture(name: str, ways: dict[str, list[dict[str, Any]]]) -> Lines:
    series = [
        Series(way, [r["time"] for r in found if r["time"] >= 86400], [r["p_k"] for r in found if r["time"] >= 86400])
        for way, found in ways.items()
    ]
    return Lines(
        name=f"morning-{name}",
        title=f"People hidden among two on the second day: {name}",
        x=Axis("", form="time"),
        y=Axis("people hidden", form="percent", low=0, high=1),
        series=series,
        marks=[Mark(GOAL, "goal")],
        width=760,
    )
