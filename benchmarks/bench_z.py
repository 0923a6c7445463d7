"""z-anonymity beside zanon 0.3.4: plain, four levels, tuned; latencies, pauses, growth, and NDJSON end to end.

``python -m benchmarks.bench_z`` (``--quick``: a fifth of the events, two million instead of 100 for the memory).
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks import cpu, table
from shoal.connect.events import Events
from shoal.connect.sink import Sink
from shoal.core.hierarchy.path import Path as PathHierarchy
from shoal.core.schema import Column, Schema
from shoal.promises.z_anonymity import ZAnonymity
from shoal.release.stream import LocalRunner, StreamJob
from shoal.streams.z_anonymity import ZAnon
from shoal.streams.z_stream import ZStream, z_anonymity

USERS, VALUES, HOURS, EVENTS = 50_000, 20_000, 6, 500_000
TUNE = {"goal": {"k": 2, "probability": 0.8}, "every": "30m", "start": 10}
Rows = list[tuple[float, str, str]]


def reference(n: int, levels: bool) -> Rows:
    """The reference stream: Zipf values, mildly skewed people, six hours."""
    rng = np.random.default_rng(1)
    p = 1.0 / np.arange(1, VALUES + 1)
    a = rng.choice(VALUES, n, p=p / p.sum())
    q = 1.0 / np.arange(1, USERS + 1) ** 0.6
    u = rng.permutation(USERS)[rng.choice(USERS, n, p=q / q.sum())]
    t = np.sort(rng.uniform(1_600_000_000, 1_600_000_000 + HOURS * 3600, n))
    c3, c2, c1 = rng.integers(0, 450, VALUES), rng.integers(0, 60, 450), rng.integers(0, 12, 60)
    names = [f"d{c1[c2[c3[i]]]}*c{c2[c3[i]]}*b{c3[i]}*a{i}" if levels else f"a{i}" for i in range(VALUES)]
    return [(x, f"u{y}", names[z]) for x, y, z in zip(t.tolist(), u.tolist(), a.tolist(), strict=True)]


def ours(levels: bool, tune: bool) -> ZStream:
    """Fixed z = 20; tuned, z starts at 10 as the peer's does."""
    options: dict[str, Any] = {"tune": TUNE} if tune else {}
    return z_anonymity(1 if tune else 20, "1h", {"use": "path", "separator": "*"} if levels else None, **options)


def columns(rows: Rows) -> tuple[np.ndarray, pl.Series, pl.Series]:
    return np.array([r[0] for r in rows]), pl.Series([r[1] for r in rows]), pl.Series([r[2] for r in rows])


def in_batches(stream: ZStream, data: tuple[np.ndarray, pl.Series, pl.Series], size: int = 65_536) -> list[float]:
    t, u, a = data
    laps = []
    for at in range(0, len(t), size):
        start = time.process_time()
        stream.push_many(t[at : at + size], u[at : at + size], a[at : at + size])
        laps.append(time.process_time() - start)
    return laps


def have_zanon() -> bool:
    return importlib.util.find_spec("zanonymity") is not None and importlib.util.find_spec("matplotlib") is not None


@contextlib.contextmanager
def zanon_at_work(tune: bool) -> Iterator[Any]:
    """The peer in a folder of its own: it writes files where it stands."""
    from zanonymity import zanon  # type: ignore[import-untyped]

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            peer = zanon.zanon(3600.0, 0.8, 2)
            if not tune:
                peer.z, peer.rate = 20, float("inf")
            yield peer
        finally:
            os.chdir(before)


def zanon_run(rows: Rows, tune: bool) -> tuple[float, list[tuple[float, str, str]]]:
    """CPU seconds of the peer and what it released."""
    with zanon_at_work(tune) as peer:
        seconds, _ = cpu(lambda: [peer.anonymize(r) for r in rows])
        peer.endFiles()
        with Path("output.txt").open() as out:
            fields = [line.rstrip("\n").split("\t") for line in out]
    return seconds, [(float(t), u, a) for t, u, a in fields]


def _batched(levels: bool, tune: bool, data: tuple[np.ndarray, pl.Series, pl.Series]) -> None:
    in_batches(ours(levels, tune), data)


def _singly(levels: bool, tune: bool, rows: Rows) -> None:
    push = ours(levels, tune).push
    for row in rows:
        push(*row)


def _released(levels: bool, rows: Rows) -> tuple[Rows, Rows]:
    """What either door releases, event by event."""
    many = ours(levels, False).push_many(*columns(rows)).values.to_list()
    push = ours(levels, False).push
    one = [push(*row) for row in rows]
    return tuple(  # type: ignore[return-value]
        [(r[0], r[1], v) for r, v in zip(rows, out, strict=True) if v is not None] for out in (many, one)
    )


def beside_zanon(n: int) -> None:
    """Rates beside the peer's on the whole stream, each way; and whether every single release is the same."""
    have = have_zanon()
    out = []
    for name, levels, tune in (("plain", False, False), ("4 levels", True, False), ("4 levels, tuned", True, True)):
        rows = reference(n, levels)
        data = columns(rows)
        _batched(levels, tune, data)  # compiles, or loads what was compiled
        _singly(levels, tune, rows[:200])
        batch, _ = cpu(partial(_batched, levels, tune, data), 3)
        single, _ = cpu(partial(_singly, levels, tune, rows), 3)
        peer, theirs = zanon_run(rows, tune) if have else (float("nan"), [])
        same = "" if tune or not have else "yes" if _released(levels, rows) == (theirs, theirs) else "NO"
        rates = [f"{n / peer:,.0f}"]
        for seconds in (batch, single):
            rates += [f"{n / seconds:,.0f}", f"{peer / seconds:.1f}"]
        out.append([name, *rates, same])
    head = [
        "events per CPU-second",
        "zanon 0.3.4",
        "batches",
        "ours / peer (asked >= 50)",
        "one by one",
        "ours / peer (asked >= 8)",
        "same releases, event by event",
    ]
    table(f"z-anonymity, {n:,} events, z = 20, 1 h ({n // HOURS:,} in the window)", head, out)


def _laps(push: Callable[[tuple[float, str, str]], object], rows: Rows) -> tuple[list[float], list[float]]:
    """Wall seconds of every event of the second half of a stream, and CPU seconds of every 4,096 of it."""
    half, size = len(rows) // 2, 4096
    for row in rows[:half]:
        push(row)
    laps, blocks = [], []
    for at in range(half, len(rows), size):
        begun = time.process_time()
        for row in rows[at : at + size]:
            start = time.perf_counter()
            push(row)
            laps.append(time.perf_counter() - start)
        blocks.append(time.process_time() - begun)
    return laps, blocks


def latencies(n: int) -> None:
    """Percentiles of one event and of 4,096, ours beside the peer's on the same events."""
    quantiles = (0.5, 0.9, 0.99, 0.999, 1.0)
    out = []
    for name, levels, tune in (("plain", False, False), ("4 levels", True, False), ("4 levels, tuned", True, True)):
        rows = reference(n, levels)
        push = ours(levels, tune).push
        single, _ = _laps(lambda row, push=push: push(*row), rows)  # type: ignore[misc]
        batch = in_batches(ours(levels, tune), columns(rows), 4096)
        batch = batch[len(batch) // 2 :]
        theirs: tuple[list[float], list[float]] = ([], [])
        if have_zanon():
            with zanon_at_work(tune) as peer:
                theirs = _laps(peer.anonymize, rows)
        for what, mine, other, factor in (
            ("one event, µs (wall)", single, theirs[0], 1e6),
            ("4,096 events, ms (CPU)", batch, theirs[1], 1e3),
        ):
            cells = []
            for q in quantiles:
                peers = f"{np.quantile(other, q) * factor:,.1f}" if other else "-"
                cells.append(f"{np.quantile(mine, q) * factor:,.1f} / {peers}")
            out.append([f"{name}: {what}", *cells])
    table("latency, ours / zanon 0.3.4", ["", "p50", "p90", "p99", "p99.9", "longest"], out)


def pauses() -> None:
    """The longest single stop the tuner causes with 100,000 tuples in the window."""
    from shoal.streams.tuning import Tuner

    n = 300_000
    rng = np.random.default_rng(2)
    p = 1.0 / np.arange(1, VALUES + 1)
    data = (
        np.arange(n) * 0.036,  # 100,000 an hour
        pl.Series([f"u{i}" for i in rng.integers(0, USERS, n)]),
        pl.Series([f"{i % 12}*{i % 450}*{i}" for i in rng.choice(VALUES, n, p=p / p.sum())]),
    )
    laps: list[float] = []
    turn = Tuner.turn

    def timed(self: Tuner, *args: Any) -> None:
        start = time.process_time()
        turn(self, *args)
        laps.append(time.process_time() - start)

    out = []
    Tuner.turn = timed  # type: ignore[method-assign]
    try:
        for by in ("search", "incremental", "model"):
            for _ in range(2):  # the first one compiles
                laps.clear()
                options: dict[str, Any] = {"tune": {"goal": {"k": 3, "probability": 0.8}, "every": "30m", "by": by}}
                stream = z_anonymity(20, "1h", {"use": "path", "separator": "*"}, **options)
                in_batches(stream, data, 1024)
            last = stream.decisions[-1]
            out.append(
                [
                    by,
                    len(stream.decisions),
                    last.rows,
                    last.evaluations,
                    f"{1e3 * max(laps):.1f}",
                    "< 50",
                    last.z,
                    f"{last.p:.3f}",
                ]
            )
    finally:
        Tuner.turn = turn  # type: ignore[method-assign]
    table(
        "tuner, CPU ms of its longest single stop (zanon 0.3.4, quoted: 1,600 to 4,100 ms per update of 83,000 tuples)",
        ["by", "decisions", "rows", "evaluations", "longest ms", "asked", "z", "p"],
        out,
    )


def growth() -> None:
    """Cost per event by the number of attributes, at equal window size: the window is full before the clock runs."""
    window, n = 100_000, 400_000
    times = np.arange(window + n) * 0.036
    sizes = (10**4, 10**5, 10**6, 10**7)
    data, best, nodes = {}, dict.fromkeys(sizes, float("inf")), {}
    for size in sizes:
        rng = np.random.default_rng(3)
        people = pl.Series(rng.integers(0, 100_000, window + n)).cast(pl.String)
        data[size] = people, pl.Series(rng.integers(0, size, window + n) + 10**8).cast(pl.String)
    for _ in range(7):  # in turns, so that a busy machine is busy for all of them
        for size, (people, values) in data.items():
            stream = z_anonymity(5, 3600)
            in_batches(stream, (times[:window], people[:window], values[:window]))
            best[size] = min(best[size], sum(in_batches(stream, (times[window:], people[window:], values[window:]))))
            nodes[size] = stream.figures()["window_nodes"]
    out = []
    middle = sum(best[size] for size in sizes[:3]) / 3
    for size in sizes:
        asked = "0.8 to 1.2" if size <= 10**6 else "shown"
        cost = f"{1e9 * best[size] / n:.0f}"
        out.append([f"{size:,}", f"{nodes[size]:,}", cost, f"{best[size] / middle:.2f}", asked])
    head = [
        "attributes",
        "of them in the window",
        "CPU ns per event",
        "to their mean to 10⁶",
        "asked (± 20 %)",
    ]
    table("cost per event by attributes, 100,000 events in the window", head, out)


def memory(events: int) -> None:
    """Ever new attributes: the state must not grow."""
    stream = z_anonymity(5, 60)
    size, out = 500_000, []
    seconds = 0.0
    for block in range(events // size):
        at = block * size
        numbers = pl.Series(np.arange(at, at + size))
        start = time.process_time()
        stream.push_many((at + np.arange(size)) / 5000, (numbers % 1_000_003).cast(pl.String), numbers.cast(pl.String))
        seconds += time.process_time() - start
        if block + 1 in {2, 4, 10, 20, 40, 100, events // size}:
            out.append(
                [
                    f"{at + size:,}",
                    f"{stream.figures()['bytes'] / 1e6:.1f}",
                    f"{_rss():.0f}",
                    f"{(at + size) / seconds:,.0f}",
                ]
            )
    head = ["events", "state MB (asked: flat)", "process MB", "events per CPU-second"]
    table("memory with ever new attributes", head, out)


def _rss() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def end_to_end(n: int) -> None:
    """NDJSON on disk to NDJSON on disk, four levels, parsing and writing included."""
    rows = reference(n, True)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.ndjson", Path(folder) / "out.ndjson"
        frame = pl.DataFrame(
            {"time": [r[0] for r in rows], "subject": [r[1] for r in rows], "value": [r[2] for r in rows]}
        )
        frame.write_ndjson(source)
        schema = Schema(
            {
                "time": Column("time"),
                "subject": Column("subject"),
                "value": Column("quasi", hierarchy=PathHierarchy("*")),
            }
        )
        job = StreamJob(schema=schema, promises=(ZAnonymity(20, "1h"),), method=ZAnon())

        def run() -> None:
            sink = Sink(str(target))
            LocalRunner(job, b"k" * 32, sink.write).run(Events(str(source), job.columns))
            sink.close()

        def parse() -> None:
            for _ in Events(str(source), job.columns):
                pass

        released: list[pl.DataFrame] = []
        LocalRunner(job, b"k" * 32, released.append).run(Events(str(source), job.columns))
        parsed = list(Events(str(source), job.columns))

        def decide() -> None:
            LocalRunner(job, b"k" * 32, lambda frame: None).run(parsed)

        def write() -> None:
            sink = Sink(str(target))
            for part in released:
                sink.write(part)
            sink.close()

        run()
        whole, _ = cpu(run, 3)
        shares = [f"{cpu(work, 3)[0] / whole:.0%}" for work in (parse, decide, write)]
        size = source.stat().st_size
    out = [[f"{n / whole:,.0f}", ">= 400,000; goal 1,000,000", *shares, f"{size / whole / 1e6:.0f}"]]
    head = ["events per CPU-second", "asked", "of it reading", "the method", "writing", "MB/s in"]
    table("NDJSON to NDJSON, 4 levels (each part also run alone)", head, out)


def main() -> None:
    small = "--quick" in sys.argv
    n = EVENTS // 5 if small else EVENTS
    beside_zanon(n)
    end_to_end(n)
    latencies(n)
    pauses()
    growth()
    memory(2_000_000 if small else 100_000_000)


if __name__ == "__main__":
    main()
