"""Delay-bounded k-anonymity on Adult: loss, speed and delay of batches, CASTLE and FADS beside the published peers.

Peers are quoted from the reference page (their runs, same rows, same metric); ours are measured here. Loss is the mean
share of the domain per quasi cell; a withheld tuple counts 1. Rates are the best of three runs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import polars as pl

from benchmarks import data, table
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.streams.base import Batch, StreamMethod
from shoal.streams.batches import Batches
from shoal.streams.castle import Castle
from shoal.streams.fads import Fads

FOUR = ("age", "fnlwgt", "education-num", "hours-per-week")
BATCH = 4096
KEY = bytes(range(32))


def four(split: str) -> tuple[pl.DataFrame, Schema]:
    """The four numeric columns of one part of Adult, in file order; the domain is what the part spans."""
    rows = pl.read_csv(data.ADULT / "adult_full.csv.gz").filter(pl.col("split") == split).select(FOUR)
    ends = {c: Range(min=float(rows[c].min()), max=float(rows[c].max())) for c in FOUR}  # type: ignore[arg-type]
    return rows, Schema.build(quasi=ends)


def nine() -> tuple[pl.DataFrame, Schema]:
    """The nine columns with hierarchies."""
    rows = data.adult()
    return rows, data.adult_schema(rows)


def run(rows: pl.DataFrame, schema: Schema, method: StreamMethod, k: int) -> dict[str, float]:
    """The same stream three times: all figures are the same but the rate, of which the best counts."""
    return max((once(rows, schema, method, k) for _ in range(3)), key=lambda found: found["rate"])


def once(rows: pl.DataFrame, schema: Schema, method: StreamMethod, k: int) -> dict[str, float]:
    """Push a whole stream in batches; every tuple's delay is measured on the outcomes."""
    stream = method.start(schema, [KAnonymity(k)], key=KEY)
    people = pl.Series(np.arange(rows.height)).cast(pl.String)
    start = time.process_time()
    seen = late = 0
    for first in range(0, rows.height, BATCH):
        part = rows[first : first + BATCH]
        out = stream.push(
            Batch(part, np.arange(first, first + part.height), people[first : first + part.height], first)
        )
        seen += len(out)
    seen += len(stream.flush())
    spent = time.process_time() - start
    figures = stream.figures()
    assert seen == rows.height
    late = int(figures["delay_most"])
    withheld = stream.counters["withheld"]
    loss = (figures["loss"] * (rows.height - withheld) + withheld) / rows.height
    return {
        "loss": loss,
        "rate": rows.height / spent,
        "delay": late,
        "withheld": withheld,
        "again": figures["again_share"],
        "smallest": figures["smallest_group"],
        "pause": figures["longest_pause"],
    }


def pause(rows: pl.DataFrame, schema: Schema, k: int, delay: int) -> float:
    """The longest single plan: pushed window by window, so that a push decides one window only."""
    stream = Batches(delay=delay).start(schema, [KAnonymity(k)], key=KEY)
    for first in range(0, rows.height, delay + 1):
        part = rows[first : first + delay + 1]
        stream.push(Batch(part, np.arange(first, first + part.height), None, first))
    return float(stream.figures()["longest_pause"])


def row(name: str, found: dict[str, float], bound: object, peer: object, least: int = 0) -> Sequence[object]:
    return (
        name, f"{found['loss']:.4f}", bound, peer, f"{found['rate']:,.0f}", f"{least:,}" if least else "",
        int(found["delay"]), int(found["withheld"]), f"{found['again']:.2f}", int(found["smallest"]),
    )  # fmt: skip


HEADER = (
    "method",
    "loss",
    "asked",
    "peer (quoted)",
    "tuples/CPU-s",
    "asked",
    "longest delay",
    "withheld",
    "reused",
    "least people",
)


def main() -> None:
    """All tables."""
    rows, schema = four("train")
    for warm in (Batches(delay=50), Batches(delay=50, reuse="forever"), Castle(delay=50), Fads(delay=50)):
        run(rows[:500], schema, warm, 5)
    asked = {
        (10, 100): {"never": 0.219, None: 0.192, "forever": 0.142},
        (50, 1000): {"never": 0.279, None: 0.202, "forever": 0.186},
    }
    peers = {
        (5, 50): "Prink .188, CASTLEGUARD .185",
        (10, 100): "Prink .271 at 6-7k/s, CASTLEGUARD .260 at 0.1k/s",
        (50, 1000): "Prink .340 at 3-4k/s, CASTLEGUARD .455",
    }
    fads_quoted = {(5, 50): ".170", (10, 100): ".241", (50, 1000): ".328"}
    castle_with = {(5, 50): (50, 20), (10, 100): (50, 20), (50, 1000): (500, 100)}  # Prink: β 20, 20, 50
    for k, delay in ((5, 50), (10, 100), (50, 1000)):
        found = [
            row(
                f"batches, reuse {reuse or 'default'}",
                run(rows, schema, Batches(delay=delay, reuse=reuse), k),
                asked.get((k, delay), {}).get(reuse, ""),
                peers[k, delay] if reuse == "forever" else "",
                200_000,
            )
            for reuse in ("never", None, "forever")
        ]
        beta, mu = castle_with[k, delay]
        found.append(
            row(
                f"castle, β {beta}",
                run(rows, schema, Castle(delay=delay, beta=beta, mu=mu), k),
                "",
                peers[k, delay],
                20_000,
            )
        )
        found.append(row("fads", run(rows, schema, Fads(delay=delay), k), "", f"rule {fads_quoted[k, delay]}"))
        table(f"Adult train, 4 numeric columns, k = {k}, delay = {delay}", HEADER, found)
    test, test_schema = four("test")
    table(
        "Adult test (not tuned on), 4 numeric columns, k = 10, delay = 100",
        HEADER,
        [
            row(
                f"batches, reuse {reuse or 'default'}",
                run(test, test_schema, Batches(delay=100, reuse=reuse), 10),
                ask,
                "",
                200_000,
            )
            for reuse, ask in (("never", 0.22), (None, 0.195), ("forever", 0.155))
        ],
    )
    trees, tree_schema = nine()
    run(trees[:600], tree_schema, Batches(delay=50), 5)
    table(
        "Adult, 9 hierarchies",
        HEADER,
        [
            row(
                f"batches k={k} delay={delay} reuse {reuse or 'default'}",
                run(trees, tree_schema, Batches(delay=delay, reuse=reuse), k),
                ask if reuse is None else "",
                "",
                100_000,
            )
            for k, delay, ask in ((5, 500, 0.195), (10, 1000, 0.225))
            for reuse in ("never", None, "forever")
        ]
        + [row("castle k=5 delay=500", run(trees, tree_schema, Castle(delay=500), 5), "", "", 20_000)],
    )
    table(
        "Longest single pause of batches, CPU seconds (one plan)",
        ("k, delay", "pause"),
        [(f"{k}, {delay}", pause(rows, schema, k, delay)) for k, delay in ((10, 100), (50, 1000), (100, 10000))],
    )


if __name__ == "__main__":
    main()
