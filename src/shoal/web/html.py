"""Markup of pages: elements that browsers read as they are written, everything in them escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shoal.report.chart.svg import clean
from shoal.report.chart.svg import escape as escape

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
ROUND = {"class_": "class", "for_": "for", "list_": "list"}


class Markup(str):
    """Text that is markup already; everything else is escaped where it stands."""

    __slots__ = ()


Child = str | Markup | None
Value = str | int | float | bool | None


def el(name: str, /, *children: Child | Iterable[Child], **attributes: Value) -> Markup:
    """An element. Children that are no markup are escaped; of attributes, ``True`` stands alone, ``None`` not at all.

    >>> el("p", "a < b", el("br"), class_="soft", hidden=True)
    '<p class="soft" hidden>a &lt; b<br></p>'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = ROUND.get(key, key.replace("_", "-"))
        parts.append(label if value is True else f'{label}="{escape(value)}"')
    opened = f"<{' '.join(parts)}>"
    return Markup(opened) if name in VOID else Markup(f"{opened}{join(children)}</{name}>")


def join(children: Iterable[Child | Iterable[Child]]) -> Markup:
    """Children one after the other.

    >>> join(["<", el("b", "x"), None, ["y"]])
    '&lt;<b>x</b>y'
    """
    out = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            out.append(child if isinstance(child, Markup) else escape(child))
        else:
            out.append(join(child))
    return Markup("".join(out))


def hidden(**fields: Value) -> Markup:
    """Fields of a form that nobody sees.

    >>> hidden(version=3)
    '<input type="hidden" name="version" value="3">'
    """
    return join(el("input", type="hidden", name=name, value=value) for name, value in fields.items())


class Option(NamedTuple):
    """One choice of a list: what is sent, what is read."""

    value: str
    words: str


def select(name: str, options: Sequence[Option], chosen: str | None, **attributes: Value) -> Markup:
    """A list to choose from.

    >>> select("k", [Option("2", "two")], "2")
    '<select name="k"><option value="2" selected>two</option></select>'
    """
    inner = [el("option", words, value=value, selected=value == chosen) for value, words in options]
    return el("select", *inner, name=name, **attributes)


def labelled(words: str, field: Markup, about: Child | None = None, kind: str = "field") -> Markup:
    """A field under its label, with a line of explanation."""
    return el("label", el("span", words), field, el("small", about) if about else None, class_=kind)


def button(words: str, *, kind: str = "", **attributes: Value) -> Markup:
    """A button that sends its form."""
    return el("button", words, type="submit", class_=kind or None, **attributes)


def table(
    head: Sequence[Child], rows: Iterable[Sequence[Child]], *, caption: str, right: Sequence[int] = (), kind: str = ""
) -> Markup:
    """A table that scrolls by itself where it is wide; columns ``right`` hold numbers."""
    sides = ["number" if at in right else None for at in range(len(head))]
    top = el("tr", [el("th", cell, scope="col", class_=side) for cell, side in zip(head, sides, strict=True)])
    body = [el("tr", [el("td", cell, class_=side) for cell, side in zip(row, sides, strict=True)]) for row in rows]
    inner = el("table", el("caption", caption, class_="unseen"), el("thead", top), el("tbody", body))
    return el("div", inner, class_=f"scroll {kind}".strip(), tabindex="0", role="region", aria_label=caption)


def cell(value: object) -> str:
    """One cell of somebody's data, short enough for a page.

    >>> cell(None), cell(3.0), cell("x" * 99)[-1]
    ('–', '3.0', '…')
    """
    if value is None:
        return "–"
    text = clean(value)
    return text if len(text) <= 60 else text[:59] + "…"
