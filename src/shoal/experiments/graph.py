"""Figures 4.4 to 4.7 of Garai 2019: what generalizers cost by the number of values, their length and their levels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.experiments.progress import said
from shoal.report.chart import Axis, Lines, Series, draw, write

COUNTS = (1_000, 4_000, 16_000, 64_000)
LENGTHS = (4, 8, 16, 32)
TITLES = {
    "4.4": ("Range: by the number of values", "values"),
    "4.5": ("Prefix of words: by the number of texts", "texts"),
    "4.6": ("Prefix: by the length of words", "letters"),
    "4.7": ("Prefix of words: by the words of a text", "words"),
}


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """``generalizers.csv`` and one picture per figure: milliseconds of CPU to build all levels, best of three."""
    out.mkdir(parents=True, exist_ok=True)
    table = pl.DataFrame([{"figure": f, "x": x, "ms": _cost(h, v)} for f, x, h, v in said(list(cases()), "Figure")])
    table.write_csv(out / "generalizers.csv")
    for (figure,), part in table.group_by("figure", maintain_order=True):
        title, label = TITLES[str(figure)]
        line = Series("CPU", part["x"].to_list(), part["ms"].to_list(), markers=True)
        chart = Lines(
            name=f"figure-{figure}", title=title, x=Axis(label, log=True), y=Axis("ms", low=0), series=[line]
        )  # fmt: skip
        write(draw(chart), out / f"figure_{figure}.svg")
    return table


def cases() -> Iterator[tuple[str, int, Hierarchy, pl.Series]]:
    """Figure, place on its axis, the hierarchy and the values."""
    rng = np.random.default_rng(0)
    for count in COUNTS:
        yield "4.4", count, Range(min=0, max=count), pl.Series(np.arange(count))
    for count in COUNTS:
        yield "4.5", count, Prefix(4, words=True), _texts(rng, count, 4, 6)
    for length in LENGTHS:
        yield "4.6", length, Prefix(length), _texts(rng, 4_000, 1, length)
    for words in LENGTHS:
        yield "4.7", words, Prefix(words, words=True), _texts(rng, 4_000, words, 4)


def _texts(rng: np.random.Generator, count: int, words: int, length: int) -> pl.Series:
    letters = rng.integers(97, 101, (count, words, length), dtype=np.uint8)
    return pl.Series([" ".join(bytes(w).decode() for w in text) for text in letters]).unique(maintain_order=True)


def _cost(hierarchy: Hierarchy, values: pl.Series) -> float:
    def once() -> float:
        start = time.process_time()
        hierarchy.compile(values)
        return 1000 * (time.process_time() - start)

    once()  # what is loaded at its first use must not be timed
    return min(_three(once))


def _three(measure: Callable[[], float]) -> list[float]:
    return [measure() for _ in range(3)]
