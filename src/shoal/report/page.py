"""A page of sections: words, figures, tables and charts in one self-contained HTML file, without script or network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from shoal.report.chart import Chart, draw
from shoal.report.chart import style as chart_style
from shoal.report.chart.svg import escape, tag

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # the browser itself forbids everything else
FISH = "M2 8C6 2 13 1 18 6L23 2V14L18 10C13 15 6 14 2 8Z"


class Words(msgspec.Struct, frozen=True):
    """A paragraph.

    >>> Words("Every release was verified.").text
    'Every release was verified.'
    """

    text: str


class Points(msgspec.Struct, frozen=True):
    """A list: each entry is a short title and its sentence (either may be empty)."""

    entries: Sequence[tuple[str, str]]


class Figures(msgspec.Struct, frozen=True):
    """Large figures side by side: label, value, and a small line below.

    >>> Figures([("Rows", "1,000", "of 1,200")]).entries[0][1]
    '1,000'
    """

    entries: Sequence[tuple[str, str, str]]


class Facts(msgspec.Struct, frozen=True):
    """Names and values, one below the other."""

    entries: Sequence[tuple[str, str]]


class Grid(msgspec.Struct, frozen=True):
    """A table; numbers stand right, words left. A row may be marked ``good`` or ``bad`` by its position.

    >>> Grid(["column", "loss"], [["age", 0.2]]).head
    ['column', 'loss']
    """

    head: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    marks: Sequence[str] = ()


class Picture(msgspec.Struct, frozen=True):
    """A chart with a line of explanation below it.

    >>> from shoal.report.chart import Bars
    >>> Picture(Bars(name="n", title="Rows", labels=["a"], series={"rows": [3]}), "How many").caption
    'How many'
    """

    chart: Chart
    caption: str = ""


Block = Words | Points | Figures | Facts | Grid | Picture | Chart


class Section(msgspec.Struct, frozen=True):
    """A heading and what stands below it; neighbouring charts share a line where there is room.

    >>> Section("Loss", [Words("Nothing was lost.")]).title
    'Loss'
    """

    title: str
    blocks: Sequence[Block]
    about: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """The stamp beside the title.

    >>> Verdict(True, "verified").good
    True
    """

    good: bool
    text: str


def page(title: str, sections: Sequence[Section], *, about: str = "", verdict: Verdict | None = None) -> str:
    """A whole document.

    >>> page("Release", [Section("Loss", [Words("Nothing was lost.")])])[:15]
    '<!DOCTYPE html>'
    """
    body = fragment(title, sections, about=about, verdict=verdict)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}"/>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f'<meta name="color-scheme" content="light dark"/>\n<title>{escape(title)}</title>\n'
        f"<style>html,body{{margin:0;padding:0}}body>.shoal-page{{min-height:100vh;box-sizing:border-box}}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def fragment(title: str, sections: Sequence[Section], *, about: str = "", verdict: Verdict | None = None) -> str:
    """The same without the document around it: every rule of its style stays inside, so a notebook keeps its own."""
    stamp = ""
    if verdict is not None:
        kind = "good" if verdict.good else "bad"
        stamp = tag("p", "✓ " if verdict.good else "✗ ", escape(verdict.text), class_=f"stamp {kind}")
    shoal = "".join(
        tag("path", d=FISH, transform=f"translate({x} {y}) scale({s})")
        for x, y, s in ((0, 9, 1), (21, 0, 0.8), (23, 16, 0.9))
    )
    logo = tag("svg", shoal, viewBox="0 0 46 32", width=46, height=32, class_="logo", aria_hidden="true")
    head = tag("header", tag("div", logo, tag("h1", escape(title))), stamp, tag("p", escape(about), class_="about"))
    parts = "\n".join(section(each) for each in sections)
    return f'<div class="shoal-page">\n<style>{rules()}</style>\n{head}\n{parts}\n</div>'


@cache
def rules() -> str:
    """The style of a page and its charts, comments and line breaks left out.

    >>> ".shoal-page" in rules()
    True
    """
    written = files("shoal.report").joinpath("page.css").read_text(encoding="utf-8")
    lines = [line.strip() for line in written.splitlines()]
    return "".join(line for line in lines if not line.startswith("/*")) + chart_style(".shoal-page .shoal-chart")


def write(html: str, path: str | Path) -> None:
    """Write a page to a file (beside it first, then renamed: never half a file).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write("<p>verified</p>", Path(folder, "r.html"))
    ...     Path(folder, "r.html").read_text()
    '<p>verified</p>'
    """
    from shoal.connect.files import replacing

    with replacing(Path(path)) as out:
        out.write_text(html, encoding="utf-8")


def section(part: Section) -> str:
    """One section, for pages that have a frame and a style of their own.

    >>> section(Section("Loss", [Words("Nothing < all.")]))
    '<section><h2>Loss</h2><p>Nothing &lt; all.</p></section>'
    """
    inner = [tag("h2", escape(part.title))] if part.title else []
    if part.about:
        inner.append(tag("p", escape(part.about), class_="about"))
    pictures: list[str] = []
    for block in part.blocks:
        if isinstance(block, Chart | Picture):
            pictures.append(_picture(block if isinstance(block, Picture) else Picture(block)))
            continue
        inner += _shelf(pictures)
        pictures = []
        inner.append(_block(block))
    return tag("section", *inner, *_shelf(pictures))


def _shelf(pictures: list[str]) -> list[str]:
    return [tag("div", *pictures, class_="shelf")] if pictures else []


def _picture(picture: Picture) -> str:
    below = tag("figcaption", escape(picture.caption)) if picture.caption else ""
    return tag("figure", draw(picture.chart, styled=False), below)


def _block(block: Block) -> str:
    match block:
        case Words():
            return tag("p", escape(block.text))
        case Points():
            entries = [tag("li", _strong(name), escape(text)) for name, text in block.entries]
            return tag("ul", *entries, class_="points")
        case Figures():
            tiles = [
                tag("div", tag("dt", escape(name)), tag("dd", escape(value)), tag("p", escape(note) or "&#160;"))
                for name, value, note in block.entries
            ]
            return tag("dl", *tiles, class_="figures")
        case Facts():
            pairs = [tag("dt", escape(name)) + tag("dd", escape(value)) for name, value in block.entries]
            return tag("dl", *pairs, class_="facts")
        case Grid():
            return _grid(block)
    raise TypeError(f"not a block: {type(block).__name__}")


def _strong(name: str) -> str:
    return tag("strong", escape(name)) + " " if name else ""


def _grid(grid: Grid) -> str:
    right = [all(_is_number(row[i]) for row in grid.rows) for i in range(len(grid.head))]
    kinds = ["number" if yes else None for yes in right]
    head = tag(
        "tr", *[tag("th", escape(h) or " ", class_=c, scope="col") for h, c in zip(grid.head, kinds, strict=True)]
    )
    rows = []
    for at, row in enumerate(grid.rows):
        cells = [tag("td", escape(cell) or " ", class_=c) for cell, c in zip(row, kinds, strict=True)]
        rows.append(tag("tr", *cells, class_=grid.marks[at] if len(grid.marks) else None))
    caption = tag("caption", escape(grid.caption)) if grid.caption else ""
    return tag(
        "div",
        tag("table", caption, tag("thead", head), tag("tbody", *rows)),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=grid.caption or ", ".join(grid.head),
    )


def _is_number(cell: object) -> bool:
    """A number, or a text that reads as one: such a column stands right."""
    text = str(cell).strip().rstrip("%").replace(",", "").replace("–", "0").strip()
    try:
        float(text)
    except ValueError:
        return False
    return True
