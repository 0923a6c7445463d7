"""Step 1: what is in the file."""

from __future__ import annotations

import polars as pl

from shoal.connect.formats import SHEET
from shoal.report.chart import Axis, Lines, Series
from shoal.web.choices import HIDDEN, ROLES, Choice
from shoal.web.html import Markup, Option, button, cell, el, select, table
from shoal.web.pages.layout import document, form, heading, on, pager
from shoal.web.pages.promise import picture
from shoal.web.pages.small import distribution
from shoal.web.project import Project
from shoal.web.summary import Summary

ROWS = 12
DRAWN = 12  # curves in one picture
CARDS = 40  # columns shown as cards; a curve of a thousand instants is no reading matter
KINDS = {
    "table": "a table: each row is a person, or belongs to one",
    "stream": "a stream: each row is an event in time",
    "curves": "curves: each row is a series of numbers",
}


def data(project: Project, page: int = 0) -> str:
    """Columns, types, distributions, and what looks like an identifier."""
    chosen, frame = project.chosen, project.frame
    naming = [n for n in project.summaries if chosen.columns.get(n, Choice("", "")).role in ("identifier", "subject")]
    about = f"{frame.height:,} rows and {frame.width:,} columns. " + (
        _naming(len(naming)) if naming else "No column looks like a name."
    )
    instants = chosen.of("quasi") if chosen.kind == "curves" else []
    summaries = [s for name, s in project.summaries.items() if name not in set(instants)]
    cards = [card(project, summary) for summary in summaries[:CARDS]]
    more = len(summaries) - len(cards)
    rows = frame.slice(page * ROWS, ROWS)
    shown = rows.select(rows.columns[:CARDS])
    kinds = select(
        "kind",
        [Option(k, w) for k, w in KINDS.items()],
        chosen.kind,
        data_submits=True,
        autocomplete="off",
        aria_label="This is",
    )
    return document(
        project.name,
        [
            heading("What is in the file", about),
            form(
                project,
                "kind",
                el("label", "This is ", kinds, class_="inline"),
                button("Read it so", kind="quiet nojs"),
                kind="line",
            ),
            sheets(project),
            *[el("p", f"{column}: {words}", class_="note") for column, words in project.told[:8]],
            el("div", cards, class_="columns"),
            el("p", f"and {more:,} more columns", class_="about") if more > 0 else None,
            el("figure", picture(drawn(frame.select(instants)))) if instants else None,
            el("h2", "Rows"),
            table(
                list(shown.columns),
                [[cell(v) for v in row] for row in shown.iter_rows()],
                caption="Rows of the file",
                kind="even",
            ),
            pager(f"/p/{project.id}/data?page=", page, ROWS, frame.height, "rows"),
            on(project, "roles"),
        ],
        project=project,
        step="data",
    )


def _naming(columns: int) -> str:
    return (
        "1 of them looks like it names someone." if columns == 1 else f"{columns} of them look like they name someone."
    )


def drawn(curves: pl.DataFrame) -> Lines:
    """The first curves of a file, as lines.

    >>> len(drawn(pl.DataFrame({"w1": [1, 2], "w2": [3, None]})).series)
    2
    """
    rows = curves.head(DRAWN).cast(pl.Float64, strict=False).fill_null(float("nan")).rows()
    x = [float(at) for at in range(curves.width)]
    series = [Series(f"row {at + 1}", x, list(row), legend=False, colour=at) for at, row in enumerate(rows)]
    title = f"The first {len(series):,} of {curves.height:,} curves, {curves.width:,} instants each"
    axis = Axis(f"instant, from {curves.columns[0]} to {curves.columns[-1]}")
    return Lines(name="curves", title=title, width=760, height=300, x=axis, series=series)


def sheets(project: Project) -> Markup | None:
    """Which sheet of a workbook this is, where there are several."""
    if len(project.sheets) < 2:
        return None
    here = project.source.rpartition(SHEET)[2]
    offered = select(
        "sheet", [Option(n, n) for n in project.sheets], here, data_submits=True, autocomplete="off", aria_label="Sheet"
    )
    return form(
        project,
        "sheet",
        el("label", "Sheet ", offered, class_="inline"),
        button("Read this sheet", kind="quiet nojs"),
        kind="line",
    )


def card(project: Project, summary: Summary) -> Markup:
    """One column."""
    choice = project.chosen.columns.get(summary.name, Choice(HIDDEN, ""))
    missing = f", {summary.missing:,} missing" if summary.missing else ""
    return el(
        "article",
        el("h3", summary.name),
        el("p", f"{summary.type}, {summary.distinct:,} different{missing}", class_="about"),
        distribution(summary, project.frame.height),
        el(
            "p",
            el("span", choice.role, class_=f"role {choice.role}", title=ROLES.get(choice.role)),
            " ",
            choice.why,
            class_="why",
        ),
        class_="column",
    )
