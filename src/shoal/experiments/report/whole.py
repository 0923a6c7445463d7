"""One page and one CSV: every table and figure of the five papers, the published number, ours, the verdict, the reason.

Each part is computed anew. Where ours differs, the reason stands in :mod:`shoal.experiments.report.deviations`, which
the tests hold to what is really different.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl

from shoal.experiments.progress import say
from shoal.experiments.report import examples, others, thesis
from shoal.experiments.report.claim import VERDICTS, Claim
from shoal.experiments.report.deviations import reason_of
from shoal.report.page import Block, Figures, Grid, Points, Section, page
from shoal.report.page import write as write_page

COLUMNS = ("paper", "item", "what", "published", "ours", "tolerance", "verdict", "reason")
ABOUT = (
    "Made by `shoal experiment report`. Same: within the stated tolerance. Same shape: the order of curves or the "
    "statement holds. The data of Bacconi 2021 and Jha et al. 2020 are not public: ours are generated, calibrated "
    "against the papers' own tables."
)


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """``report.csv`` and ``report.html``; says on stderr how far it is."""
    out.mkdir(parents=True, exist_ok=True)
    parts: dict[str, Callable[[], Iterable[Claim]]] = {
        "the streams of the thesis": thesis.data_sets,
        "p by z": thesis.by_z,
        "days and nights": thesis.over_time,
        "goals": thesis.goals,
        "noise": thesis.noise,
        "the z-to-k model": others.z_model,
        "curves": lambda: others.curves(shared),
        "role views": others.role_views,
        "generalizers": lambda: others.graph_approximation(out),
        "worked examples": examples.examples,
    }
    claims: list[Claim] = []
    for at, (name, part) in enumerate(parts.items(), 1):
        start = time.process_time()
        say(f"[{at}/{len(parts)}] {name} …")
        claims += [claim._replace(reason=claim.reason or reason_of(claim)) for claim in part()]
        table = pl.DataFrame([[*claim] for claim in claims], schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
        table.write_csv(out / "report.csv")  # after each part: whoever stops it keeps what is done
        say(f"[{at}/{len(parts)}] {name}: {time.process_time() - start:.0f} s of CPU")
    write_page(report_page(table), out / "report.html")
    return table


def report_page(table: pl.DataFrame) -> str:
    """The page of a report. A reason that many lines share stands once, below, with its number."""
    counts = dict(table["verdict"].value_counts().rows())
    differs = table.filter(pl.col("verdict") == "differs")["reason"].unique(maintain_order=True).to_list()
    number = {reason: f"no. {at}" for at, reason in enumerate(differs, 1)}
    sections = [Section("In short", [Figures([(name, f"{counts.get(name, 0):,}", "") for name in VERDICTS])])]
    for (paper,), part in table.group_by("paper", maintain_order=True):
        apart = pl.col("verdict").is_in(["worked example", "nothing published"])
        compared, shown = part.filter(~apart), part.filter(apart)
        rows = [
            [*row[:-1], number.get(row[-1], row[-1])]
            for _, item in compared.group_by("item", maintain_order=True)  # lines of one table stand together
            for row in item.select(COLUMNS[1:]).rows()
        ]
        marks = ["bad" if row[5] == "differs" else "" for row in rows]
        blocks: list[Block] = [Grid(list(COLUMNS[1:]), rows, marks=marks)] if rows else []
        if shown.height:
            head = ["item", "what", "ours", "verdict", "reason"]
            blocks.append(Grid(head, shown.select(head).rows(), caption="Worked examples and drawings"))
        sections.append(Section(str(paper), blocks))
    lines = dict(table["reason"].value_counts().rows())
    reasons = [(f"{number[reason]} ({lines[reason]} lines)", reason) for reason in differs]
    sections.append(Section("Why ours differs", [Points(reasons)]))
    return page("The papers, again", sections, about=ABOUT)
