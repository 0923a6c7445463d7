"""Step 4: which method, with which k; then run it."""

from __future__ import annotations

from shoal.core.errors import ShoalError
from shoal.policy.document import WAIVERS
from shoal.release.compare import Comparison
from shoal.series import SERIES_METHODS
from shoal.tables import TABLE_METHODS
from shoal.web.choices import Settings, takes_effort, whole
from shoal.web.html import Child, Markup, Option, button, el, escape, hidden, labelled, select, table
from shoal.web.pages.layout import document, failed, form, heading, running, trouble
from shoal.web.pages.promise import picture
from shoal.web.project import COMPARED, METHODS, Project

KS = (2, 5, 10, 50)
SERIES = {
    "kapra": "shapes as fine as P allows",
    "banded": "narrow bands and good shapes",
    "naive": "no curve is left out",
}
EFFORTS = [Option("low", "low: quick"), Option("normal", "normal"), Option("high", "high: fifty times the steps")]

DIFFER = "Every method keeps the promise; they differ in how much detail they lose."
TITLES = {
    "table": ("Which method, which k?", DIFFER),
    "curves": ("Which method?", DIFFER),
    "stream": (
        "Make the release",
        "Every event is decided at once, in the order of the file, as a live stream would be.",
    ),
}


def choose(project: Project, error: ShoalError | None = None) -> str:
    """Loss against risk; pick a point; run."""
    run, comparing = project.tasks.get("run"), project.tasks.get("compare")
    at_work = run is not None and run.state == "running"
    body: list[Child] = [
        heading(*TITLES[project.chosen.kind]),
        failed(error) if error is not None else None,
        trouble(run),
    ]
    if at_work and run is not None:
        body.append(running(project, run, "Making the release"))
    else:
        body += [taken(project), None if project.chosen.kind != "table" else comparison(project)]
    if comparing is not None and comparing.state == "running" and not at_work:
        body.append(running(project, comparing, "Comparing methods"))
    return document(f"Choose for {project.name}", body, project=project, step="choose")


def taken(project: Project) -> Markup:
    """What will be run, and the button that runs it."""
    now, kind = project.chosen.settings, project.chosen.kind
    missing = project.chosen.ready()
    seed = el("input", name="seed", inputmode="numeric", pattern="[0-9]*", value="" if now.seed is None else now.seed)
    told = "Empty: drawn in secret, which is safer. A number makes the same release again."
    first: list[Child] = []
    if kind == "table":
        options = [Option(n, n) for n in TABLE_METHODS.names()]
        first = [
            labelled("Method", select("method", options, now.method)),
            labelled(
                "Effort",
                select("effort", EFFORTS, now.effort),
                None if takes_effort(now.method) else "This method knows no effort.",
            ),
        ]
    if kind == "curves":
        options = [Option(n, f"{n}: {words}") for n, words in SERIES.items()]
        first = [labelled("Method", select("series", options, now.series))]
    accepted = [
        el(
            "label",
            el("input", type="checkbox", name=f"waive-{name}", checked=name in now.waive),
            f" {name}: {words}",
            class_="tick",
        )
        for name, words in WAIVERS.items()
        if name != "earlier-release"
    ]
    waivers = el(
        "details", el("summary", "Risks you accept by name"), *accepted, class_="waivers", open=bool(now.waive)
    )
    return form(
        project,
        "run",
        # nothing is drawn where every event is decided by counting
        None if kind == "stream" else el("div", *first, labelled("Seed", seed, told), class_="fields"),
        waivers if kind == "table" else None,
        el("p", missing, class_="note") if missing else None,
        el("p", el("strong", summary(project)), class_="lead"),
        el("p", button("Make the release", kind="main", disabled=missing is not None), class_="go"),
        kind="run",
    )


def summary(project: Project) -> str:
    """What is promised, on one line."""
    now, chosen = project.chosen.settings, project.chosen
    if chosen.kind == "stream":
        return f"z = {now.z} within {now.window}, over {', '.join(chosen.of('quasi')) or 'no column'}"
    parts = [f"k = {now.k}"]
    if chosen.kind == "curves":
        return f"k = {now.k}, P = {now.p} over {len(chosen.of('quasi')):,} instants"
    if chosen.of("sensitive"):
        parts += [f"l = {now.l}"] if now.l else []
        parts += [f"t = {now.t:g}"] if now.t is not None else []
    return f"{', '.join(parts)} over {', '.join(chosen.of('quasi')) or 'no column'}"


def comparison(project: Project) -> Markup:
    """The picture of all methods, or the button that makes it."""
    ready = project.chosen.ready() is None
    sample = f" Compared on {COMPARED:,} rows drawn at random." if project.frame.height > COMPARED else ""
    words = "Compare methods and k" if project.comparison is None else "Compare again"
    ask = form(project, "compare", button(words, kind="quiet", disabled=not ready), kind="line")
    about = el(
        "p",
        f"Down and to the left is better: less detail lost, and a smaller chance that someone is found again.{sample}",
        class_="about",
    )
    failed_one = trouble(project.tasks.get("compare"))
    if project.comparison is None:
        return el("section", el("h2", "Loss against risk"), about, failed_one, ask)
    stale = el("p", "Roles or promises have changed since: compare again.", class_="note") if _stale(project) else None
    chart = el("figure", pickable(project.comparison))
    return el(
        "section",
        el("h2", "Loss against risk"),
        about,
        failed_one,
        stale,
        chart,
        points(project, project.comparison),
        ask,
    )


def _stale(project: Project) -> bool:
    """Whether something but the method and k has changed since the comparison."""

    def rest(text: str | None) -> list[str]:
        return [x for x in (text or "").splitlines() if "method:" not in x and "use: k-anonymity" not in x]

    return rest(project.compared_as) != rest(project.chosen.policy())


def pickable(found: Comparison) -> Markup:
    """The chart with points that are links."""
    text = picture(found.chart())
    for r in found.rows:
        mark = f"<title>{escape(r.method)} k={r.k}:"
        text = _linked(
            text, mark, f'<a href="#{escape(place(r.method, r.k))}" aria-label="take {escape(r.method)}, k = {r.k}">'
        )
    return text


def place(method: str, k: int) -> str:
    """The button of a point."""
    return f"take-{method}-{k}"


def _linked(text: Markup, mark: str, opened: str) -> Markup:
    """Wrap the element that holds ``mark`` into a link."""
    at = text.find(mark)
    if at < 0:
        return text
    start = text.rfind("<", 0, at)
    name = text[start + 1 : text.index(" ", start)]
    end = text.index(f"</{name}>", at) + len(name) + 3
    return Markup(f"{text[:start]}{opened}{text[start:end]}</a>{text[end:]}")


def points(project: Project, found: Comparison) -> Markup:
    """The same points as a table, each with a button."""
    rows = []
    for r in sorted(found.rows, key=lambda r: (r.k, r.gcp if r.gcp is not None else 9.0)):
        if r.gcp is None:
            rows.append([r.method, str(r.k), "–", "–", "–", r.note])
            continue
        take = el(
            "form",
            hidden(version=project.version, method=r.method, k=r.k),
            button("Take", kind="quiet", id=place(r.method, r.k)),
            method="post",
            action=f"/p/{project.id}/take",
        )
        best = el("span", "frontier", class_="role quasi") if r.frontier else ""
        rows.append(
            [
                r.method,
                str(r.k),
                f"{r.gcp:.1%}",
                f"{r.risk or 0:.1%}",
                f"{r.suppressed or 0:,}",
                el("span", best, take, class_="take"),
            ]
        )
    head = ["Method", "k", "Detail lost", "Chance of being found", "Withheld", ""]
    return table(head, rows, caption="Methods compared", right=(1, 2, 3, 4))


def sent_method(now: Settings, sent: dict[str, str]) -> dict[str, object]:
    """The settings that a form sent.

    >>> sent_method(Settings(), {"method": "mondrian", "seed": "7"})["seed"]
    7
    """
    out: dict[str, object] = {}
    if "method" in sent:
        out["method"] = TABLE_METHODS.decode(sent["method"], "method").use
    if "series" in sent:
        out["series"] = SERIES_METHODS.decode(sent["series"], "method").use
    if "effort" in sent and sent["effort"] in ("low", "normal", "high"):
        out["effort"] = sent["effort"]
    if "k" in sent:
        out["k"] = whole(sent["k"], "k", 2)
    if "seed" in sent:
        out["seed"] = whole(sent["seed"], "seed", 0) if sent["seed"].strip() else None
        out["waive"] = tuple(name for name in WAIVERS if f"waive-{name}" in sent)
    return out


__all__ = ["KS", "METHODS", "choose", "sent_method"]
