"""Markup: elements, escaped text, numbers that print the same everywhere, and the colours of a chart."""

from __future__ import annotations

import re
from html import escape as _escape

COLOURS = 8
LIGHT = ("#2463c4", "#d4690b", "#0c8a74", "#b23f98", "#8a6a00", "#6a58cf", "#c23a3a", "#5c6b7a")
DARK = ("#6ea8ff", "#ffa65e", "#43c7ae", "#ee8ad6", "#d9ba45", "#ab9dff", "#ff8585", "#9dafc0")
GROUND = {"surface": ("#ffffff", "#151b22"), "ink": ("#1b2530", "#e6edf4"), "soft": ("#5a6876", "#9aa9b8")}
GROUND |= {"rule": ("#e2e7ed", "#2b3541"), "heat": ("#2463c4", "#6ea8ff"), "heat2": ("#d4690b", "#ffa65e")}

# Not allowed in XML, or able to turn a line of text around: a hostile column name must not reach the page as markup.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_NARROW = frozenset("iljtfrI.,:;'|!()[]{} ·-")
_WIDE = frozenset("mwMW@%—…")


def clean(value: object) -> str:
    """Text without control characters; each becomes a visible replacement character.

    >>> clean("a\\x00b")
    'a�b'
    """
    return _UNFIT.sub("\ufffd", str(value))


def escape(value: object) -> str:
    """Text that is safe inside an element and inside a quoted attribute.

    >>> escape('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return _escape(clean(value), quote=True)


def number(value: float) -> str:
    """A coordinate with at most two decimals: the same text on every machine.

    >>> number(3.10), number(-0.001)
    ('3.1', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def tag(name: str, *children: str, **attributes: str | float | None) -> str:
    """An element; children are markup already, attributes are escaped here.

    >>> tag("rect", x=1.0, class_="f0", data_note='a"b')
    '<rect x="1" class="f0" data-note="a&quot;b"/>'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            shown = escape(value) if isinstance(value, str) else number(value)
            parts.append(f'{key.rstrip("_").replace("_", "-")}="{shown}"')
    inner = "".join(children)
    return f"<{' '.join(parts)}>{inner}</{name}>" if inner else f"<{' '.join(parts)}/>"


def text(x: float, y: float, content: object, kind: str = "", anchor: str = "start", turn: bool = False) -> str:
    """A line of text; ``turn`` reads from bottom to top."""
    return tag(
        "text",
        escape(content),
        x=x,
        y=y,
        class_=kind or None,
        text_anchor=None if anchor == "start" else anchor,
        transform=f"rotate(-90 {number(x)} {number(y)})" if turn else None,
    )


def hint(content: object) -> str:
    """What a pointer resting on an element reads."""
    return tag("title", escape(content))


def width(content: str, size: float = 12.0) -> float:
    """About how wide a text is; fonts differ, so a little generous.

    >>> width("iii") < width("mmm")
    True
    """
    return sum(map(_em, content)) * size


def _em(letter: str) -> float:
    if letter in _NARROW:
        return 0.36
    if letter in _WIDE or ord(letter) >= 0x2E80:
        return 1.0
    return 0.72 if letter.isupper() else 0.6


def fit(content: object, room: float, size: float = 12.0) -> str:
    """The text if it fits into ``room``, else its two ends around an ellipsis.

    >>> fit("a very long column name", 80.0)
    'a ver…name'
    """
    whole = clean(content)
    if width(whole, size) <= room:
        return whole
    for keep in range(len(whole) - 1, 1, -1):
        tail = keep // 2 if keep < len(whole) else 0
        short = f"{whole[: keep - tail]}…{whole[len(whole) - tail :]}"
        if width(short, size) <= room:
            return short
    return "…"


def style(selector: str = ".shoal-chart") -> str:
    """The rules of all charts, for light and dark; every rule is under ``selector``, so none leaks into a page."""
    light = "".join(f"--c{i}:{c};" for i, c in enumerate(LIGHT)) + _ground(0)
    dark = "".join(f"--c{i}:{c};" for i, c in enumerate(DARK)) + _ground(1)
    font = "12px system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif"
    rules = [
        ("", f"{light}font:{font};background:var(--surface);max-width:100%;height:auto"),
        ("text", "fill:var(--ink);font-variant-numeric:tabular-nums"),
        (".title", "font-size:14px;font-weight:600"),
        (".large", "font-size:20px;font-weight:650"),
        (".card", "fill:var(--surface);stroke:var(--rule)"),
        (".soft", "fill:var(--soft)"),
        (".small", "fill:var(--soft);font-size:11px"),
        (".over", "paint-order:stroke;stroke:var(--surface);stroke-width:3px;stroke-linejoin:round"),
        (".rule", "stroke:var(--rule);fill:none;shape-rendering:crispEdges"),
        (".base", "stroke:var(--soft);fill:none;shape-rendering:crispEdges"),
        (".mark", "stroke:var(--ink);stroke-dasharray:4 3;fill:none"),
        (".ground", "fill:var(--surface)"),
        (".line", "fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round"),
        (".faint", "opacity:.35;stroke-width:1.2"),
        (".band", "opacity:.18;stroke:none"),
        (".dot", "stroke:var(--surface);stroke-width:1.2"),
        (".heat", "fill:var(--heat)"),
        (".heat2", "fill:var(--heat2)"),
        (".on", "fill:var(--surface)"),
    ]
    rules += [(f".f{i}", f"fill:var(--c{i})") for i in range(COLOURS)]
    rules += [(f".s{i}", f"stroke:var(--c{i})") for i in range(COLOURS)]
    body = "".join(f"{selector}{' ' if name else ''}{name}{{{rule}}}" for name, rule in rules)
    return f"{body}@media (prefers-color-scheme:dark){{{selector}{{{dark}}}}}"


def _ground(at: int) -> str:
    return "".join(f"--{name}:{pair[at]};" for name, pair in GROUND.items())
