"""The report: the same figures in text, JSON and HTML, nothing of any one person, whatever the release looks like."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import msgspec
import polars as pl
import pytest

import shoal
from shoal.core.groups import Finding
from shoal.datasets.hospital import hospital
from shoal.measures.loss import Loss
from shoal.measures.risk import Risk
from shoal.measures.utility import Utility
from shoal.report.chart import Axis, Bars, Lines, Series
from shoal.report.limits import limits
from shoal.report.model import Report
from shoal.report.page import (
    Facts,
    Figures,
    Grid,
    Picture,
    Points,
    Section,
    Verdict,
    Words,
    fragment,
    page,
    rules,
    write,
)

HOSTILE = "</style><script>alert('1')</script><b x=\"y\">&\x1b[31m\u202e"
CHARTS = {"group-sizes", "loss", "risk", "withheld", "correlations", "cross-tables"}
VOID = {"meta", "br", "img", "hr", "link", "input"}


@pytest.fixture(scope="module")
def data() -> pl.DataFrame:
    return hospital(400, seed=5).with_columns(weight=pl.col("gluc") * 4)


@pytest.fixture(scope="module")
def report(data: pl.DataFrame) -> Report:
    quasi = {"age": "range", "weight": "range", "zip": {"use": "prefix", "length": 5}, "sex": "suppress"}
    made = shoal.anonymize(data, quasi=quasi, sensitive=["diag"], subject="pid", k=5, l=2, title="Patients")
    found = made.report
    assert isinstance(found, Report)
    return found


def altered(report: Report, **changes: Any) -> Report:
    return msgspec.structs.replace(report, **changes)


class Reader(HTMLParser):
    """Checks that every element is closed where it must be, and collects what a test asks for."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def charts(self) -> list[str]:
        return [str(a["data-chart"]) for _, a in self.tags if "data-chart" in a]


def test_the_page_has_every_picture_once(report: Report) -> None:
    charts = Reader(report.html()).charts
    assert sorted(charts) == sorted(CHARTS)


def test_the_page_needs_nothing_from_outside(report: Report) -> None:
    html = report.html()
    read = Reader(html)
    assert not [t for t, _ in read.tags if t in {"script", "link", "img", "iframe", "object", "a"}]
    assert not [a for _, attrs in read.tags for a in attrs if a in {"src", "href", "srcset", "style"} or a[:2] == "on"]
    assert set(re.findall(r"https?://[^\"' ]+", html)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in html
    assert "@import" not in html


def test_the_same_figures_in_text_json_and_html(report: Report) -> None:
    words, text, figures = Reader(report.html()).text, report.text(), json.loads(report.json())
    assert figures["released"] == report.released
    for shown in (f"{report.released:,}", f"{report.rows:,}", "5-anonymity", "2-diversity of diag", "people"):
        assert shown in words
        assert shown in text
    for name, value in report.loss.columns.items():
        assert f"{value:.2%}" in text
        assert name in words
    assert figures["loss"]["columns"] == pytest.approx(report.loss.columns)
    assert "VERIFIED" in text
    assert "Verified" in words


def test_no_value_of_any_person_is_on_the_page(report: Report, data: pl.DataFrame) -> None:
    for made in (report.html(), report.text(), report.json()):
        assert not any(name in made for name in data["name"].unique())
        words = set(re.findall(r"\w+", made))
        for column in ("zip", "ins_no"):
            assert not words & set(data[column])


def test_the_same_report_gives_the_same_page(report: Report) -> None:
    again = msgspec.json.decode(report.json(), type=Report)
    assert again.html() == report.html()
    assert again.text() == report.text()


def test_a_broken_promise_is_not_dressed_up(report: Report) -> None:
    finding = Finding("5-anonymity", False, 5, 2, 10, 3, "rows", "a note")
    broken = altered(report, verified=False, findings=[finding])
    words = Reader(broken.html()).text
    assert "Not verified: 1 of 1 promises broken" in words
    assert "✗ broken" in words
    assert "3 of 10" in words
    assert "a note" in words
    assert "every promise is kept" not in words
    assert "BROKEN" in broken.text()


def test_limits_follow_the_promises(report: Report) -> None:
    def titles(*promises: str, unit: str = "people") -> set[str]:
        findings = [Finding(p, True, 1, 1, 1, 0, unit) for p in promises]
        return {name for name, _ in limits(altered(report, findings=findings))}

    assert {"Shared secrets.", "Likely secrets."} <= titles("5-anonymity")
    assert "Shared secrets." not in titles("5-anonymity", "2-diversity of a")
    assert "Likely secrets." not in titles("0.2-closeness of a (equal)")
    assert "Several rows of one person." in titles("5-anonymity", unit="rows")
    assert "Several rows of one person." not in titles("5-anonymity")


def hostile(report: Report) -> Report:
    columns = {HOSTILE: 0.4, HOSTILE + "2": 0.1, HOSTILE + "3": 0.9}
    pair = f"{HOSTILE}, {HOSTILE}2"
    return altered(
        report,
        title=HOSTILE,
        method={"use": HOSTILE, HOSTILE: HOSTILE},
        withheld={HOSTILE: 3},
        left_out=[HOSTILE],
        notes=[HOSTILE],
        version=HOSTILE,
        findings=[Finding(HOSTILE, True, 1, 1, 1, 0, HOSTILE, HOSTILE)],
        loss=msgspec.structs.replace(report.loss, columns=columns),
        utility=Utility({HOSTILE: (1.0, 2.0)}, {pair: (0.1, 0.2)}, {pair: 0.5, f"{HOSTILE}2, {HOSTILE}3": 0.2}),
    )


def test_hostile_names_are_only_words(report: Report) -> None:
    html = hostile(report).html()
    read = Reader(html)
    assert "script" not in {t for t, _ in read.tags}
    assert "b" not in {t for t, _ in read.tags}
    assert "<script>alert" in read.text.replace("\ufffd", "")
    for made in (html, hostile(report).text()):
        assert "\x1b" not in made
        assert "\u202e" not in made


def test_nothing_released(report: Report) -> None:
    nobody = Risk(0.0, 0.0, 0.0, 0.0, 0, 0.0, 0, 0)
    empty = altered(
        report,
        released=0,
        rows=0,
        size_counts=[],
        findings=[],
        withheld={},
        risk_after=nobody,
        risk_before=nobody,
        loss=Loss(0.0, {}, 0, 0.0, 0.0, 0.0, 0, 0),
        utility=Utility({}, {}, {}),
    )
    read = Reader(empty.html())
    assert set(read.charts) == {"group-sizes", "loss", "risk", "withheld"}
    assert "nothing to show" in read.text
    assert "Groups: none" in empty.text()
    assert "nan" not in read.text.lower()


@pytest.mark.parametrize(
    "sizes",
    [
        [(5, 1)],
        [(1, 1_000_000)],
        [(n, 1) for n in range(1, 100_001)],
        [(2, 999_999), (10_000_000, 1)],
    ],
    ids=["one group", "a million groups of one", "every size", "far apart"],
)
def test_any_number_of_groups_is_a_small_picture(report: Report, sizes: list[tuple[int, int]]) -> None:
    from shoal.report.pictures import group_sizes

    many = altered(report, size_counts=sizes)
    chart = group_sizes(many)
    assert sum(chart.counts) == sum(n for _, n in sizes)
    assert len(chart.counts) <= 100
    for i, count in enumerate(chart.counts):
        assert count == sum(n for s, n in sizes if chart.edges[i] < s < chart.edges[i + 1])
    assert len(many.html()) < 100_000
    assert f"{sum(n for _, n in sizes):,}" in many.text()


def test_sixty_columns(report: Report) -> None:
    names = [f"column number {i}" for i in range(60)]
    pairs = [f"{a}, {b}" for i, a in enumerate(names) for b in names[i + 1 :]]
    wide = altered(
        report,
        loss=msgspec.structs.replace(report.loss, columns={name: i / 60 for i, name in enumerate(names)}),
        utility=Utility(
            {name: (float(i), i * 1.01) for i, name in enumerate(names)},
            {pair: (0.0, i / len(pairs)) for i, pair in enumerate(pairs)},
            {pair: i / len(pairs) for i, pair in enumerate(pairs)},
        ),
    )
    read = Reader(wide.html())
    assert set(read.charts) == CHARTS
    assert "the worst 20 of 1,770" in read.text
    assert pairs[-1] in read.text  # the worst is shown, the least is not
    assert pairs[0] not in read.text
    assert len(wide.html()) < 150_000
    assert "and 30 more columns" in wide.text()


def test_a_notebook_keeps_its_own_looks(report: Report) -> None:
    inside = report._repr_html_()
    assert inside.startswith('<div class="shoal-page">')
    assert "<html" not in inside
    assert "<body" not in inside
    assert sorted(Reader(inside).charts) == sorted(CHARTS)
    for selector in re.findall(r"([^{}]+)\{", rules()):
        assert selector.startswith((".shoal-page", "@media"))


def test_show_prints_text_outside_a_notebook(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    report.show()
    assert "VERIFIED" in capsys.readouterr().out


def test_show_displays_the_page_in_a_notebook(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    monkeypatch.setattr(ipython, "get_ipython", lambda: object(), raising=False)
    monkeypatch.setattr(display, "HTML", lambda html: html, raising=False)
    monkeypatch.setattr(display, "display", shown.append, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    report.show()
    assert shown == [report._repr_html_()]


def test_a_report_is_written_by_its_ending(report: Report, tmp_path: Path) -> None:
    report.write(tmp_path / "r.html")
    report.write(tmp_path / "r.json")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == report.html()
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["title"] == "Patients"


def test_a_page_of_anything(tmp_path: Path) -> None:
    chart = Lines(name="curve", title="A curve", x=Axis("n"), series=[Series("a", [1, 2], [3, 4])])
    sections = [
        Section(
            "First", [Words("Some words."), Figures([("Rate", "3 M", "a second")]), chart, Picture(chart, "again")]
        ),
        Section("Second", [Points([("Bold.", "Sentence.")]), Facts([("name", HOSTILE)])], about="About this."),
        Section(
            "", [Grid(["method", "loss"], [["local", "2.4 %"], ["other", 3]], caption="A table", marks=["good", ""])]
        ),
        Section("", [Bars(name="bars", title="Bars", labels=["a"], series={"s": [1]})]),
    ]
    html = page("A study", sections, about="what it is", verdict=Verdict(False, "no"))
    read = Reader(html)
    assert read.charts == ["curve", "curve", "bars"]
    for words in ("Some words.", "3 M", "again", "Bold.", "About this.", "A table", "A study", "✗ no"):
        assert words in re.sub(r"\s+", " ", read.text)
    assert [a.get("class") for t, a in read.tags if t == "th"] == [None, "number"]
    assert "script" not in {t for t, _ in read.tags}
    assert fragment("A study", sections, about="what it is", verdict=Verdict(False, "no")) in html
    write(html, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == html


def test_the_picture_of_the_front_page_is_drawn_from_a_report(report: Report) -> None:
    from docs.pictures import make

    svg = make.front(report)
    assert svg == make.front(report)
    root = ElementTree.fromstring(svg)
    assert {g.get("data-chart") for g in root.iter() if g.get("data-chart")} == {
        "report",
        "group-sizes",
        "loss",
        "risk",
        "withheld",
    }
    assert "verified" in svg


def test_every_published_column_is_listed_and_marked_where_it_singles_out(data):
    frame = data.with_columns(code=pl.int_range(pl.len()) + 10**6, same=pl.lit("x"), word=pl.col("name"))
    how = {"quasi": ["age", "word"], "sensitive": ["diag"], "plain": ["code", "same"], "k": 5}
    with pytest.raises(shoal.PromiseError, match="a value of their own in the column 'code'"):
        shoal.anonymize(frame, **how)
    made = shoal.anonymize(frame, **how, waive="unique-plain")
    columns = {c.name: c for c in made.report.columns}
    assert list(columns) == list(made.data.columns)
    assert {n: (c.role, c.hierarchy, c.singles_out) for n, c in columns.items()} == {
        "age": ("quasi", "range", False),
        "word": ("quasi", "suppress", False),
        "diag": ("sensitive", None, False),
        "code": ("plain", None, True),
        "same": ("plain", None, False),
    }
    assert (columns["code"].distinct, columns["code"].alone) == (frame.height, frame.height)
    for name, column in columns.items():
        sizes = list(made.data[name].value_counts()["count"])
        assert (column.distinct, column.alone) == (len(sizes), sizes.count(1))
        assert column.loss == made.report.loss.columns.get(name)
    text, page_ = made.report.text(), made.report.html()
    assert "✗ code" in text
    assert "finds them" in text
    assert "What is published" in page_
    assert page_.count("singles people out") == 1


def test_a_column_that_lost_nearly_everything_says_why(data):
    frame = data.select(date=pl.int_range(pl.len()).cast(pl.String) + "-01-01")
    made = shoal.anonymize(frame, quasi=["date"], k=5)
    column = made.report.columns[0]
    assert column.loss > 0.95
    assert "all or nothing" in column.hint
    assert "all or nothing" in made.report.text()
    assert "declare its type" in made.report.html()


def test_the_report_of_a_view_names_its_masks(tmp_path, data):
    data.write_csv(tmp_path / "x.csv")
    (tmp_path / "p.yaml").write_text(
        "columns: {age: quasi, gluc: plain}\n"
        "views: {r: {show: [age, gluc], masks: {gluc: {use: bucket, width: 5}}, promises: [{use: k-anonymity, k: 3}]}}"
    )
    found = shoal.view(pl.read_csv(tmp_path / "x.csv"), tmp_path / "p.yaml", "r").report.columns
    assert {c.name: c.mask for c in found} == {"age": None, "gluc": "bucket"}


def test_the_weight_of_a_column_is_told_beside_its_loss(data: pl.DataFrame) -> None:
    made = shoal.anonymize(data, quasi=["age", "sex"], k=5, method="mondrian", weights={"age": 2.5}).report
    lines = [line for line in made.text().splitlines() if line.endswith("weight 2.5")]
    assert [line.split()[0] for line in lines] == ["age"]
    assert made.html().count("weight 2.5") == 1
    assert {c["name"]: c["weight"] for c in json.loads(made.json())["columns"]} == {"age": 2.5, "sex": 1.0}
