"""Tables 3.4 and 3.5 and Figures 3.1 to 3.5 of Bacconi 2021: what the streams look like, generated and real."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from shoal.core.hierarchy.path import Path as PathHierarchy
from shoal.experiments.z_data import noon, real
from shoal.report.stream_profile import profile_of, save


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """One folder of CSV and pictures per stream, and the two tables over all of them."""
    rows = []
    for name, frame in {**noon(), **real(shared)}.items():
        found = profile_of(frame, hierarchy=PathHierarchy())
        save(found, out / name.replace(", ", "_"), name)
        row = {"stream": name, "tuples": found.events, "users": found.people.count, "per_user": found.people.mean}
        rows.append(row | {f"values_{at.level}": at.samples.count for at in found.levels})
    table = pl.DataFrame(rows, infer_schema_length=None)
    table.write_csv(out / "tables_3_4_and_3_5.csv")
    return table
