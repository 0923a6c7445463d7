"""The report in a real browser with the network blocked: every chart is there and seen, and nothing asks for more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.api import anonymize_series
from shoal.datasets.hospital import hospital
from shoal.datasets.series import sales_curves

pytestmark = pytest.mark.system

CHARTS = ["correlations", "cross-tables", "group-sizes", "loss", "risk", "withheld"]
CURVES = sorted(
    ["group-sizes", "subgroup-sizes", "widths", "withheld"]
    + [f"envelope-{i}" for i in range(3)]
    + [f"shape-{i}" for i in range(4)]
)
SHOWN = {"report.html": CHARTS, "curves.html": CURVES}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    data = hospital(500, seed=1)
    quasi = {"age": "range", "gluc": "range", "zip": {"use": "prefix", "length": 5}, "sex": "suppress"}
    report: Any = shoal.anonymize(data, quasi=quasi, sensitive=["diag"], k=4, title="A <b>report</b>").report
    report.write(folder / "report.html")
    notebook = (
        "<!DOCTYPE html><html><head><meta charset='utf-8'><style>h2{color:rgb(1,2,3)}</style></head>"
        f"<body><h2 id='mine'>mine</h2><p id='words'>words</p>{report._repr_html_()}</body></html>"
    )
    (folder / "notebook.html").write_text(notebook, encoding="utf-8")
    sales = sales_curves(200, 26)
    release, told = anonymize_series(sales, k=8, p=4, id="Product_Code", sensitive=["W25"], title="Curves")
    (folder / "curves.html").write_text(told.page("curves.html", release), encoding="utf-8")
    return folder


@pytest.fixture
def visit(browser: Any, pages: Path) -> Iterator[Any]:
    contexts = []

    def go(name: str, width: int = 1280, scheme: str = "light") -> tuple[Any, list[str]]:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, service_workers="block"
        )
        contexts.append(context)
        page = context.new_page()
        wrong: list[str] = []
        target = (pages / name).as_uri()
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("request", lambda request: request.url == target or wrong.append(f"request: {request.url}"))
        page.goto(target)
        return page, wrong

    yield go
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", SHOWN)
def test_every_chart_is_seen_and_nothing_is_asked_of_the_network(
    visit: Any, name: str, width: int, scheme: str
) -> None:
    page, wrong = visit(name, width, scheme)
    charts = page.locator("svg[data-chart]")
    assert sorted(charts.nth(i).get_attribute("data-chart") for i in range(charts.count())) == SHOWN[name]
    for i in range(charts.count()):
        box = charts.nth(i).bounding_box()
        assert box["width"] > 250
        assert box["height"] > 60
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert wrong == []
    # nothing hangs over the edge: the page itself does not scroll sideways
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_verdict_and_the_promise_are_read(visit: Any) -> None:
    page, _ = visit("report.html")
    assert page.locator(".stamp").inner_text() == "✓ Verified: every promise is kept"
    assert page.locator("h1").inner_text() == "A <b>report</b>"
    assert "4-anonymity" in page.locator("table").first.inner_text()
    assert page.get_by_role("img").count() == len(CHARTS)


@pytest.mark.parametrize("name", SHOWN)
def test_words_stay_inside_their_chart(visit: Any, name: str) -> None:
    page, _ = visit(name)
    outside = page.evaluate(
        """() => [...document.querySelectorAll('svg[data-chart]')].flatMap(svg => {
            const frame = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].filter(t => {
                const box = t.getBoundingClientRect();
                return box.left < frame.left - 1 || box.right > frame.right + 1
                    || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
            }).map(t => svg.dataset.chart + ': ' + t.textContent);
        })"""
    )
    assert outside == []


def test_dark_and_light_differ_and_words_stand_out(visit: Any) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        page, _ = visit("report.html", scheme=scheme)
        seen[scheme] = page.evaluate(
            """() => {
                const colour = (node, what) => getComputedStyle(document.querySelector(node))[what];
                return [colour('.shoal-page', 'backgroundColor'), colour('.shoal-page', 'color'),
                        colour('figure', 'backgroundColor'), colour('svg[data-chart] text', 'fill')];
            }"""
        )
        ground, words, card, label = (_brightness(c) for c in seen[scheme])
        assert abs(ground - words) > 150
        assert abs(card - label) > 150
    assert all(a != b for a, b in zip(seen["light"], seen["dark"], strict=True))


def _brightness(colour: str) -> float:
    red, green, blue = (int(x) for x in colour[colour.index("(") + 1 : -1].split(",")[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_a_notebook_keeps_its_own_looks(visit: Any) -> None:
    page, wrong = visit("notebook.html", scheme="dark")
    assert page.locator("svg[data-chart]").count() == len(CHARTS)
    own = page.evaluate("getComputedStyle(document.querySelector('#mine')).color")
    assert own == "rgb(1, 2, 3)"
    assert page.evaluate("getComputedStyle(document.querySelector('#words')).color") == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert wrong == []
