"""Small pictures inside other things: a distribution in a card, a share in a table."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.report.chart import show
from shoal.web.html import Markup, cell, el
from shoal.web.summary import Summary

WIDE, HIGH = 220.0, 44.0


def bars(counts: Sequence[int], edges: Sequence[float], name: str) -> Markup:
    """A histogram without axes; the ends are written below."""
    top = max(counts, default=0) or 1
    step = WIDE / max(1, len(counts))
    drawn = [
        el(
            "rect",
            x=f"{i * step:.2f}",
            y=f"{HIGH - HIGH * n / top:.2f}",
            width=f"{step * 0.86:.2f}",
            height=f"{HIGH * n / top:.2f}",
            class_="f0",
        )
        for i, n in enumerate(counts)
        if n
    ]
    ends = (show(edges[0]), show(edges[-1])) if edges else ("", "")
    about = f"Distribution of {name} from {ends[0]} to {ends[1]}"
    picture = el(
        "svg",
        *drawn,
        viewBox=f"0 0 {WIDE:g} {HIGH:g}",
        preserveAspectRatio="none",
        class_="shoal-chart spark",
        role="img",
        aria_label=about,
    )
    return el("div", picture, el("p", el("span", ends[0]), el("span", ends[1]), class_="ends"), class_="small")


def share(part: float, about: str) -> Markup:
    """A bar of one share."""
    return el(
        "svg",
        el("rect", width="100", height="8", class_="rest"),
        el("rect", width=f"{100 * min(1.0, max(0.0, part)):.1f}", height="8", class_="f0"),
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        class_="shoal-chart share",
        role="img",
        aria_label=about,
    )


def common(summary: Summary, rows: int) -> Markup:
    """The commonest values and their shares."""
    lines = [
        el("li", el("span", cell(value)), share(n / rows, f"{n / rows:.0%} of the rows"), el("small", f"{n:,}"))
        for value, n in summary.common[:5]
    ]
    more = summary.distinct - len(lines)
    rest = el("li", el("small", f"and {more:,} more"), class_="rest") if more > 0 else None
    return el("ul", *lines, rest, class_="common")


def distribution(summary: Summary, rows: int) -> Markup:
    """How the values of a column are spread."""
    if summary.counts:
        return bars(summary.counts, summary.edges, summary.name)
    if summary.alone and summary.alone > 0.9 * rows:
        return el("p", "Nearly every row has a value of its own.", class_="about")
    return common(summary, max(1, rows)) if summary.common else el("p", "No values.", class_="about")
