"""Step 5: what came of it: verdict, rows before and after, groups, what was withheld, attacks, and the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from shoal.core.errors import ShoalError
from shoal.report import html as table_report
from shoal.report import series_page
from shoal.report.model import Report
from shoal.report.page import Section, section
from shoal.report.series_report import SeriesReport
from shoal.report.stream_page import run_sections
from shoal.web.html import Child, Markup, cell, el, table
from shoal.web.pages.layout import document, failed, heading, pager, running, trouble
from shoal.web.project import Project

ROWS = 12
SIZE, WHO = "\0size", "\0who"  # names no column has
TABS = {"report": "Report", "rows": "Rows before and after", "groups": "Groups", "attack": "Attack it"}


def release(project: Project, tab: str = "report", page: int = 0, error: ShoalError | None = None) -> str:
    """The release, or where to make one."""
    run = project.tasks.get("run")
    made = project.release
    title = f"Release of {project.name}"
    if run is not None and run.state == "running":
        return document(
            title,
            [heading("The release", "It is being made."), running(project, run, "Making the release")],
            project=project,
            step="release",
        )
    if made is None:
        body = [
            heading("The release", "Nothing is released yet."),
            trouble(run),
            el("p", el("a", "Choose a method and run it", href=f"/p/{project.id}/choose", class_="next"), class_="go"),
        ]
        return document(title, body, project=project, step="release")
    good = made.report.verified
    stamp = el(
        "p",
        "✓ Verified: every promise is kept" if good else "✗ Not verified: nothing must be handed out",
        class_=f"stamp {'good' if good else 'bad'}",
    )
    stale = project.released_as != project.chosen.policy()
    note = (
        el(
            "p",
            "Roles, promises or method have changed since: this is the release of before. ",
            el("a", "Run again", href=f"/p/{project.id}/choose"),
            class_="note",
        )
        if stale
        else None
    )
    shown = tab if tab in tabs(project) else "report"
    parts = {"report": report, "rows": lambda p: rows(p, page), "groups": lambda p: groups(p, page), "attack": attack}
    return document(
        title,
        [
            heading("The release", f"{made.report.released:,} of {made.report.rows:,} rows.", stamp),
            trouble(run) if run is not None and run.state != "done" else None,
            failed(error) if error is not None else None,
            note,
            downloads(project, good=good),
            tab_bar(project, shown),
            *parts[shown](project),
        ],
        project=project,
        step="release",
    )


def tabs(project: Project) -> dict[str, str]:
    """What can be looked at of this kind of release."""
    if project.chosen.kind == "table":
        return TABS
    return {n: w for n, w in TABS.items() if n in ("report", "rows")}


def tab_bar(project: Project, here: str) -> Markup:
    """Links to the parts."""
    links = [
        el("a", words, href=f"/p/{project.id}/release?tab={name}", aria_current="page" if name == here else None)
        for name, words in tabs(project).items()
    ]
    return el("nav", links, class_="tabs", aria_label="Parts of the release")


def downloads(project: Project, *, good: bool) -> Markup:
    """The files, and the command that makes the same release."""
    if not good:
        return el("p", "A release that breaks its promise is not handed out.", class_="note")
    place = f"/p/{project.id}/download"
    kinds = [".parquet", ".ndjson"] if _nested(project) else [".csv", ".parquet", ".ndjson"]
    links = [
        el(
            "a",
            f"Release ({kind[1:]})",
            href=f"{place}/released{kind}",
            class_="file main" if at == 0 else "file",
            download=True,
        )
        for at, kind in enumerate(kinds)
    ]
    links += [
        el("a", "Report (html)", href=f"{place}/report.html", class_="file", download=True),
        el("a", "Policy (yaml)", href=f"{place}/policy.yaml", class_="file", download=True),
    ]
    return el(
        "section",
        el("div", links, class_="files"),
        el("p", "The same on the command line, with the policy beside your file:", class_="about"),
        el("pre", el("code", project.command()), tabindex="0"),
        class_="downloads",
    )


def _nested(project: Project) -> bool:
    data = project.release.data if project.release is not None else None
    return isinstance(data, pl.DataFrame) and any(t.is_nested() for t in data.dtypes)


def report(project: Project) -> list[Child]:
    """The report, as its page shows it."""
    made = project.release
    assert made is not None
    told = made.report
    parts: Sequence[Section]
    if isinstance(told, Report):
        parts = table_report.sections(told)
    elif isinstance(told, SeriesReport):
        parts = series_page.sections(told, made.curves)
    else:
        parts = run_sections(told.method, told.counters, findings=told.findings, notes=told.notes)
    return [Markup(section(part)) for part in parts]


def rows(project: Project, page: int) -> list[Child]:
    """Rows before and after, side by side; only you see which belong together."""
    made = project.release
    assert made is not None
    after = made.data.slice(page * ROWS, ROWS)
    places: Any = made.positions[page * ROWS : (page + 1) * ROWS] if made.positions is not None else ()
    shown = [c for c in project.frame.columns if project.chosen.columns.get(c) is not None][:40]
    before = (
        project.frame.select(shown)[[int(p) for p in places if p >= 0]]
        if len(places)
        else project.frame.select(shown).head(0)
    )
    address = f"/p/{project.id}/release?tab=rows&page="
    return [
        el(
            "p",
            "The left side stays here"
            + (
                "."
                if project.chosen.kind == "stream"
                else ": a release does not tell which row was whose; its rows stand in another order."
            ),
            class_="about",
        ),
        el(
            "div",
            el("div", el("h3", "Before"), _cells(before, "Rows before")),
            el("div", el("h3", "After"), _cells(after.select(after.columns[:40]), "Rows after")),
            class_="beside",
        ),
        pager(address, page, ROWS, made.data.height, "rows"),
    ]


def _cells(frame: pl.DataFrame, caption: str) -> Markup:
    return table(
        list(frame.columns), [[cell(v) for v in row] for row in frame.iter_rows()], caption=caption, kind="even"
    )


def groups(project: Project, page: int) -> list[Child]:
    """The groups, smallest first, and how varied each is; and what was withheld."""
    made, chosen = project.release, project.chosen
    assert made is not None
    quasi = [n for n in chosen.of("quasi") if n in made.data.columns]
    about = [n for n in chosen.of("sensitive") if n in made.data.columns]
    who = people(project)
    data = made.data if who is None else made.data.with_columns(who.alias(WHO))
    size = pl.len() if who is None else pl.col(WHO).n_unique()
    found = data.group_by(quasi).agg(size.alias(SIZE), *[pl.col(n).n_unique().alias(SIZE + n) for n in about])
    found = found.sort([SIZE, *quasi])
    part = found.slice(page * ROWS, ROWS)
    head = [
        "Rows" if who is None else "People",
        *quasi,
        *[f"different {n}" for n in about],
    ]
    body = [
        [f"{r[SIZE]:,}", *[cell(r[n]) for n in quasi], *[f"{r[SIZE + n]:,}" for n in about]]
        for r in part.iter_rows(named=True)
    ]
    gone = [[why, f"{n:,}"] for why, n in made.withheld.items()]
    return [
        table(head, body, caption="Groups, smallest first", right=(0, *range(1 + len(quasi), len(head))), kind="even"),
        pager(f"/p/{project.id}/release?tab=groups&page=", page, ROWS, found.height, "groups"),
        el("h2", "Withheld"),
        table(["Why", "Rows"], gone, caption="Withheld rows", right=(1,))
        if gone
        else el("p", "No row was withheld.", class_="about"),
    ]


def people(project: Project) -> pl.Series | None:
    """Whose each released row is, where a column says it."""
    made, who = project.release, project.chosen.of("subject")
    if made is None or made.positions is None or not who or who[0] not in project.frame.columns:
        return None
    return project.frame[who[0]].gather(made.positions)


def attack(project: Project) -> list[Child]:
    """Join the release with another file, as an attacker would."""
    columns = [
        n for n in project.chosen.of("quasi") if project.release is not None and n in project.release.data.columns
    ]
    ticks = [
        el("label", el("input", type="checkbox", name="on", value=name, checked=True), f" {name}", class_="tick")
        for name in columns
    ]
    drop = el(
        "label",
        el("strong", "Choose a register: a file that names people"),
        el("span", "For example the electoral roll, or the original itself. It must have the columns ticked above."),
        el("input", type="file", id="file"),
        el("progress", max="1", value="0", hidden=True, aria_label="Copying the file"),
        el("span", role="alert", class_="wrong"),
        class_="drop",
        data_upload=f"/p/{project.id}/attack",
    )
    told = [el("li", el("strong", name), el("p", words)) for name, words in reversed(project.attacks)]
    return [
        el(
            "p",
            "Whoever has a second file with the same columns can try to join it with the release. Try it first.",
            class_="about",
        ),
        el("fieldset", el("legend", "Join on"), *ticks, class_="ticks"),
        drop,
        el("ul", told, class_="attacks", role="status") if told else None,
    ]
