"""What is known about a release, as values; text, JSON and HTML are made from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from shoal.core.errors import UsageError
from shoal.core.groups import Finding
from shoal.measures.loss import Loss
from shoal.measures.risk import Risk
from shoal.measures.utility import Utility
from shoal.report.columns import Published


def ending(file: str | Path | None) -> str:
    """How the name of a report ends: ``.html``, ``.json`` or ``.txt``; anything else is refused before any work.

    >>> ending("report.HTM"), ending(None)
    ('.html', '.html')
    """
    found = Path(file).suffix.lower() if file is not None else ".html"
    found = ".html" if found == ".htm" else found
    if found not in (".html", ".json", ".txt"):
        raise UsageError("a report is a page, figures or a text", where=str(file), hint="use .html, .json or .txt")
    return found


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a person wants to know about a release, and nothing about any one person.

    ``size_counts`` are pairs (group size, number of groups of that size), so that a picture can be drawn of any
    number of groups. ``columns`` are the published ones, each with what it still tells.

    >>> import polars as pl
    >>> import shoal
    >>> ages = pl.DataFrame({"age": [20, 22, 50, 52]})
    >>> report = shoal.anonymize(ages, quasi=["age"], k=2, method="mondrian").report
    >>> report.verified, report.size_counts
    (True, [(2, 2)])
    """

    title: str
    method: dict[str, Any]
    seed: int | None  # none: it was drawn in secret
    rows: int
    released: int
    withheld: dict[str, int]
    left_out: list[str]
    findings: list[Finding]
    verified: bool
    loss: Loss
    risk_before: Risk
    risk_after: Risk
    utility: Utility
    size_counts: list[tuple[int, int]]
    seconds: float
    notes: list[str] = []
    columns: list[Published] = []
    version: str = ""

    def json(self) -> str:
        """All figures, for machines."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def text(self) -> str:
        """A page for the terminal."""
        from shoal.report.text import render

        return render(self)

    def html(self) -> str:
        """One self-contained page with pictures."""
        from shoal.report.html import render

        return render(self)

    def page(self, file: str | Path) -> str:
        """What belongs into a file of this name: the figures (``.json``), the text (``.txt``) or the page."""
        return {".json": self.json, ".txt": self.text, ".html": self.html}[ending(file)]()

    def write(self, file: str | Path) -> None:
        """Write the page (``.html``), the figures (``.json``) or the text (``.txt``)."""
        from shoal.connect.files import write_text

        write_text(self.page(file), str(file))

    def show(self) -> None:
        """In a notebook the page with pictures; elsewhere the text."""
        try:
            from IPython import get_ipython  # type: ignore[import-not-found,unused-ignore]
            from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            get_ipython = None
        if get_ipython is not None and get_ipython() is not None:
            display(HTML(self._repr_html_()))
        else:
            from rich.console import Console

            Console().print(self.text(), markup=False, highlight=False)

    def _repr_html_(self) -> str:
        from shoal.report.html import embed

        return embed(self)
