"""How one column becomes less precise: build a hierarchy and look at it level by level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import polars as pl
from starlette.exceptions import HTTPException

from shoal.core.errors import ShoalError, UsageError
from shoal.core.hierarchy import HIERARCHIES
from shoal.web.choices import Choice
from shoal.web.hierarchies import (
    MOST_GROUPED,
    PERIODS,
    common,
    groups_of,
    kinds_for,
    nodes_of,
    preview,
    started,
)
from shoal.web.html import Child, Markup, Option, button, cell, el, hidden, labelled, select, table
from shoal.web.pages.layout import document, failed, heading
from shoal.web.pages.small import bars
from shoal.web.project import Project
from shoal.web.summary import histogram

NUMBERS = ("min", "max", "bottom", "top", "smallest")
WHOLE = ("length", "depth")


def column(project: Project, at: int, asked: Mapping[str, str], error: ShoalError | None = None) -> str:
    """The editor of one column; what was asked but not saved is shown, too."""
    names = list(project.chosen.columns)
    if not 0 <= at < len(names) or names[at] not in project.frame.columns:
        raise HTTPException(404)
    name = names[at]
    values, choice = project.frame[name], project.chosen.columns[name]
    values = _as_declared(values, choice)
    fitting = kinds_for(values.dtype)
    said = choice.hierarchy
    try:
        if asked.get("use") in fitting and error is None:
            said = _sent(values, asked) if len(asked) > 2 else started(values, asked["use"])
    except ShoalError as wrong:
        error = wrong
    said = {"use": said} if isinstance(said, str) else said or started(values, next(iter(fitting)))
    kinds = select(
        "use", [Option(k, f"{k}: {w}") for k, w in fitting.items()], said["use"], data_asks=True, autocomplete="off"
    )
    return document(
        f"{name} of {project.name}",
        [
            heading(f"How {name} becomes less precise", choice.why),
            failed(error) if error is not None else None,
            el(
                "form",
                hidden(version=project.version),
                labelled("Kind", kinds),
                *fields(values, said, name),
                el(
                    "p",
                    button("Look at it", kind="quiet", formmethod="get"),
                    button("Save", kind="main"),
                    class_="go",
                ),
                method="post",
                action=f"/p/{project.id}/column/{at}",
                class_="hierarchy",
            ),
            levels(values, said),
            tree_import(project, at) if "tree" in fitting else None,
            el("p", el("a", "← Back to roles", href=f"/p/{project.id}/roles"), class_="go"),
        ],
        project=project,
        step="roles",
    )


def _as_declared(values: pl.Series, choice: Choice) -> pl.Series:
    """A number that is declared a text (a postcode) is one here."""
    return values.cast(pl.String) if choice.said.get("type") == "str" and values.dtype.is_numeric() else values


def fields(values: pl.Series, said: dict[str, Any], name: str) -> list[Child]:
    """The parameters of a kind of hierarchy."""
    use = said["use"]
    if use == "range":
        told = {"min": "lowest", "max": "highest", "bottom": "below this: one class", "top": "above this: one class"}
        inputs = [
            labelled(
                words,
                el("input", name=field, inputmode="decimal", value="" if said.get(field) is None else f"{said[field]}"),
            )
            for field, words in told.items()
        ]
        return [el("div", inputs, class_="fields"), _picture(values, name)]
    if use == "intervals":
        text = ", ".join(f"{b:g}" if isinstance(b, float) else str(b) for b in said["borders"])
        edges, counts = histogram(values, 48)
        area = el(
            "div",
            bars(counts, edges, name),
            class_="borders",
            data_low=edges[0] if edges else 0,
            data_high=edges[-1] if edges else 1,
            data_whole=values.dtype.is_integer(),
        )
        box = el("input", name="borders", value=text, required=True, autocomplete="off")
        return [area, labelled("Borders", box, "Drag them, use the arrow keys on one, or type numbers with commas.")]
    if use == "prefix":
        return [
            labelled(
                "Length of the longest value",
                el("input", type="number", name="length", min="1", value=said.get("length", 5)),
            )
        ]
    if use == "path":
        return [
            el(
                "div",
                labelled("Parted by", el("input", name="separator", value=said.get("separator", "."), maxlength="3")),
                labelled(
                    "Steps",
                    el("input", type="number", name="depth", min="1", value=said.get("depth", "")),
                    "Empty: as many as there are.",
                ),
                labelled(
                    "Read from the end", el("input", type="checkbox", name="reverse", checked=bool(said.get("reverse")))
                ),
                class_="fields",
            )
        ]
    if use == "calendar":
        kept = said.get("levels", [])
        return [
            el("fieldset", el("legend", "Levels"), *[_tick("levels", p, p in kept) for p in PERIODS], class_="ticks")
        ]
    if use == "grid":
        sizes = ", ".join(str(s) for s in said.get("sizes", []))
        return [
            labelled("Sizes of the cells in metres", el("input", name="sizes", value=sizes), "Each divides the next.")
        ]
    return grouping(values, said) if use == "tree" else []


def _tick(name: str, value: str, checked: bool) -> Markup:
    return el(
        "label", el("input", type="checkbox", name=name, value=value, checked=checked), f" {value}", class_="tick"
    )


def _picture(values: pl.Series, name: str) -> Markup:
    edges, counts = histogram(values, 48)
    return el("div", bars(counts, edges, name), class_="borders still")


def grouping(values: pl.Series, said: dict[str, Any]) -> list[Child]:
    """Values and the group of each: tick some, name a group, put them in."""
    if said.get("nodes") is None:
        return [el("p", "This tree comes from a file.", class_="note")]
    groups = groups_of(said["nodes"])
    if len(groups) > MOST_GROUPED or values.n_unique() > MOST_GROUPED:
        words = f"{values.n_unique():,} values are too many to group by hand: import a tree below."
        return [el("p", words, class_="note")]
    known = list(groups)
    known += [v for v in common(values, MOST_GROUPED) if v not in groups]
    lines = [
        el(
            "li",
            el(
                "label", el("input", type="checkbox", class_="pick"), f" {cell(value)}", hidden(**{f"value-{i}": value})
            ),
            el(
                "input",
                name=f"group-{i}",
                value=groups.get(value, ""),
                placeholder="no group",
                aria_label=f"Group of {value}",
                list_="groups",
            ),
        )
        for i, value in enumerate(known)
    ]
    names = sorted({g for g in groups.values() if g})
    return [
        el(
            "p",
            "Tick values, name a group and put them in; “Europe / Germany” is a group inside a group.",
            class_="about",
        ),
        el(
            "div",
            el("input", id="groupname", placeholder="name of a group", aria_label="Name of a group", list_="groups"),
            el("button", "Put ticked values in", type="button", id="putin", class_="quiet"),
            class_="line grouping",
        ),
        el("datalist", [el("option", value=n) for n in names], id="groups"),
        el("ul", lines, class_="values"),
    ]


def levels(values: pl.Series, said: dict[str, Any]) -> Markup:
    """The commonest values at every level."""
    try:
        shown, nodes = preview(values, said)
    except ShoalError as error:
        return failed(error)
    head = ["Value", *[f"Level {at}: {n:,}" for at, n in enumerate(nodes)]]
    rows = [[cell(v) for v in row] for row in shown.iter_rows()]
    return el(
        "section", el("h2", "Level by level"), table(head, rows, caption="Common values at every level", kind="even")
    )


def tree_import(project: Project, at: int) -> Markup:
    """Take a tree that another tool wrote."""
    return el(
        "details",
        el("summary", "Import a tree (a CSV as ARX writes it: Berlin;Germany;Europe;*)"),
        el(
            "label",
            el("strong", "Choose the file"),
            el("input", type="file"),
            el("progress", max="1", value="0", hidden=True, aria_label="Copying the file"),
            el("span", role="alert", class_="wrong"),
            class_="drop small",
            data_upload=f"/p/{project.id}/tree/{at}?version={project.version}",
        ),
    )


def sent_hierarchy(project: Project, name: str, sent: Mapping[str, str]) -> Choice:
    """The column with the hierarchy that a form sent, if it fits the values."""
    values = _as_declared(project.frame[name], project.chosen.columns[name])
    return hierarchy_of(project, name, _sent(values, sent))


def hierarchy_of(project: Project, name: str, said: dict[str, Any]) -> Choice:
    """The column with a hierarchy, if it fits the values."""
    choice = project.chosen.columns[name]
    preview(_as_declared(project.frame[name], choice), said)
    return msgspec.structs.replace(choice, role="quasi", said={**choice.said, "hierarchy": said})


def _sent(values: pl.Series, sent: Mapping[str, str]) -> dict[str, Any]:
    """A hierarchy from the fields of a form."""
    use = sent.get("use", "")
    if use not in kinds_for(values.dtype):
        raise UsageError(
            "this kind does not fit the column", where="hierarchy", hint=f"one of: {', '.join(kinds_for(values.dtype))}"
        )
    said: dict[str, Any] = {"use": use}
    for field in NUMBERS:
        if sent.get(field, "").strip():
            said[field] = _number(sent[field], field)
    for field in WHOLE:
        if sent.get(field, "").strip().isdigit():
            said[field] = int(sent[field])
    if use == "path":
        said |= {"separator": sent.get("separator") or "."} | ({"reverse": True} if "reverse" in sent else {})
    if "borders" in sent:
        said["borders"] = [_number(b, "borders") for b in sent["borders"].split(",") if b.strip()]
    if "sizes" in sent:
        said["sizes"] = [int(_number(s, "sizes")) for s in sent["sizes"].split(",") if s.strip()]
    if use == "calendar":
        said["levels"] = [p for p in PERIODS if p in sent.get("levels", "").split("\n")]
    if use == "tree":
        said["nodes"] = nodes_of(
            {v: sent.get(f"group-{k.removeprefix('value-')}", "") for k, v in sent.items() if k.startswith("value-")}
        )
    HIERARCHIES.decode(said, "hierarchy")
    return said


def _number(text: str, field: str) -> float | int:
    try:
        value = float(text)
    except ValueError:
        raise UsageError("expected a number", where=field, hint="for example 20") from None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
