"""The pages: CPU seconds to the first picture, and what a live page costs a stream.

``make bench BENCH=web``. The first picture: a file is opened, its columns are looked at, and the page with their
distributions is made. The live page: the same events with and without ``--watch``, and with a page open; CPU time of
the process that runs the stream, the best of several runs each. Two such runs differ by more than the page costs, so
one longer run also counts what the page itself does: samples, people hidden, and the thread that serves it. The page
works by the clock: where other programs take half of the core, it takes twice the share of the stream. "Of a core" is
the share of a stream that has one.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from benchmarks import table
from shoal.datasets.hospital import hospital
from shoal.datasets.streams import stream
from shoal.release.job import job_of
from shoal.release.stream import LocalRunner, StreamJob
from shoal.release.wishes import Wishes
from shoal.web.board import Board, Hidden, Sample, of_stream
from shoal.web.live import LivePage
from shoal.web.pages.data import data
from shoal.web.studio import Studio

ROWS = (30_000, 1_000_000)
EVENTS, REPEAT = 0.1, 4
LONG = 60  # long enough that people hidden are measured, too
RUNS = 3
PARTS = ("samples, twice a second", "people hidden, where no tuner measures them", "drawing and sending, once a second")
LOOK = """
import sys, urllib.request
from http.cookiejar import CookieJar
visit = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
visit.open(sys.argv[1], timeout=30).close()
with visit.open(sys.argv[1].partition("/enter")[0] + "/events", timeout=60) as told:
    for _ in told:
        pass
"""


def first_picture(rows: int, folder: Path) -> tuple[float, float, float]:
    """CPU seconds of reading and looking, of the page, and of its next page of rows."""
    file = folder / f"{rows}.csv"
    hospital(rows, seed=1).write_csv(file)
    studio = Studio(folder, largest=1 << 31)
    start = time.process_time()
    project = studio.open(str(file), file.name)
    project.tasks["load"].wait()
    read = time.process_time() - start
    start = time.process_time()
    data(project)
    page = time.process_time() - start
    start = time.process_time()
    data(project, rows // 24)
    return read, page, time.process_time() - start


class Cost(NamedTuple):
    """CPU seconds of a stream with a page beside it, and of each part of the page."""

    clock: float  # seconds of the clock
    whole: float
    samples: float  # taken in the stream's own loop
    hidden: float  # measuring how many people are hidden, while events pass
    server: float  # the thread that draws the page and sends it

    def shares(self) -> list[tuple[str, str, str, str]]:
        """Each part and all together: CPU seconds, of a core, and of what the stream itself had."""
        parts = dict(zip(PARTS, self[2:], strict=True))
        page = sum(parts.values())
        rows = {**parts, "together (asked: at most 2 %)": page}
        stream = self.whole - page
        return [(n, f"{s:.3f}", f"{s / self.clock:.2%}", f"{s / stream:.2%}") for n, s in rows.items()]


def streamed(frames: Iterable[pl.DataFrame], *, watch: bool = False, look: bool = False) -> Cost:
    """Feed all frames to a stream, as the loop of ``shoal stream`` does; starting is not counted."""
    job = job_of(Wishes({"z": 20, "window": "1h", "hierarchy": "path"}))
    assert isinstance(job, StreamJob)
    runner = LocalRunner(job, job.key(), lambda part: None)
    hidden = Hidden(runner.method.engine)  # type: ignore[attr-defined]

    def sample() -> Sample:
        hidden.look()
        return of_stream(runner.method.counters, runner.method.figures(), None, hidden.p_k)

    board = Board("bench", sample)
    links: list[str] = []
    page = LivePage(board, links.append) if watch else None
    reader = None
    if look:
        link = re.search(r"http\S+", links[0])
        assert link is not None
        reader = subprocess.Popen([sys.executable, "-c", LOOK, link[0]])
        while not board.listeners:
            time.sleep(0.05)
    serving = None if page is None else next(t for t in threading.enumerate() if t.name == "shoal-live").ident
    samples, before, clock, start = 0.0, _of_thread(serving), time.perf_counter(), time.process_time()
    for frame in frames:
        runner.feed(frame)
        if page is not None:
            began = time.thread_time()
            board.look()
            samples += time.thread_time() - began
    whole, server = time.process_time() - start, _of_thread(serving) - before
    # what was spent is seconds of the clock, of which the stream's thread had its part only
    passed = time.perf_counter() - clock
    made = Cost(passed, whole, samples, hidden.spent * (whole - server) / passed, server)
    if page is not None:
        page.close()
    if reader is not None:
        reader.wait()
    return made


def _of_thread(ident: int | None) -> float:
    """CPU seconds of one thread."""
    return 0.0 if ident is None else time.clock_gettime(time.pthread_getcpuclockid(ident))


def passing(made: pl.DataFrame, times: int) -> Iterator[pl.DataFrame]:
    """The same days again and again, each after the last."""
    length = made["time"].max() + 60  # type: ignore[operator]
    for at in range(times):
        yield from made.with_columns(pl.col("time") + at * length).iter_slices(8192)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [(f"{n:,} rows", *(f"{s:.2f}" for s in first_picture(n, folder))) for n in ROWS]
        table("First picture, CPU s", ["file", "read and look", "the page", "another page of rows"], rows)
    made = stream("ecommerce", scale=EVENTS, seed=1)
    streamed(passing(made.head(32_768), 1))  # compiled code is loaded
    ways = {"alone": {}, "--watch": {"watch": True}, "--watch, a page open": {"watch": True, "look": True}}
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for _ in range(RUNS):  # in turns, so that what else the machine does falls on all alike
        for name, asked in ways.items():
            costs[name].append(streamed(passing(made, REPEAT), **asked))
    best = {name: min(c.whole for c in many) for name, many in costs.items()}
    shown = [(n, f"{s:.2f}", f"{100 * (s / best['alone'] - 1):+.1f} %") for n, s in best.items()]
    title = f"{made.height * REPEAT:,} events through a stream, the best of {RUNS} runs, starting left out"
    table(title, ["stream", "CPU s", "more than alone"], shown)
    long = streamed(passing(made, LONG), watch=True, look=True)
    title = f"{made.height * LONG:,} events, a page open: {long.whole:.1f} CPU s in {long.clock:.1f} s of the clock"
    table(title, ["the page", "CPU s", "of a core", "of the stream"], long.shares())


if __name__ == "__main__":
    main()
