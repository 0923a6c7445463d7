"""A picture of one release by each table method: ``python docs/pictures/methods.py``. The same bytes every time."""

from __future__ import annotations

import sys
from pathlib import Path

from shoal.api import anonymize
from shoal.datasets.hospital import hospital
from shoal.report import pictures
from shoal.report.chart import Line, sheet, write
from shoal.report.model import Report
from shoal.tables import TABLE_METHODS

QUASI = {"age": "range", "zip": {"use": "prefix", "length": 5}, "sex": "suppress"}


def release(method: str) -> str:
    """The groups and the loss of 2,000 invented patients, with k = 5 and l = 2."""
    patients = hospital(2_000, seed=7)
    made = anonymize(patients, quasi=QUASI, sensitive=["diag"], subject="pid", k=5, l=2, method=method, seed=1)  # type: ignore[arg-type]
    report = made.report
    assert isinstance(report, Report)
    words = Line(
        f"{report.released:,} of {report.rows:,} rows released, {report.loss.gcp:.1%} of the detail lost", "soft"
    )
    charts = [pictures.group_sizes(report), pictures.loss_per_column(report)]
    return sheet(method, f"2,000 patients by {method}: k = 5, l = 2", charts, lines=[words])


def main(folder: Path) -> None:
    """Write the pictures into a folder."""
    for method in TABLE_METHODS.names():
        write(release(method), folder / f"method-{method}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
