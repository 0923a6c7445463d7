"""What a stream method made of a file: figures, text and page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from shoal.core.groups import Finding
from shoal.core.notebook import Shown
from shoal.report.model import ending
from shoal.report.stream_page import run_page

if TYPE_CHECKING:
    from shoal.release.stream import LocalRunner


class StreamReport(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """What a stream method made of a file.

    >>> import polars as pl
    >>> import shoal
    >>> visits = pl.DataFrame({"time": [0, 1, 2], "subject": ["a", "b", "c"], "value": ["x", "x", "y"]})
    >>> shoal.stream(visits, z=2, window="1h").report
    <StreamReport: 1 of 3 events released by z-anonymity, verified>
    """

    title: str
    method: str
    rows: int
    released: int
    withheld: dict[str, int]
    findings: list[Finding]
    verified: bool
    counters: dict[str, int]
    seed: int | None = None
    notes: list[str] = []

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        verdict = "verified" if self.verified else "not verified"
        return f"<StreamReport: {self.released:,} of {self.rows:,} events released by {self.method}, {verdict}>"

    def json(self) -> str:
        """All figures, for machines."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def page(self, file: str) -> str:
        """What belongs into a file of this name: the figures (``.json``), the text (``.txt``) or the page."""
        kind = ending(file)
        if kind == ".json":
            return self.json()
        return self.text() if kind == ".txt" else self.html()

    def html(self) -> str:
        """One self-contained document: no script, no network."""
        return run_page(self.title, self.method, self.counters, findings=self.findings, notes=self.notes)

    def text(self) -> str:
        """A few lines for the terminal."""
        return "\n".join(
            [
                f"{self.title}: {self.released:,} of {self.rows:,} events released by {self.method}",
                *map(str, self.findings),
                *[f"{name.replace('_', ' ')}: {n:,}" for name, n in self.counters.items()],
                *[f"note: {note}" for note in self.notes],
            ]
        )


def figures(runner: LocalRunner) -> dict[str, Any]:
    """Counters and live figures together.

    >>> from shoal.release.job import job_of
    >>> from shoal.release.stream import LocalRunner
    >>> from shoal.release.wishes import Wishes
    >>> job = job_of(Wishes({"z": 2, "window": "1h"}))
    >>> figures(LocalRunner(job, job.key(), print))["events"]
    0
    """
    state = {} if runner.beside is None else runner.beside.figures()
    return {**runner.method.counters, **runner.method.figures(), **state}
