"""The profile of a stream for people: as text, as tables, as pictures (Bacconi 2021, Figures 3.1 to 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from shoal.core.columns import require_columns
from shoal.core.errors import InputError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.schema import one_role_each
from shoal.core.time import DAYS, Unit, duration, micros, words
from shoal.measures.stream_profile import Spread, StreamProfile, profile
from shoal.report.chart import Axis, Bars, Chart, Heat, draw, write
from shoal.streams.chains import Coder
from shoal.streams.texts import Printer

KEY = b"profiles are of one run"  # fingerprints are compared within it and thrown away


def profile_of(
    frame: pl.DataFrame,
    *,
    time: str = "time",
    subject: str = "subject",
    value: str = "value",
    hierarchy: Hierarchy | None = None,
    unit: Unit = "s",
    window: str | int | float = "1h",
    zone: str | int | float = 0,
) -> StreamProfile:
    """The profile of a frame of events.

    >>> events = pl.DataFrame({"time": [0, 60], "subject": ["a", "b"], "value": ["x", "x"]})
    >>> profile_of(events).people.count
    2
    """
    one_role_each({"time": [time], "subject": [subject], "value": [value]}, "measure")
    hint = "--time, --subject and --value say which"
    require_columns((time, subject, value), frame.columns, "measure", error=InputError, hint=hint)
    coded = Coder(hierarchy, KEY, value).code(frame[value])
    chains = np.where((coded.codes >= 0)[:, None], coded.chains[np.maximum(coded.codes, 0)], 0) if frame.height else (
        np.zeros((0, 1), np.int64)
    )  # fmt: skip
    people = Printer(KEY, "subject").column(frame[subject].cast(pl.String))
    return profile(micros(frame[time], unit), people, chains, duration(window, where="--window"), duration(zone))


def text(found: StreamProfile) -> str:
    """A table for the terminal.

    >>> events = pl.DataFrame({"time": [0, 60], "subject": ["a", "b"], "value": ["x", "x"]})
    >>> text(profile_of(events)).splitlines()[0]
    '2 events over 1m'
    """
    people = found.people
    lines = [
        f"{found.events:,} events over {words(int(found.hours * 3600) * 1_000_000)}"
        + (f", {found.unusable:,} more unusable" if found.unusable else ""),
        f"{people.count:,} people: {people.mean:,.1f} events each, median {people.median:,.0f}, most {people.most:,}",
        "",
        f"{'level':<7}{'values':>10}{'events each':>14}{'most':>12}{'of one person':>16}{'their events':>14}",
    ]
    for level in found.levels:
        s = level.samples
        lines.append(
            f"{level.level:<7}{s.count:>10,}{s.mean:>14,.1f}{s.most:>12,}{level.lone:>16,}{level.lone_events:>14.1%}"
        )
    quiet, busy = np.nanmin(found.week), np.nanmax(found.week)
    lines += ["", f"events an hour: {quiet:,.0f} at the quietest, {busy:,.0f} at the busiest"]
    return "\n".join(lines)


def tables(found: StreamProfile) -> Mapping[str, pl.DataFrame]:
    """The same as tables: spreads over people and values, traffic by the hour, exposure by value."""
    rows = [("people", -1, b.low, b.high, b.count) for b in found.people.bins]
    rows += [("values", at.level, b.low, b.high, b.count) for at in found.levels for b in at.samples.bins]
    levels = [
        {
            "level": at.level,
            "values": at.samples.count,
            "events_mean": at.samples.mean,
            "events_median": at.samples.median,
            "events_most": at.samples.most,
            "values_of_one_person": at.lone,
            "events_of_one_person": at.lone_events,
        }
        for at in found.levels
    ]
    hours = range(168)
    return {
        "spread": pl.DataFrame(rows, schema=["of", "level", "low", "high", "count"], orient="row"),
        "levels": pl.DataFrame(levels),
        "week": pl.DataFrame(
            {"day": [DAYS[h // 24] for h in hours], "hour": [h % 24 for h in hours], "events": found.week}
        ),
        "exposed": pl.DataFrame({"rank": np.arange(1, len(found.exposed) + 1), "p": found.exposed}),
    }


def pictures(found: StreamProfile, name: str = "stream") -> Mapping[str, Chart]:
    """Samples per person, samples per value at each level, and the week."""
    out: dict[str, Chart] = {"people": _bars(f"{name}-people", f"Events per person: {name}", "people", found.people)}
    for at in found.levels:
        title = f"Events per value, level {at.level}: {name}"
        out[f"values_{at.level}"] = _bars(f"{name}-values-{at.level}", title, "values", at.samples)
    week = np.array(found.week, float).reshape(7, 24)
    seen = [day for day in range(7) if not np.isnan(week[day]).all()]
    out["week"] = Heat(
        name=f"{name}-week",
        title=f"Events per hour, as a share of the busiest: {name}",
        rows=[DAYS[day] for day in seen],
        columns=[f"{hour:02d}" for hour in range(24)],
        values=[(week[day] / np.nanmax(week)).tolist() for day in seen],
        form="percent",
        low=0.0,
        high=1.0,
        width=1100,
    )
    return out


def _bars(name: str, title: str, what: str, found: Spread) -> Bars:
    labels = [f"{b.low:,}" if b.low == b.high else f"{b.low:,} to {b.high:,}" for b in found.bins]
    return Bars(
        name=name,
        title=title,
        labels=labels,
        series={what: [float(b.count) for b in found.bins]},
        axis=Axis(f"{what} with so many events", form="whole"),
    )


# what `shoal measure --stream --out` writes into its folder
PROFILE = ("spread.csv", "levels.csv", "week.csv", "exposed.csv", "people.svg", "values_*.svg", "week.svg", "page.html")


def save(found: StreamProfile, folder: Path, name: str = "stream") -> list[Path]:
    """All tables as CSV and all pictures as SVG into a folder.

    >>> from tempfile import TemporaryDirectory
    >>> events = pl.DataFrame({"time": [0, 60], "subject": ["a", "b"], "value": ["x", "x"]})
    >>> with TemporaryDirectory() as folder:
    ...     len(save(profile_of(events), Path(folder)))
    7
    """
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for label, table in tables(found).items():
        out.append(folder / f"{label}.csv")
        table.write_csv(out[-1])
    for label, chart in pictures(found, name).items():
        out.append(folder / f"{label}.svg")
        write(draw(chart), out[-1])
    return out
