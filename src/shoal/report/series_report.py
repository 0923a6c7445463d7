"""The report of a release of curves: text, JSON, and a page with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from shoal.core.errors import UsageError
from shoal.core.groups import Finding
from shoal.report.model import ending

if TYPE_CHECKING:
    from shoal.series.release import SeriesRelease


class SeriesReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a release of curves.

    >>> import numpy as np
    >>> import shoal
    >>> _, report = shoal.anonymize_series(np.add.outer(np.arange(8), [0, 1, 2, 3]), k=4, p=2)
    >>> report.verified, report.released
    (True, 8)
    """

    title: str
    method: str
    rows: int
    released: int
    withheld: dict[str, int]
    altered: dict[str, int]
    findings: list[Finding]
    verified: bool
    figures: dict[str, float]
    notes: list[str] = []
    seed: int | None = None  # none: it was drawn in secret

    def json(self) -> str:
        """All figures, for machines."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def text(self) -> str:
        """A page for the terminal."""
        lines = [f"{self.title}: {self.released:,} of {self.rows:,} curves released by {self.method}", ""]
        lines += [f"Promises: {'VERIFIED' if self.verified else 'BROKEN'}"]
        lines += [f"  {'✓' if f.kept else '✗'} {f}" for f in self.findings]
        lines += ["", "Loss and sizes:"]
        width = max(map(len, self.figures), default=0)
        lines += [f"  {name.replace('_', ' '):<{width}}  {value:,.4g}" for name, value in self.figures.items()]
        lines += [f"Withheld: {n:,} curves ({why})" for why, n in self.withheld.items()]
        lines += [f"Altered: {n:,} values of {column}" for column, n in self.altered.items() if n]
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)

    def html(self, release: SeriesRelease) -> str:
        """One self-contained document with pictures: no script, no network."""
        from shoal.report.series_page import render

        return render(self, release)

    def page(self, file: str | Path, release: SeriesRelease | None = None) -> str:
        """What belongs into a file of this name: the figures (``.json``), the text (``.txt``) or the page."""
        kind = ending(file)
        if kind == ".json":
            return self.json()
        if kind == ".txt":
            return self.text()
        if release is None:
            hint = "write the report as .json or .txt"
            raise UsageError("the curves of this release are not in memory to be pictured", where=str(file), hint=hint)
        return self.html(release)
