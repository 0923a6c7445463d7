"""The live page: how a stream or a service goes, right now and since it began."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.report.chart import Axis, Bars, Chart, Lines, Mark, Series, draw
from shoal.web.board import Board, Sample, tail
from shoal.web.html import Markup, el, escape, table
from shoal.web.pages.layout import logo

PARTS = ("figures", "rate", "became", "over", "views", "errors")
WORDS = {
    "z": ("z in force", "people who showed a value"),
    "p_k": ("p_k", "people hidden, as measured"),
    "smallest group": ("Smallest group", "people behind a release"),
    "delay": ("Delay", "mean"),
    "held": ("Held", "waiting for company"),
    "lag": ("Lag", "records not read yet"),
    "dead letters": ("Dead letters", "records nobody could read"),
    "memory": ("Memory", "of this process"),
}


def live(board: Board) -> str:
    """The page around the parts that change."""
    parts = parts_of(board)
    body = [el("div", Markup(parts[name]), id=name) for name in PARTS]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(board.title)} · live</title>"
        '<link rel="icon" href="/static/fish.svg"><link rel="stylesheet" href="/static/page.css">'
        '<link rel="stylesheet" href="/static/studio.css"><script type="module" src="/static/studio.js"></script>'
        '</head><body class="shoal-page studio">'
        f"{el('header', el('span', logo(), el('strong', board.title), class_='home'), state(board), class_='top')}"
        f"{el('main', body, class_='live', data_live='/events')}"
        f"{el('div', role='status', id='lost', hidden=True, class_='lost')}</body></html>\n"
    )


def state(board: Board) -> Markup:
    """Whether it runs."""
    kind = "state ended" if board.ended else "state"
    return el("span", "ended" if board.ended else "running", class_=kind, role="status")


def parts_of(board: Board) -> dict[str, str]:
    """The markup of everything that changes."""
    if not board.history:
        return {**dict.fromkeys(PARTS, ""), "figures": str(el("p", "No event yet.", class_="about"))}
    now = board.history[-1]
    made = {
        "figures": figures(board, now),
        "rate": shelf(over_time(board)),
        "became": shelf(became(now)),
        "over": shelf(steering(board)),
        "views": views(now) if now.views else "",
        "errors": errors(board),
    }
    return {name: str(part) for name, part in made.items()}


def shelf(charts: Sequence[Chart]) -> str:
    """Pictures beside each other."""
    drawn = [el("figure", Markup(draw(chart, styled=False))) for chart in charts]
    return el("div", drawn, class_="shelf") if drawn else ""


def figures(board: Board, now: Sample) -> Markup:
    """The figures one looks for first."""
    rate = board.rates()
    whole = now.released + now.withheld
    entries = [
        ("Rate", f"{rate[-1][1]:,.0f}/s" if rate else "–", f"{now.events / max(1e-9, now.at):,.0f}/s since it began"),
        ("Events", f"{now.events:,}", f"in {_time(now.at)}"),
        ("Released", f"{now.released:,}", f"{now.released / whole:.1%}" if whole else "none yet"),
        ("Withheld", f"{now.withheld:,}", f"{now.withheld / whole:.1%}" if whole else "none yet"),
    ]
    entries += [(*_named(name, value, now),) for name, value in now.figures.items() if name in WORDS]
    tiles = [el("div", el("dt", name), el("dd", value), el("p", note)) for name, value, note in entries]
    return el("dl", tiles, class_="figures")


def _named(name: str, value: float, now: Sample) -> tuple[str, str, str]:
    title, note = WORDS[name]
    if name == "memory":
        return title, f"{value:,.0f} MB", note
    if name == "p_k":
        reached = now.figures.get("goal reached")
        return title, f"{value:.0%}", note if reached is None else "goal reached" if reached else "goal not reached"
    if name == "delay" and "longest delay" in now.figures:
        return title, f"{value:,.0f}", f"events, mean; most {now.figures['longest delay']:,.0f}"
    if name == "delay":
        return title, f"{value * 1000:,.0f} ms", "of the last commit"
    return title, f"{value:,.0f}", note


def _time(seconds: float) -> str:
    """A duration as people say it.

    >>> _time(75.0), _time(8000.0)
    ('1:15', '2:13:20')
    """
    whole = int(seconds)
    hours = f"{whole // 3600}:{whole // 60 % 60:02d}" if whole >= 3600 else f"{whole // 60}"
    return f"{hours}:{whole % 60:02d}"


def over_time(board: Board) -> list[Chart]:
    """The rate, and what became of the events."""
    rate = tail(board.rates())
    history = [(s.at, s.released / (s.released + s.withheld)) for s in board.history if s.released + s.withheld]
    share = tail(history)
    axis = Axis("seconds since it began", low=0)
    out: list[Chart] = []
    if len(rate) > 1:
        series = [Series("events", [x for x, _ in rate], [y for _, y in rate])]
        out.append(
            Lines(name="rate", title="Events per second", width=440, height=240, x=axis, y=Axis(low=0), series=series)
        )
    if len(share) > 1:
        series = [Series("released", [x for x, _ in share], [y for _, y in share])]
        y = Axis(form="percent", low=0, high=1)
        out.append(Lines(name="released", title="Share released", width=440, height=240, x=axis, y=y, series=series))
    return out


def steering(board: Board) -> list[Chart]:
    """z and p_k over time, where there are any."""
    out: list[Chart] = []
    axis = Axis("seconds since it began", low=0)
    for name, title, form in (
        ("z", "z over time", "whole"),
        ("p_k", "People hidden, over time", "percent"),
        ("lag", "Lag", "whole"),
    ):
        known = tail([(s.at, s.figures[name]) for s in board.history if name in s.figures])
        if len(known) < 2 or (name == "z" and len({y for _, y in known}) < 2):
            continue
        y = Axis(form="percent", low=0, high=1) if form == "percent" else Axis(form="whole", low=0)
        series = [Series(name, [x for x, _ in known], [v for _, v in known], step=name == "z")]
        out.append(
            Lines(name=name, title=title, width=440, height=240, x=axis, y=y, series=series, marks=_goal(board, name))
        )
    return out


def _goal(board: Board, name: str) -> list[Mark]:
    goal = board.history[-1].figures.get("goal")
    return [Mark(goal, "goal")] if name == "p_k" and goal is not None else []


def became(now: Sample) -> list[Chart]:
    """What was released, and as what; what was not, and why."""
    known = (("levels", "Released by level", now.levels), ("why", "Withheld, and why", now.reasons))
    return [bars(name, title, counts) for name, title, counts in known if counts]


def bars(name: str, title: str, counts: dict[str, int]) -> Chart:
    """Counts by name."""
    return Bars(
        name=name,
        title=title,
        width=440,
        labels=list(counts),
        series={"events": [float(n) for n in counts.values()]},
        axis=Axis(form="whole", low=0),
    )


def views(now: Sample) -> Markup:
    """The views of a service."""
    rows = [[role, f"{a:,}", f"{b:,}", f"{c:,}"] for role, (a, b, c) in now.views.items()]
    return table(["View", "Written", "Withheld", "Held"], rows, caption="Views", right=(1, 2, 3))


def errors(board: Board) -> Markup:
    """The last errors: where and how many, never a value."""
    if not board.errors:
        return el("p", "No errors.", class_="about")
    rows = [[_time(at), words] for at, words in reversed(board.errors)]
    return el("section", el("h2", "Last errors"), table(["After", "What"], rows, caption="Last errors", right=(0,)))
