"""What was promised and what the verifier found, as one table for every page."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.groups import Finding
from shoal.report.page import Grid

HEAD = ["Verdict", "Promise", "Asked", "Worst group", "Groups that break it", "Counted", ""]


def findings_grid(findings: Sequence[Finding]) -> Grid:
    """A row per promise; the last column is left out where no finding has a note.

    >>> grid = findings_grid([Finding("5-anonymity", True, 5, 7, 12, 0, "people")])
    >>> grid.rows, grid.marks
    ([('✓ kept', '5-anonymity', '5', '7', '0 of 12', 'people')], ['good'])
    """
    width = len(HEAD) if any(f.note for f in findings) else len(HEAD) - 1
    rows = [
        (
            "✓ kept" if f.kept else "✗ broken",
            f.promise,
            f"{f.asked:g}",
            f"{f.reached:.4g}",
            f"{f.broken:,} of {f.groups:,}",
            f.unit,
            f.note,
        )[:width]
        for f in findings
    ]
    return Grid(HEAD[:width], rows, marks=["good" if f.kept else "bad" for f in findings])
