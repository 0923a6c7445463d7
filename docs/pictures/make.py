"""Draw the pictures of the front page again: ``python docs/pictures/make.py``. The same release, the same bytes."""

from __future__ import annotations

import sys
from pathlib import Path

from shoal.api import Quasi, anonymize
from shoal.datasets.hospital import hospital
from shoal.report import pictures
from shoal.report.chart import Line, sheet, write
from shoal.report.model import Report


def release() -> Report:
    """The report of a release of 20,000 invented patients."""
    quasi: Quasi = {
        "age": "range",
        "zip": {"use": "prefix", "length": 5},
        "sex": "suppress",
        "ins_co": "suppress",
        "gluc": "range",
    }
    made = anonymize(hospital(20_000, seed=7), quasi=quasi, sensitive=["diag"], subject="pid", k=5, l=2)
    report = made.report
    assert isinstance(report, Report)
    return report


def front(report: Report) -> str:
    """The verdict, and the four pictures that every report has."""
    kept = "; ".join(f"{finding.promise} {'kept' if finding.kept else 'BROKEN'}" for finding in report.findings)
    charts = [
        pictures.group_sizes(report),
        pictures.loss_per_column(report),
        pictures.risk(report),
        pictures.withheld(report),
    ]
    words = [
        Line(f"{'✓ verified' if report.verified else '✗ not verified'}: {kept}"),
        Line(f"{report.released:,} of {report.rows:,} rows released by {report.method['use']}", "soft"),
    ]
    return sheet("report", "A release of hospital patients", charts, lines=words)


def main(folder: Path) -> None:
    """Write the pictures into a folder."""
    write(front(release()), folder / "report.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
