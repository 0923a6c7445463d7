"""A recorded stream under a z of your choice: a slider, what would be released, and the model's answer beside it."""

from __future__ import annotations

from shoal.report import stream_figures
from shoal.report.chart import Axis, Bars, Chart
from shoal.report.stream_page import level_words
from shoal.web.html import Child, Markup, button, el, hidden
from shoal.web.pages.layout import running, trouble
from shoal.web.pages.promise import picture
from shoal.web.project import Project
from shoal.web.trial import Trial

HIGHEST = 100


def trial(project: Project) -> list[Child]:
    """The slider and what it shows."""
    task, now = project.tasks.get("trial"), project.chosen.settings
    slider = el(
        "form",
        hidden(version=project.version, window=now.window),
        el(
            "label",
            el("span", "z: how many people must have shown a value within ", now.window),
            el(
                "input",
                type="range",
                name="z",
                min="1",
                max=max(HIGHEST, now.z),
                value=now.z,
                data_shows="z-now",
                aria_label="z",
            ),
        ),
        el("output", str(now.z), id="z-now"),
        button("Try it", kind="quiet"),
        method="post",
        action=f"/p/{project.id}/try",
        class_="zs",
    )
    out: list[Child] = [el("h2", "Try a z on these events"), slider, trouble(task)]
    if task is not None and task.state == "running":
        out.append(running(project, task, "Trying it"))
    elif task is not None and task.state == "done" and isinstance(task.result, Trial):
        out += shown(task.result)
    return out


def shown(found: Trial) -> list[Child]:
    """What this z would release."""
    gone = found.counters.get("withheld", 0)
    released = found.counters.get("released", 0)
    tiles = [
        ("Released", f"{released / max(1, found.events):.1%}", f"{released:,} of {found.events:,} events"),
        ("Withheld", f"{gone:,}", f"with z = {found.z} within {found.window}"),
        ("People hidden", _share(found.measured), "share all that is released with another: measured"),
        ("People hidden", _share(found.model), "by the model of shoal plan, for exact values"),
    ]
    figures = el("dl", [el("div", el("dt", a), el("dd", b), el("p", c)) for a, b, c in tiles], class_="figures")
    charts: list[Chart] = []
    levels = {level_words(n): c for n, c in found.counters.items() if n.startswith("level_") and c}
    if levels:
        counts = {"events": [float(n) for n in levels.values()]}
        charts.append(
            Bars(
                name="levels",
                title="Released by level",
                labels=list(levels),
                series=counts,
                axis=Axis(form="whole", low=0),
                width=760,
            )
        )
    if len(found.rows) > 1:
        made = stream_figures.pictures(stream_figures.table(found.rows), 2, "this stream")
        charts += [made["volume"], made["p_k"]]
    drawn: list[Markup] = [el("figure", picture(chart)) for chart in charts]
    return [figures, el("div", drawn, class_="shelf wide")]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
