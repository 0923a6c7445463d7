"""Step 3: what is promised, in a sentence each for this very table."""

from __future__ import annotations

from shoal.core.errors import ShoalError, UsageError
from shoal.report.chart import Chart, draw
from shoal.web.choices import Choices, Settings, whole
from shoal.web.html import Child, Markup, button, el, labelled
from shoal.web.pages.layout import document, failed, form, heading, running, trouble
from shoal.web.project import Project
from shoal.web.risks import risk_before
from shoal.web.work import Task

ABOUT_K = (
    "Everyone shares what an outsider may know of them with at least {others} others: whoever looks for a person finds "
    "{k} rows, and guesses right once in {k} times at best."
)
ABOUT_L = (
    "Every group has at least {l} different values of {columns}: finding the group of a person does not tell the value."
)
ABOUT_T = (
    "In every group the values of {columns} are spread nearly as in the whole table (distance at most {t:g} of 1): "
    "finding the group tells next to nothing new."
)
ABOUT_CURVES = (
    "Every curve is published as the band around a group of at least {k} curves: whoever knows one finds {k} that fit."
)
ABOUT_P = "Inside a group, at least {p} curves share each published shape."
ABOUT_Z = (
    "An event is released as precisely as at least {z} people showed the same within {window}; what fewer showed is "
    "made less precise, or withheld. At once: no event waits."
)


def promise(project: Project, error: ShoalError | None = None) -> str:
    """k, l, t with a sentence of what each means for this table; and the risk before."""
    chosen = project.chosen
    missing = chosen.ready()
    return document(
        f"Promise for {project.name}",
        [
            heading(
                "What do you promise?",
                "A promise is checked on the very bytes of the release by a verifier that knows no method.",
            ),
            failed(error) if error is not None else None,
            el("p", missing, " ", el("a", "Go to Roles", href=f"/p/{project.id}/roles"), class_="note")
            if missing
            else None,
            form(
                project,
                "promise",
                *fields(chosen),
                el("p", button("Save promises", kind="quiet"), class_="go"),
                kind="promise",
                id_="promises",
            ),
            *more(project),
            # what was typed goes along: nobody has to save it first
            el("p", button("Next: Choose →", kind="main", form="promises", name="next", value="choose"), class_="go"),
        ],
        project=project,
        step="promise",
    )


def more(project: Project) -> list[Child]:
    """What helps to choose: the risk of a table as it stands, a trial of a stream."""
    if project.chosen.kind == "stream" and project.chosen.ready() is None:
        from shoal.web.pages.trial import trial

        return trial(project)
    return risk_section(project) if project.chosen.kind == "table" else []


def fields(chosen: Choices) -> list[Markup]:
    """The numbers that may be promised of this kind of data."""
    now = chosen.settings
    if chosen.kind == "stream":
        return [
            _number("z", "z: people who showed it", now.z, 1, ABOUT_Z.format(z=now.z, window=now.window)),
            labelled(
                "Window: how long “lately” is",
                el("input", name="window", value=now.window, required=True, pattern="[0-9.]+(us|ms|s|m|h|d)"),
                "For example 30m, 1h or 1d.",
            ),
        ]
    if chosen.kind == "curves":
        return [
            _number("k", "k: curves in one band", now.k, 2, ABOUT_CURVES.format(k=now.k)),
            _number("p", "P: curves of one shape", now.p, 2, ABOUT_P.format(p=now.p)),
        ]
    out = [_number("k", "k: people who read alike", now.k, 2, ABOUT_K.format(k=now.k, others=now.k - 1))]
    about = chosen.of("sensitive")
    if not about:
        return [*out, el("p", "l and t speak about sensitive columns; you named none.", class_="note")]
    columns = " and ".join([", ".join(about[:-1]), about[-1]] if about[1:] else about)
    told_l = ABOUT_L.format(l=now.l or 2, columns=columns)
    told_t = ABOUT_T.format(t=now.t or 0.2, columns=columns)
    t = el("input", type="number", name="t", value="" if now.t is None else f"{now.t:g}", min="0", max="1", step="0.01")
    return [
        *out,
        _number("l", "l: different sensitive values", now.l, 1, f"{told_l} Empty: not promised.", needed=False),
        labelled("t: distance from the whole table", t, f"{told_t} Empty: not promised."),
    ]


def _number(name: str, words: str, value: int | None, least: int, about: str, *, needed: bool = True) -> Markup:
    field = el(
        "input", type="number", name=name, value="" if value is None else value, min=least, step="1", required=needed
    )
    return labelled(words, field, about)


def risk_section(project: Project) -> list[Child]:
    """Who can be found again as it stands."""
    found = risk_before(project)
    if found is None:
        return []
    if isinstance(found, Task):
        told = running(project, found, "Counting who stands alone") if found.state == "running" else trouble(found)
        return [el("h2", "Risk before"), told]
    before, chart = found
    words = (
        f"As it stands, {before.unique:,} of {before.people:,} people are alone with what an outsider may know of "
        f"them: {before.unique / max(1, before.people):.0%}. {before.at_risk:.0%} share it with fewer than five."
    )
    return [el("h2", "Risk before"), el("p", words), el("figure", picture(chart))]


def picture(chart: Chart) -> Markup:
    """A chart inside a page."""
    return Markup(draw(chart, styled=False))


def sent_promises(now: Settings, sent: dict[str, str]) -> dict[str, object]:
    """The settings that a form sent.

    >>> sent_promises(Settings(), {"k": "7", "l": "", "t": "0.2"})
    {'k': 7, 'l': None, 't': 0.2}
    """
    out: dict[str, object] = {}
    for name, least in (("k", 2), ("p", 2), ("z", 1)):
        if name in sent:
            out[name] = whole(sent[name], name, least)
    if "window" in sent:
        from shoal.core.time import duration

        if duration(sent["window"], where="window") <= 0:
            raise UsageError("the window must be positive", where="window", hint="for example 1h")
        out["window"] = sent["window"]
    if "l" in sent:
        out["l"] = whole(sent["l"], "l", 1) if sent["l"].strip() else None
    if "t" in sent:
        out["t"] = _share(sent["t"]) if sent["t"].strip() else None
    return out


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError("t is a distance between 0 and 1", where="t", hint="for example 0.2")
    return value
