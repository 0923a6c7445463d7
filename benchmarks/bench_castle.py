"""Delay-bounded k-anonymity on Adult: batches, CASTLE and FADS, their loss, speed and delay beside what was asked.

``python -m benchmarks.bench_castle`` (``--small``: the first 3,000 rows, to see that it runs).

Ours are measured here. Quoted, on the same rows and by the same loss: Prink (PrivacyEngineering/prink of 2025, Flink
1.17, one worker, 30,000 rows), CASTLEGUARD (hallnath1/CASTLEGUARD of 2022 without its noise, 3,000 rows), and the rule
of FADS with the delay kept (a prototype). Loss is the mean share of the domain per quasi cell; a withheld tuple counts
1. It is scored from the released text by :mod:`benchmarks.score`, and so is the least number of rows that read alike.
The longest delay is measured from outside, too, on a stream pushed one by one. Rates are the best of three runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks import data, score, table
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


class Stream(NamedTuple):
    """Rows in their order, how they are generalized, and the trees their released text is scored by (none: numbers)."""

    rows: pl.DataFrame
    schema: Schema
    trees: Mapping[str, list[list[str]] | None]


def four(split: str, most: int | None = None) -> Stream:
    """The four numeric columns of one part of Adult, in file order; the domain is what the part spans."""
    whole = pl.read_csv(data.ADULT / "adult_full.csv.gz").filter(pl.col("split") == split).select(FOUR)
    rows = whole[:most]
    ends = {c: Range(min=float(rows[c].min()), max=float(rows[c].max())) for c in FOUR}  # type: ignore[arg-type]
    return Stream(rows, Schema.build(quasi=ends), dict.fromkeys(FOUR))


def nine(most: int | None = None) -> Stream:
    """The nine columns with hierarchies; a cell loses the leaves under it, over all leaves."""
    rows = data.adult(most)
    return Stream(rows, data.adult_schema(rows), {c: score.paths(data.HIERARCHIES / f"{c}.csv") for c in rows.columns})


def run(stream: Stream, method: StreamMethod, k: int) -> dict[str, float]:
    """The same stream three times: all figures are the same but the rate, of which the best counts; then the delay."""
    best = max((once(stream, method, k) for _ in range(3)), key=lambda found: found["rate"])
    return {**best, "delay": longest_delay(stream, method, k)}


def once(stream: Stream, method: StreamMethod, k: int) -> dict[str, float]:
    """Push a whole stream in batches."""
    rows = stream.rows
    running = method.start(stream.schema, [KAnonymity(k)], key=KEY)
    people = pl.Series(np.arange(rows.height)).cast(pl.String)
    start = time.process_time()
    outs = []
    for first in range(0, rows.height, BATCH):
        part = rows[first : first + BATCH]
        outs.append(
            running.push(Batch(part, np.arange(first, first + part.height), people[first : first + part.height], first))
        )
    outs.append(running.flush())
    spent = time.process_time() - start
    assert sum(map(len, outs)) == rows.height
    released = pl.concat([out.released for out in outs if out.released is not None])
    # a tree of numbers is scored as any other: by its leaves
    named = [c for c, tree in stream.trees.items() if tree is not None]
    original = rows.with_columns(pl.col(named).cast(pl.String)) if named else rows
    return {
        "loss": score.gcp(original, released, stream.trees) / 100,
        "rate": rows.height / spent,
        "withheld": sum(len(out.withheld) for out in outs),
        "again": running.figures()["again_share"],
        "smallest": score.smallest(released, list(stream.trees)),
    }


def longest_delay(stream: Stream, method: StreamMethod, k: int) -> int:
    """The most further tuples any outcome waited for, as a reader sees it; over a few delays, because it is slow."""
    delay = int(getattr(method, "delay"))  # noqa: B009 (every method here has one)
    some = stream.rows[: 4 * delay + 2000]
    running = method.start(stream.schema, [KAnonymity(k)], key=KEY)
    people = pl.Series(np.arange(some.height)).cast(pl.String)
    longest = seen = 0
    for at in range(some.height + 1):
        here = slice(at, at + 1)
        last = at == some.height
        out = running.flush() if last else running.push(Batch(some[here], np.array([at]), people[here], at))
        told = np.concatenate([out.events, out.withheld])
        if len(told):
            longest = max(longest, min(at, some.height - 1) - int(told.min()))
        seen += len(told)
    assert seen == some.height
    return longest


def pause(stream: Stream, k: int, delay: int) -> float:
    """The longest single plan: pushed window by window, so that a push decides one window only."""
    running = Batches(delay=delay).start(stream.schema, [KAnonymity(k)], key=KEY)
    for first in range(0, stream.rows.height, delay + 1):
        part = stream.rows[first : first + delay + 1]
        running.push(Batch(part, np.arange(first, first + part.height), None, first))
    return float(running.figures()["longest_pause"])


def row(
    name: str, found: dict[str, float], bound: float | None, least: int, delay: int, peer: float | None = None
) -> Sequence[object]:
    return (
        name, f"{found['loss']:.4f}", f"<= {bound:.3f}" if bound else "", f"{found['loss'] / peer:.2f}" if peer else "",
        f"{found['rate']:,.0f}", f">= {least:,}" if least else "", int(found["delay"]), f"<= {delay}",
        int(found["withheld"]), f"{found['again']:.2f}", int(found["smallest"]),
    )  # fmt: skip


HEADER = (
    "method",
    "loss",
    "asked",
    "ours / quoted",
    "tuples/CPU-s",
    "asked",
    "longest delay",
    "asked",
    "withheld",
    "reused",
    "least",
)
REUSE: tuple[str | None, ...] = ("never", None, "forever")
ASKED: dict[tuple[int, int], dict[str | None, float]] = {
    (10, 100): {"never": 0.219, None: 0.192, "forever": 0.142},
    (50, 1000): {"never": 0.279, None: 0.202, "forever": 0.186},
}
PRINK = {(5, 50): 0.188, (10, 100): 0.271, (50, 1000): 0.340}
RATES = {
    (5, 50): "7k tuples/CPU-s; CASTLEGUARD .185 at 0.2k",
    (10, 100): "6-7k tuples/CPU-s; CASTLEGUARD .260 at 0.1k",
    (50, 1000): "3-4k tuples/CPU-s; CASTLEGUARD .455 at 0.1k",
}
FADS_QUOTED = {(5, 50): 0.170, (10, 100): 0.241, (50, 1000): 0.328}
CASTLES = {(5, 50): ((20, 20), (50, 20)), (10, 100): ((20, 20), (50, 20)), (50, 1000): ((50, 100), (500, 100))}


def train(stream: Stream) -> None:
    """All methods on the training part. CASTLE with Prink's β and μ, and with the β it has here by default."""
    for k, delay in PRINK:
        asked = ASKED.get((k, delay), {})
        found = [
            row(
                f"batches, {reuse or 'default'}",
                run(stream, Batches(delay=delay, reuse=reuse), k),
                asked.get(reuse),
                200_000,
                delay,
                PRINK[k, delay] if reuse == "forever" else None,
            )
            for reuse in REUSE
        ]
        for (beta, mu), whose in zip(CASTLES[k, delay], ("Prink's", "ours"), strict=True):
            done = run(stream, Castle(delay=delay, beta=beta, mu=mu), k)
            prink = PRINK[k, delay]
            found.append(row(f"castle, β {beta} ({whose})", done, prink, 20_000, delay, prink))
        done = run(stream, Fads(delay=delay), k)
        found.append(row("fads", done, None, 0, delay, FADS_QUOTED[k, delay]))
        quoted = f"Prink {PRINK[k, delay]} at {RATES[k, delay]}; the rule of FADS {FADS_QUOTED[k, delay]}"
        table(
            f"Adult train, 4 numeric columns, k = {k}, delay = {delay} (batches by reuse; quoted: {quoted})",
            HEADER,
            found,
        )


def test(stream: Stream) -> None:
    """The part nothing was tuned on."""
    found = [
        row(
            f"batches, {reuse or 'default'}",
            run(stream, Batches(delay=100, reuse=reuse), 10),
            asked,
            200_000,
            100,
        )
        for reuse, asked in zip(REUSE, (0.22, 0.195, 0.155), strict=True)
    ]
    table("Adult test (not tuned on), 4 numeric columns, k = 10, delay = 100", HEADER, found)


def hierarchies(stream: Stream) -> None:
    """Nine columns with hierarchies."""
    once(stream._replace(rows=stream.rows[:600]), Batches(delay=50), 5)  # compiles
    found = [
        row(
            f"batches {k}, {delay}, {reuse or 'default'}",
            run(stream, Batches(delay=delay, reuse=reuse), k),
            asked if reuse is None else None,
            100_000,
            delay,
        )
        for k, delay, asked in ((5, 500, 0.195), (10, 1000, 0.225))
        for reuse in REUSE
    ]
    found.append(row("castle 5, 500", run(stream, Castle(delay=500), 5), None, 20_000, 500))
    table("Adult, 9 hierarchies (method k, delay, reuse)", HEADER, found)


def main() -> None:
    """All tables."""
    most = 3000 if "--small" in sys.argv else None
    stream = four("train", most)
    for warm in (Batches(delay=50), Batches(delay=50, reuse="forever"), Castle(delay=50), Fads(delay=50)):
        once(stream._replace(rows=stream.rows[:500]), warm, 5)
    train(stream)
    test(four("test", most))
    hierarchies(nine(most))
    table(
        "Longest single pause of batches, CPU seconds (one plan; a prototype took about 0.1 s at 10,000)",
        ("k, delay", "pause"),
        [(f"{k}, {delay}", pause(stream, k, delay)) for k, delay in ((10, 100), (50, 1000), (100, 10000))],
    )


if __name__ == "__main__":
    main()
