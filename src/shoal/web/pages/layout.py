"""The frame around every page: the name, the five steps, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.errors import ShoalError
from shoal.report.page import FISH
from shoal.web.html import Child, Markup, button, el, escape, hidden, join
from shoal.web.project import Project
from shoal.web.work import Task

STEPS = {"data": "Data", "roles": "Roles", "promise": "Promise", "choose": "Choose", "release": "Release"}
NUMBERS = "①②③④⑤"


def logo() -> Markup:
    """Three fish."""
    shoal = join(
        el("path", d=FISH, transform=f"translate({x} {y}) scale({s})")
        for x, y, s in ((0, 9, 1), (21, 0, 0.8), (23, 16, 0.9))
    )
    return el("svg", shoal, viewBox="0 0 46 32", width=40, height=28, class_="logo", aria_hidden="true")


def document(title: str, body: Sequence[Child], *, project: Project | None = None, step: str = "") -> str:
    """A whole page."""
    name = None if project is None else el("span", project.name, class_="project")
    bar = el("header", el("a", logo(), el("strong", "Shoal studio"), href="/", class_="home"), name, class_="top")
    inner = el("main", body, id="main")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)} · Shoal studio</title>"
        '<link rel="icon" href="/static/fish.svg"><link rel="stylesheet" href="/static/page.css">'
        '<link rel="stylesheet" href="/static/studio.css"><script type="module" src="/static/studio.js"></script>'
        f'</head><body class="shoal-page studio">{el("a", "Skip to the page", href="#main", class_="skip")}'
        f"{bar}{'' if project is None else steps(project, step)}{inner}"
        f"{el('div', role='status', id='lost', hidden=True, class_='lost')}</body></html>\n"
    )


def steps(project: Project, here: str) -> Markup:
    """The five steps; each can be reached again."""
    items = []
    for number, (step, words) in enumerate(STEPS.items()):
        link = el(
            "a",
            el("span", NUMBERS[number], aria_hidden="true"),
            f" {words}",
            href=f"/p/{project.id}/{step}",
            aria_current="step" if step == here else None,
            class_="there" if step == "release" and project.release is not None else None,
        )
        items.append(el("li", link))
    return el("nav", el("ol", items), class_="steps", aria_label="Steps")


def heading(title: str, about: Child, *more: Child) -> Markup:
    """The title of a page and what it is for."""
    return el("div", el("h1", title), el("p", about, class_="about"), *more, class_="heading")


def failed(error: ShoalError) -> Markup:
    """An error with its place and a hint."""
    return el(
        "div",
        el("strong", f"{error.where}: " if error.where else None, error.message),
        el("p", error.hint) if error.hint else None,
        class_="failed",
        role="alert",
    )


def on(project: Project, step: str, *actions: Child) -> Markup:
    """Where to go next."""
    return el(
        "p", *actions, el("a", f"Next: {STEPS[step]} →", href=f"/p/{project.id}/{step}", class_="next"), class_="go"
    )


def form(project: Project, action: str, *children: Child, kind: str = "", id_: str | None = None) -> Markup:
    """A form that knows which version of the choices it shows."""
    return el(
        "form",
        hidden(version=project.version),
        *children,
        method="post",
        action=f"/p/{project.id}/{action}",
        class_=kind or None,
        id=id_,
    )


def running(project: Project, task: Task, words: str) -> Markup:
    """A task at work: bar, word, falling loss, and a button that stops it."""
    place = f"/p/{project.id}/tasks/{task.name}"
    curve = el(
        "svg",
        viewBox="0 0 600 120",
        preserveAspectRatio="xMinYMid",
        class_="falling",
        role="img",
        aria_label="The loss so far",
        hidden=True,
    )
    return el(
        "section",
        el("h2", words),
        el("progress", value="0", max="1", aria_label=words),
        el("p", el("span", "starting", class_="word"), el("span", class_="seconds"), aria_live="polite"),
        curve,
        el("form", button("Cancel", kind="quiet"), method="post", action=f"{place}/cancel"),
        el("noscript", el("p", el("a", "Look again", href=f"/p/{project.id}"))),
        class_="task",
        data_task=place,
    )


def trouble(task: Task | None) -> Markup | None:
    """What became of a task that did not end well."""
    if task is None or task.state in ("running", "done"):
        return None
    if task.error is not None:
        return failed(task.error)
    return el("p", "Cancelled. Nothing was released.", class_="note", role="status")


def pager(address: str, at: int, size: int, total: int, words: str) -> Markup:
    """Back and forth through pages of rows."""
    last = max(0, (total - 1) // size)
    back = el("a", "← back", href=f"{address}{at - 1}") if at > 0 else el("span", "← back", class_="off")
    forth = el("a", "on →", href=f"{address}{at + 1}") if at < last else el("span", "on →", class_="off")
    here = f"{words} {at * size + 1:,} to {min(total, (at + 1) * size):,} of {total:,}" if total else f"no {words}"
    return el("nav", back, el("span", here), forth, class_="pager", aria_label=f"Pages of {words}")
