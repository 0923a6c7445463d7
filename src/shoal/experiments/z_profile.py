"""Tables 3.4 and 3.5 and Figures 3.1 to 3.5 of Bacconi 2021: what the streams look like, generated and real."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from shoal.core.hierarchy.path import Path as PathHierarchy
from shoal.experiments import calibration
from shoal.experiments.progress import said
from shoal.experiments.z_data import afternoon, real
from shoal.report.stream_profile import profile_of, save


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """One folder of CSV and pictures per stream, and how the generated ones are calibrated: published and ours."""
    for name, frame in said({**afternoon(), **real(shared)}.items()):
        save(profile_of(frame, hierarchy=PathHierarchy()), out / name.replace(", ", "_"), name)
    table = calibration.table()
    table.write_csv(out / "calibration.csv")
    return table
