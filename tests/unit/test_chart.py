"""Charts: well-formed for any input, nothing outside the picture, nothing unescaped, the same text every time."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import UsageError
from shoal.report.chart import (
    Axis,
    Bars,
    Heat,
    Histogram,
    Line,
    Lines,
    Mark,
    Points,
    Scatter,
    Series,
    bins,
    draw,
    sheet,
    style,
    write,
)
from shoal.report.chart.lines import thin
from shoal.report.chart.model import Chart
from shoal.report.chart.scale import Scale, domain, show, ticks
from shoal.report.chart.svg import COLOURS, DARK, GROUND, LIGHT, fit, width

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</text><script>alert("1")</script>&amp; \x00\x1b[31m \u202e \ud800 \'"'

names = st.text(max_size=30)
anything = st.floats(allow_nan=True, allow_infinity=True)
usual = st.floats(-1e12, 1e12)
axes = st.builds(Axis, names, st.booleans(), form=st.sampled_from(["number", "percent", "whole"]))


@st.composite
def charts(draw_: st.DrawFn) -> Chart:
    kind = draw_(st.sampled_from([Bars, Histogram, Lines, Scatter, Heat]))
    value = draw_(st.sampled_from([anything, usual, st.floats(0, 1), st.integers(0, 10)]))
    n = draw_(st.integers(0, 12))
    column = st.lists(value, min_size=n, max_size=n)
    both = {"name": "any", "title": draw_(names)}
    if kind is Bars:
        series = draw_(st.dictionaries(names, column, max_size=4))
        labels = draw_(st.lists(names, min_size=n, max_size=n))
        lying, stacked, written = draw_(st.tuples(st.booleans(), st.booleans(), st.booleans()))
        return Bars(
            **both, labels=labels, series=series, axis=draw_(axes), horizontal=lying, stacked=stacked, values=written
        )
    if kind is Histogram:
        edges = sorted(draw_(st.lists(usual, min_size=n + 1, max_size=n + 1)))
        return Histogram(**both, edges=edges, counts=draw_(column), x=draw_(axes), y=draw_(axes))
    if kind is Heat:
        rows = draw_(st.integers(0, 5))
        cells = draw_(st.lists(column, min_size=rows, max_size=rows))
        return Heat(**both, rows=["r"] * rows, columns=["a long name"] * n, values=cells)
    marks = [Mark(draw_(usual), draw_(names), draw_(st.sampled_from(["x", "y"])))]
    if kind is Scatter:
        points = [Points(draw_(names), draw_(column), draw_(column), connect=draw_(st.booleans())) for _ in range(2)]
        return Scatter(**both, points=points, x=draw_(axes), y=draw_(axes), marks=marks)
    flags = draw_(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()))
    lines = [
        Series(draw_(names), draw_(column), draw_(column), draw_(column), draw_(column), None, *flags) for _ in range(2)
    ]
    return Lines(**both, series=lines, x=draw_(axes), y=draw_(axes), marks=marks)


@given(charts())
def test_any_input_gives_a_well_formed_picture_that_stays_inside_itself(chart: Chart) -> None:
    svg = draw(chart)
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("data-chart") == "any"
    assert root.find(f"{SVG}title") is not None
    assert root.find(f"{SVG}desc") is not None
    wide, tall = float(root.get("width", "0")), float(root.get("height", "0"))
    for box in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(box.get(key, "0")) for key in ("x", "y", "width", "height"))
        assert w >= 0
        assert h >= 0
        assert -0.01 <= x <= x + w <= wide + 0.01
        assert -0.01 <= y <= y + h <= tall + 0.01
    for path in root.iter(f"{SVG}path"):
        assert not re.search("nan|inf", path.get("d", ""))


@given(charts())
def test_the_same_values_give_the_same_text(chart: Chart) -> None:
    assert draw(chart) == draw(chart)
    assert "<style>" not in draw(chart, styled=False)


def test_names_are_text_and_never_markup() -> None:
    chart = Bars(name=HOSTILE, title=HOSTILE, labels=[HOSTILE], series={HOSTILE: [1], HOSTILE + "2": [2]})
    svg = draw(chart)
    root = ElementTree.fromstring(svg)
    assert not list(root.iter(f"{SVG}script"))
    assert "<script" not in svg
    for unfit in "\x00\x1b\u202e\ud800":
        assert unfit not in svg


@given(usual, usual, st.integers(2, 12), st.sampled_from(["number", "percent", "whole"]))
def test_ticks_lie_inside_rise_and_read_differently(a: float, b: float, most: int, form: str) -> None:
    axis = Axis(form=form)  # type: ignore[arg-type]
    low, high = domain(axis, [a, b])
    slack = 1e-9 * (high - low)  # a billionth of an axis is far less than a pixel
    assert low <= min(a, b) + slack
    assert high >= max(a, b) - slack
    found = ticks(axis, low, high, most)
    values = [v for v, _ in found]
    assert values == sorted(set(values))
    assert len(values) <= 2 * most + 2
    assert all(low - slack <= v <= high + slack for v in values)


@pytest.mark.parametrize("decimals", range(6))
def test_tick_labels_differ_at_every_size(decimals: int) -> None:
    size = 10.0**-decimals
    labels = [label for _, label in ticks(Axis(), 0, size, 5)]
    assert len(labels) >= 4
    assert len(set(labels)) == len(labels)


@given(st.floats(1e-12, 1e12), st.floats(1e-12, 1e12))
def test_a_logarithmic_axis_holds_its_data(a: float, b: float) -> None:
    low, high = domain(Axis(log=True), [a, b, 0.0, -3.0])
    assert 0 < low <= min(a, b) * (1 + 1e-6)
    assert high >= max(a, b) * (1 - 1e-6)
    assert ticks(Axis(log=True), low, high)


def test_what_a_logarithmic_axis_cannot_show_makes_a_gap() -> None:
    chart = Lines(
        name="gap", title="gap", y=Axis(log=True), series=[Series("a", [1, 2, 3, 4, 5], [1.0, 2.0, 0.0, math.nan, 5.0])]
    )
    path = next(p for p in ElementTree.fromstring(draw(chart)).iter(f"{SVG}path"))
    assert path.get("d", "").count("M") == 2


def test_a_bar_is_as_long_as_its_value() -> None:
    chart = Bars(name="b", title="b", labels=["a", "b", "c"], series={"s": [0.25, 0.5, 1.0]}, axis=Axis(low=0, high=1))
    boxes = [b for b in ElementTree.fromstring(draw(chart)).iter(f"{SVG}rect") if b.get("class") == "f0"]
    long = [float(b.get("width", "0")) for b in boxes]
    assert long[1] == pytest.approx(2 * long[0], abs=0.02)
    assert long[2] == pytest.approx(4 * long[0], abs=0.04)


def test_a_band_lies_between_its_two_series() -> None:
    chart = Lines(name="band", title="band", series=[Series("e", [0, 1, 2], low=[1, 2, 3], high=[4, 5, 6])])
    path = next(p for p in ElementTree.fromstring(draw(chart)).iter(f"{SVG}path"))
    numbers = [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", path.get("d", ""))]
    heights = numbers[1::2]
    assert len(heights) == 6
    assert all(upper < lower for upper, lower in zip(heights[:3], reversed(heights[3:]), strict=True))


@given(st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 50)), max_size=60))
def test_bins_lose_nobody(pairs: list[tuple[int, int]]) -> None:
    edges, counts = bins(pairs, whole=True)
    assert sum(counts) == sum(n for _, n in pairs)
    assert len(edges) == (len(counts) + 1 if pairs else 0)
    for i, count in enumerate(counts):
        assert count == sum(n for v, n in pairs if edges[i] < v < edges[i + 1])


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 50)), min_size=1, max_size=60))
def test_bins_of_fractions_lose_nobody(pairs: list[tuple[float, int]]) -> None:
    edges, counts = bins(pairs)
    assert sum(counts) == sum(n for _, n in pairs)
    assert edges == sorted(edges)
    assert len(counts) <= 100


def test_thinning_keeps_the_extremes() -> None:
    run = [(i / 100, float((i * 7919) % 1000)) for i in range(50_000)]
    run[12_345] = (123.45, 9999.0)
    few = thin(run)
    assert len(few) <= 4 * 501
    assert (123.45, 9999.0) in few
    assert few[0] == run[0]
    assert few[-1] == run[-1]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=30, unique=True))
def test_the_staircase_joins_the_points_nobody_beats(pairs: list[tuple[int, int]]) -> None:
    best = [p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)]
    x, y = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    root = ElementTree.fromstring(draw(Scatter(name="f", title="f", points=[Points("p", x, y, connect=True)])))
    stairs = [p.get("d", "") for p in root.iter(f"{SVG}path")]
    assert sum(d.count("H") for d in stairs) == len(best) - 1


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.text("abc", min_size=1, max_size=9)), max_size=25))
def test_labels_of_points_never_cover_a_point_or_each_other(places: list[tuple[int, int, str]]) -> None:
    x, y = [float(a) for a, _, _ in places], [float(b) for _, b, _ in places]
    chart = Scatter(name="s", title="s", points=[Points("p", x, y, [name for _, _, name in places])])
    root = ElementTree.fromstring(draw(chart))
    dots = [(float(c.get("cx", "0")), float(c.get("cy", "0"))) for c in root.iter(f"{SVG}circle")]
    assert len(dots) == len(places)
    boxes = []
    for label in root.iter(f"{SVG}text"):
        if label.get("class") != "small over":
            continue
        wide = width(label.text or "", 11)
        left = float(label.get("x", "0")) - {"middle": wide / 2, "end": wide}.get(label.get("text-anchor", ""), 0.0)
        boxes.append((left, float(label.get("y", "0")) - 9, left + wide, float(label.get("y", "0")) + 2))
    for i, a in enumerate(boxes):
        assert not any(a[0] < px < a[2] and a[1] < py < a[3] for px, py in dots)
        assert not any(a[0] + 0.02 < b[2] and b[0] + 0.02 < a[2] and a[1] < b[3] and b[1] < a[3] for b in boxes[:i])


def test_every_marker_has_its_shape_and_its_words() -> None:
    kinds = [Series(name, [1, 2], [i, i + 1], markers=True) for i, name in enumerate("abcd")]
    root = ElementTree.fromstring(draw(Lines(name="m", title="m", series=kinds)))
    marked = [e for e in root.iter() if (e.get("class") or "").startswith("dot")]
    assert [e.tag.removeprefix(SVG) for e in marked] == ["circle"] * 2 + ["rect"] * 2 + ["polygon"] * 4
    assert [e.findtext(f"{SVG}title") for e in marked][:2] == ["a: 0 at 1", "a: 1 at 2"]


def test_a_legend_shows_the_marks_of_its_plot() -> None:
    points = [Points(f"method {at}", [at], [at]) for at in range(4)] + [
        Points("frontier", [0, 3], [3, 0], connect=True)
    ]
    root = ElementTree.fromstring(draw(Scatter(name="f", title="f", points=points)))
    marks: dict[str, list[str]] = {}
    for mark in root.iter():
        words = mark.findtext("{*}title") or ""
        if words.startswith("method"):
            marks.setdefault(words[:8], []).append(mark.tag)
    assert len(marks) == 4
    for legend, plotted in marks.values():
        assert legend == plotted
    assert len({tuple(pair) for pair in marks.values()}) == 3  # a circle, a square, and two kinds of polygons


def test_very_many_points_make_a_small_file() -> None:
    n = 200_000
    series = Series("noise", range(n), [float((i * 7919) % 1000) for i in range(n)])
    assert len(draw(Lines(name="long", title="long", series=[series]))) < 100_000


@given(st.text(max_size=60), st.floats(20, 300))
def test_a_shortened_text_fits(content: str, room: float) -> None:
    short = fit(content, room)
    assert width(short) <= room or short == "…"


def test_forms_of_numbers() -> None:
    assert show(0.1234, "percent") == "12.3 %"
    assert show(1.0, "percent") == "100 %"
    assert show(86_400.0, "time") == "1970-01-02 00:00:00"
    assert show(math.nan) == "–"
    assert [label for _, label in ticks(Axis(form="time"), 0, 7200, 4)] == ["00:00", "00:30", "01:00", "01:30", "02:00"]
    assert [label for _, label in ticks(Axis(log=True), 1e-5, 1e5, 5)] == [
        "10⁻⁵",
        "0.001",
        "0.1",
        "10",
        "1,000",
        "100k",
    ]
    assert ticks(Axis(ticks=[(2, "k=2"), (9, "k=9")]), 0, 5) == [(2, "k=2")]


def test_a_scale_holds_values_at_its_ends() -> None:
    scale = Scale(1.0, 100.0, 0.0, 200.0, log=True)
    assert scale(10.0) == pytest.approx(100.0)
    assert scale(1e9) == 200.0
    assert scale(0.001) == 0.0


def test_colours_for_light_and_dark_stay_under_their_class() -> None:
    rules = style()
    assert "prefers-color-scheme:dark" in rules
    for rule in re.findall(r"([^{}]+)\{", rules):
        assert rule.startswith((".shoal-chart", "@media"))


def luminance(colour: str) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("at", "palette"), [(0, LIGHT), (1, DARK)], ids=["light", "dark"])
def test_every_colour_stands_out_from_its_ground(at: int, palette: tuple[str, ...]) -> None:
    surface = GROUND["surface"][at]
    assert len(set(palette)) == COLOURS
    assert min(contrast(c, surface) for c in palette) >= 3  # graphics
    assert min(contrast(GROUND[name][at], surface) for name in ("ink", "soft")) >= 4.5  # words


def test_pieces_of_different_length_are_refused() -> None:
    with pytest.raises(UsageError, match="same length"):
        Series("a", [1, 2], [1])
    with pytest.raises(UsageError, match="same length"):
        Series("a", [1], low=[1])
    with pytest.raises(UsageError, match="same length"):
        Points("a", [1, 2], [1])
    with pytest.raises(UsageError, match="expected 1 values"):
        Bars(name="b", title="b", labels=["x"], series={"s": [1, 2]})
    with pytest.raises(UsageError, match="expected 3 edges"):
        Histogram(name="h", title="h", edges=[0, 1], counts=[1, 2])
    with pytest.raises(UsageError, match="one cell per column"):
        Heat(name="h", title="h", rows=["a"], columns=["b"], values=[[1, 2]])


def test_a_sheet_holds_every_chart_once_and_none_on_another() -> None:
    charts = [
        Bars(name=f"c{i}", title=HOSTILE, labels=list("abcdefgh"[: i + 1]), series={"s": list(range(i + 1))}, width=400)
        for i in range(7)
    ]
    root = ElementTree.fromstring(sheet("all", "All", charts, columns=3, lines=[Line(HOSTILE, "soft")]))
    groups = [g for g in root.iter(f"{SVG}g") if g.get("data-chart")]
    assert [g.get("data-chart") for g in groups] == [c.name for c in charts]
    boxes = []
    for group in groups:
        x, y = (float(v) for v in re.findall(r"[\d.]+", group.get("transform", "")))
        card = next(group.iter(f"{SVG}rect"))
        boxes.append((x, y, x + float(card.get("width", "0")), y + float(card.get("height", "0"))))
    for i, a in enumerate(boxes):
        assert a[2] <= float(root.get("width", "0"))
        assert a[3] <= float(root.get("height", "0"))
        assert not any(a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for b in boxes[:i])


def test_a_picture_is_written_whole(tmp_path: Path) -> None:
    svg = draw(Bars(name="b", title="b", labels=["x"], series={"s": [1]}))
    write(svg, tmp_path / "b.svg")
    assert (tmp_path / "b.svg").read_text(encoding="utf-8") == svg + "\n"
    assert [p.name for p in tmp_path.iterdir()] == ["b.svg"]
