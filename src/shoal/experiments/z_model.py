"""Figures 2 to 8 of Jha et al. 2020: by the paper's formula and by the exact model, as CSV and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from shoal.datasets.streams import web_visits
from shoal.experiments.progress import said
from shoal.measures.zk_model import Method, Model
from shoal.report.chart import Axis, Lines, Series, draw, write

METHODS: tuple[Method, ...] = ("exact", "paper2020")
KS = (2, 3, 4)
HIDDEN = Axis("people hidden among k", form="percent", low=0, high=1)


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """Write one table of all points and one picture per figure into ``out``; nothing is read."""
    out.mkdir(parents=True, exist_ok=True)
    parts = {"2": _figure_2, "3": _figure_3, "4": _figure_4, "5": _figure_5, "6": _figure_6, "7, 8": _figures_7_8}
    rows = [row for _, part in said(parts.items(), "Figure") for row in part()]
    table = pl.DataFrame(rows)
    table.write_csv(out / "z_model.csv")
    for (name,), part in table.group_by("figure", maintain_order=True):
        write(draw(_picture(str(name), part)), out / f"figure_{name}.svg")
    return table


def _row(figure: str, x: float, line: str, y: float, error: float = 0.0) -> dict[str, Any]:
    return {"figure": figure, "x": float(x), "line": line, "y": float(y), "error": float(error)}


def _points(figure: str, models: Sequence[tuple[float, int, Model]], ks: Sequence[int]) -> list[dict[str, Any]]:
    out = []
    for x, z, model in models:
        for k in ks:
            for method in METHODS:
                found = model.p_k(z, k, method)
                out.append(_row(figure, x, f"k = {k}, {method}", found.value, found.error))
    return out


def _figure_2() -> list[dict[str, Any]]:
    ranks = (1, 10, 50, 100, 200, 300, 500, 1000, 5000)
    return [_row("2", r, f"z = {z}", Model().p_y(z)[0][r - 1]) for z in (1, 10, 20, 40) for r in ranks]


def _figure_3() -> list[dict[str, Any]]:
    sizes = (10, 50, 100, 150, 200, 500, 1000, 5000)
    out = _points("3a", [(a, 20, Model(attributes=a)) for a in sizes], KS)
    return out + _by_z("3b", (1, 10, 20, 40), [(a, Model(attributes=a)) for a in sizes])


def _by_z(figure: str, zs: Sequence[int], models: Sequence[tuple[float, Model]]) -> list[dict[str, Any]]:
    """k = 2 by several z: the formula's line beside the exact one."""
    return [
        _row(figure, x, f"z = {z}, {method}", model.p_k(z, 2, method).value)
        for z in zs
        for x, model in models
        for method in METHODS
    ]


def _figure_4() -> list[dict[str, Any]]:
    return _points("4", [(z, z, Model()) for z in (1, 5, 10, 15, 20, 25, 30, 40, 60, 120, 200)], KS)


def _figure_5() -> list[dict[str, Any]]:
    users = (5_000, 10_000, 22_500, 50_000, 75_000, 100_000)
    return _points("5", [(u, max(1, round(20 * u / 50_000)), Model(users=u)) for u in users], KS)


def _figure_6() -> list[dict[str, Any]]:
    out = _points("6a", [(n, 20, Model(windows=n)) for n in (1, 3, 5, 10, 15, 20, 24, 30, 45)], KS)
    watched = (1, 3, 10, 24, 70, 150, 300, 400)
    return out + _by_z("6b", (1, 20, 60, 120), [(n, Model(windows=n)) for n in watched])


def _figures_7_8() -> list[dict[str, Any]]:
    visits = web_visits()
    model = Model(users=visits.users, exposed=visits.exposed)
    ranks = (1, 7, 20, 70, 200, 500, 1000, 5000, 20_000)
    out = [_row("7", r, f"z = {z}", model.p_y(z)[0][r - 1]) for z in (1, 10, 50, 100) for r in ranks]
    return out + _points("8", [(z, z, model) for z in (50, 100, 200, 300, 350, 400, 600, 1000)], KS)


def _picture(name: str, part: pl.DataFrame) -> Lines:
    colours = {name: at for at, name in enumerate(dict.fromkeys(str(v).split(",")[0] for v in part["line"]))}
    series = [
        Series(
            str(line),
            rows["x"].to_list(),
            rows["y"].to_list(),
            markers=True,
            dash="paper2020" in str(line),
            colour=colours[str(line).split(",")[0]] if "," in str(line) else None,  # one k or z, one colour
        )
        for (line,), rows in part.group_by("line", maintain_order=True)
    ]
    rank = name in ("2", "7")
    labels = {"2": "rank", "7": "rank", "3": "attributes", "4": "z", "5": "users", "6": "windows watched", "8": "z"}
    return Lines(
        name=f"figure-{name}",
        title=f"Figure {name}: " + ("probability to see a value" if rank else "what z buys"),
        x=Axis(labels[name[0]], log=rank or name.startswith("3")),
        y=Axis("probability per window", log=True, low=1e-12) if rank else HIDDEN,
        series=series,
    )
