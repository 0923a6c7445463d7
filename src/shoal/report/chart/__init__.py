"""Our own small pictures: values in, SVG out, the same text for the same values, in light and dark, for every eye.

>>> from shoal.report.chart import Axis, Lines, Mark, Series, draw
>>> chart = Lines(name="p-k", title="What z buys", x=Axis("z"), y=Axis("people hidden", form="percent", low=0, high=1),
...               series=[Series("k = 2", [5, 10, 20], [0.4, 0.7, 0.9], markers=True)], marks=[Mark(0.8, "goal")])
>>> draw(chart).startswith('<svg xmlns="http://www.w3.org/2000/svg"')
True
"""

from __future__ import annotations

from pathlib import Path

from shoal.report.chart.bins import bins
from shoal.report.chart.body import body
from shoal.report.chart.frame import close
from shoal.report.chart.model import Axis, Bars, Chart, Heat, Histogram, Lines, Mark, Points, Scatter, Series
from shoal.report.chart.scale import show
from shoal.report.chart.sheet import Line, sheet
from shoal.report.chart.svg import style

__all__ = [
    "Axis",
    "Bars",
    "Chart",
    "Heat",
    "Histogram",
    "Line",
    "Lines",
    "Mark",
    "Points",
    "Scatter",
    "Series",
    "bins",
    "draw",
    "sheet",
    "show",
    "style",
    "write",
]


def draw(chart: Chart, *, styled: bool = True) -> str:
    """The SVG of a chart. ``styled=False`` leaves the colours to the page around it (see :func:`style`).

    >>> draw(Bars(name="n", title="Rows", labels=["a"], series={"rows": [3]}))[:4]
    '<svg'
    """
    inner, height, about = body(chart)
    return close(chart, inner, height, chart.about or about, styled)


def write(svg: str, path: str | Path) -> None:
    """Write a picture to a file (beside it first, then renamed: never half a file).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write("<svg/>", Path(folder, "p.svg"))
    ...     Path(folder, "p.svg").read_text()
    '<svg/>\\n'
    """
    from shoal.connect.files import replacing

    with replacing(Path(path)) as out:
        out.write_text(svg + "\n", encoding="utf-8")
