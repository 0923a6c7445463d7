"""The first page: open a file, or one of ours."""

from __future__ import annotations

from shoal.core.errors import ShoalError
from shoal.web.html import Markup, button, el, hidden
from shoal.web.pages.layout import document, failed
from shoal.web.studio import EXAMPLES, Studio

TAKES = "CSV, Parquet, NDJSON or Excel"


def home(studio: Studio, error: ShoalError | None = None) -> str:
    """Open something."""
    drop = el(
        "label",
        el("strong", "Drop a file here, or choose one"),
        el("span", f"{TAKES}, up to {studio.largest / 2**20:,.0f} MB. It stays on this machine."),
        el("input", type="file", id="file", accept=".csv,.tsv,.gz,.parquet,.pq,.ndjson,.jsonl,.xlsx,.xls,.ods"),
        el("progress", max="1", value="0", hidden=True, aria_label="Copying the file"),
        el("span", role="alert", class_="wrong"),
        class_="drop",
        data_upload="/upload",
    )
    examples = [
        el(
            "form",
            hidden(name=name),
            el("button", el("strong", title), el("span", about), type="submit", class_="card"),
            method="post",
            action="/example",
        )
        for name, (title, about) in EXAMPLES.items()
    ]
    opened = [
        el(
            "li",
            el("a", project.name, href=f"/p/{project.id}"),
            el("small", f" {project.frame.height:,} rows" if project.frame.height else " being read"),
            el("form", hidden(id=project.id), button("Close and wipe", kind="quiet"), method="post", action="/close"),
        )
        for project in studio.projects.values()
    ]
    return document(
        "Start",
        [
            el("h1", "Hide in numbers"),
            el(
                "p",
                "Five steps from a table to a release that keeps its promise: look at the data, say what an outsider "
                "may know, choose what to promise, pick a method, and hand out what the verifier accepted.",
                class_="about lead",
            ),
            failed(error) if error is not None else None,
            drop,
            database(),
            el("h2", "Open files") if opened else None,
            el("ul", opened, class_="opened") if opened else None,
            el("h2", "Or try it with data that never were a person"),
            el("div", examples, class_="cards"),
            el(
                "p",
                "Uploads lie in a folder that only you can read, and are wiped when the studio stops. Nothing leaves "
                "this machine.",
                class_="about",
            ),
        ],
    )


def database() -> Markup:
    """Open a table where it lies."""
    field = el(
        "input",
        type="text",
        name="address",
        required=True,
        placeholder="env:CLINIC#patients",
        autocomplete="off",
        spellcheck="false",
    )
    return el(
        "form",
        el("label", "Or a table of a database ", field, class_="inline"),
        button("Open the table", kind="quiet"),
        el(
            "p",
            "PostgreSQL, SQLite or DuckDB: sqlite:clinic.db#patients, or env:VARIABLE#patients if an environment "
            "variable holds the address. It is read, never changed; a password is refused here.",
            class_="about",
        ),
        method="post",
        action="/table",
        class_="line database",
    )
