"""(k,P)-anonymity, again: the figures of Minutoli et al. 2021 with correct measures, as CSV and pictures."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.datasets.series import news_feedback, sales_curves
from shoal.experiments.progress import said
from shoal.experiments.published_curves import PublishedKapra
from shoal.report.chart import Axis, Chart, Lines, Series, draw, write
from shoal.report.page import Grid, Section, page
from shoal.report.page import write as write_page
from shoal.series.perturb import Perturb
from shoal.series.queries import query_errors, read_released
from shoal.series.release import SeriesRelease, anonymize_series
from shoal.series.sax import Sax

ROUNDS = 3  # of what takes no time, the best of three counts
METHODS = ("naive", "kapra as published", "kapra", "banded")
AS_PUBLISHED = PublishedKapra(split="topdown", refine=0, passes=0)  # without the steps that are ours
WORDS = Sax(word=6, levels=5)  # as in the experiments of Minutoli et al. 2021
SHAPES = {"value": "instant value loss", "pattern": "pattern loss (word)", "shape": "pattern loss (full series)",
          "value_total": "instant value loss, total", "pattern_total": "pattern loss, total"}  # fmt: skip


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """Write tables and pictures into ``out``; real data come from ``shared`` where they are, else generated ones."""
    out.mkdir(parents=True, exist_ok=True)
    for method in METHODS:  # what is compiled at its first use must not be timed
        release(sales_curves(60, 13), "Product_Code", method, 6, 3)
    rows: list[dict[str, Any]] = []
    known = sets(shared)
    for name, source, frame, key in known:
        for k, p in said(_grid(name), f"{name}, k ="):
            rows += [_row(name, source, frame, key, method, k, p) for method in METHODS]
    table = pl.DataFrame(rows)
    table.write_csv(out / "kp.csv")
    _, source, frame, key = known[0]
    diversity = _diversity(frame, key, source)
    diversity.write_csv(out / "kp_diversity.csv")
    charts = [*_curves(table), *_envelopes(release(frame, key, "kapra", 16, 6))]
    for chart in charts:
        write(draw(chart), out / f"{chart.name}.svg")
    write_page(_page(table, diversity, charts), out / "kp.html")
    return table


def _page(table: pl.DataFrame, diversity: pl.DataFrame, charts: list[Chart]) -> str:
    """All of it on one page."""
    over = {name: [c for c in charts if c.name.endswith(f"-{name}")] for name in ("p", "k")}
    shown = ["data", "source", "method", "k", "p", "seconds", "value", "pattern", "shape", "range_error", "suppressed"]
    rows = [[f"{v:.3f}" if isinstance(v, float) else v for v in row] for row in table.select(shown).rows()]
    changed = [[f"{v:.3f}" if isinstance(v, float) else v for v in row] for row in diversity.rows()]
    sources = ", ".join(
        f"{name}: {source}" for name, source in table.select("data", "source").unique(maintain_order=True).rows()
    )
    return page(
        "(k,P)-anonymity of curves",
        [
            Section("Against P, on the sales set", over["p"]),
            Section("Against k, on the sales set", over["k"]),
            Section("The other data sets", [c for c in charts if c.name.split("-")[-1] not in ("p", "k", "envelope")
                                            and c.name not in ("envelope", "shape")]),
            Section("A group, and a shape", [c for c in charts if c.name in ("envelope", "shape")]),
            Section("What l costs", [Grid(diversity.columns, changed)], about="Altered only with perturbation."),
            Section("All figures", [Grid(shown, rows)]),
        ],
        about=f"The figures of Minutoli et al. 2021 again, with correct measures. {sources}.",
    )  # fmt: skip


def sets(shared: Path | None) -> list[tuple[str, str, pl.DataFrame, str]]:
    """Name, source, curves (last column sensitive) and id column of each data set."""
    sales = _real(shared, "sales_weekly/sales_transactions_weekly.csv.gz")
    news = _real(shared, "news_facebook/facebook_palestine.csv.gz")
    return [
        (
            "sales",
            "real" if sales is not None else "generated",
            sales_curves() if sales is None else sales,
            "Product_Code",
        ),
        ("palestine", "real" if news is not None else "generated", news_feedback() if news is None else news, "IDLink"),
        ("microsoft shape", "generated", news_feedback(2000, seed=1), "IDLink"),
    ]


def _real(shared: Path | None, path: str) -> pl.DataFrame | None:
    for folder in [] if shared is None else [shared, shared / "data"]:
        if (folder / path).is_file():
            return pl.read_csv(folder / path)
    return None


def _grid(name: str) -> list[tuple[int, int]]:
    if name != "sales":  # larger sets: fewer points of each curve
        return [(16, p) for p in (3, 6, 12)] + [(k, 6) for k in (64, 128)]
    return [(16, p) for p in (2, 4, 6, 8, 10, 12)] + [(k, 6) for k in (8, 32, 64, 128)]


def release(frame: pl.DataFrame, key: str, method: str, k: int, p: int, **more: Any) -> SeriesRelease:
    """Curves released by one of :data:`METHODS`, with the words of the paper."""
    how: Any = AS_PUBLISHED if method == "kapra as published" else method
    return anonymize_series(frame, k=k, p=p, id=key, sensitive=[frame.columns[-1]], method=how, pattern=WORDS, **more)


def _row(name: str, source: str, frame: pl.DataFrame, key: str, method: str, k: int, p: int) -> dict[str, Any]:
    seconds = math.inf
    for _ in range(ROUNDS if frame.height < 1000 else 1):
        start = time.process_time()
        made = release(frame, key, method, k, p)
        seconds = min(seconds, time.process_time() - start)
    loss = made.loss
    asked = read_released(made.frame(), made.instants, made.pattern)
    errors = query_errors(asked, made.curves.values, made.records, queries=40)
    return {
        "data": name,
        "source": source,
        "method": method,
        "k": k,
        "p": p,
        "seconds": seconds,
        "value": loss.value,
        "pattern": loss.pattern,
        "shape": loss.shape,
        "ncp": loss.ncp,
        "value_total": loss.value_total,
        "pattern_total": loss.pattern_total,
        "suppressed": loss.suppressed,
        "range_error": errors["range"],
        "similarity_missed": errors["similarity"],
    }


def _diversity(frame: pl.DataFrame, key: str, source: str) -> pl.DataFrame:
    """What l = 2, 3, 4 costs, by suppressing and by altering."""
    rows = []
    for l in (2, 3, 4):
        kept = release(frame, key, "kapra", 16, 6, l=l)
        changed = release(frame, key, "kapra", 16, 6, l=l, perturb=Perturb())
        altered = sum(changed.altered.values())
        rows.append(
            {
                "source": source,
                "l": l,
                "suppressed": kept.loss.suppressed,
                "pattern": kept.loss.pattern,
                "altered": altered,
            }
        )
    return pl.DataFrame(rows)


def _curves(table: pl.DataFrame) -> list[Chart]:
    """Loss (on average and in total) and time against P and against k, of every data set."""
    charts: list[Chart] = []
    for (name,), part in table.group_by("data", maintain_order=True):
        charts += _of_set(str(name), part)
    return charts


def _of_set(name: str, part: pl.DataFrame) -> list[Chart]:
    charts: list[Chart] = []
    end = "" if name == "sales" else f"-{name.replace(' ', '-')}"
    for over, rows in (("p", part.filter(pl.col("k") == 16)), ("k", part.filter(pl.col("p") == 6))):
        fixed = "k = 16" if over == "p" else "P = 6"
        for measure, words in {**SHAPES, "seconds": "CPU seconds"}.items():
            lines = []
            for method in METHODS:
                own = rows.filter(pl.col("method") == method).sort(over)
                lines.append(Series(method, own[over].to_list(), own[measure].to_list(), markers=True))
            ticks = [(float(v), str(v)) for v in sorted(rows[over].unique().to_list())]
            axis = Axis("P" if over == "p" else "k", form="whole", log=over == "k", ticks=ticks)
            title = f"{words[0].upper()}{words[1:]}, {fixed}" + (f", {name}" if end else "")
            charts.append(Lines(name=f"{measure}-{over}{end}", title=title, x=axis, y=Axis(words, low=0), series=lines))
    return charts


def _envelopes(release: SeriesRelease) -> list[Chart]:
    """One group: its envelope with its curves, and the shapes before and after."""
    sizes = np.bincount(release.published.group)
    group = int(np.argmin(np.abs(np.arange(len(sizes)) - len(sizes) * 0.7)))
    at = np.flatnonzero(release.published.group == group)
    x = list(range(release.curves.values.shape[1]))
    low, high = release.published.low[group].tolist(), release.published.high[group].tolist()
    truth = release.curves.values[release.records[at]]
    inside = [Series(f"curve {i + 1}", x, row.tolist(), legend=False) for i, row in enumerate(truth[:4])]
    envelope = Lines(
        name="envelope", title=f"An envelope of {len(at)} curves, four of them drawn", x=Axis("instant", form="whole"),
        y=Axis("value"), series=[Series("envelope", x, low=low, high=high, colour=0, faint=True), *inside],
    )  # fmt: skip
    shapes = release.pattern.stretch(release.encoded.shapes(release.grouping.word[release.records[at]]), len(x))
    alike = [
        np.corrcoef(own, shape)[0, 1] if own.std() * shape.std() else 0.0
        for own, shape in zip(truth, shapes, strict=True)
    ]
    typical = int(np.argsort(alike, kind="stable")[len(at) // 2])  # neither the best nor the worst of the group
    own, shape = truth[typical], shapes[typical]
    normal = (own - own.mean()) / (own.std() or 1.0)
    both = [Series("before", x, normal.tolist(), faint=True), Series("published", x, shape.tolist(), step=True)]
    before = Lines(
        name="shape",
        title="A shape before and after",
        x=Axis("instant", form="whole"),
        y=Axis("normalized"),
        series=both,
    )
    return [envelope, before]
