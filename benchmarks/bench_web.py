"""The pages: CPU seconds to the first picture, and what a live page costs a stream.

``make bench BENCH=web``. The first picture: a file is opened, its columns are looked at, and the page with their
distributions is made. The live page: the same events with and without ``--watch``, and with a page open; CPU time of
the process that runs the stream, the best of several runs each.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
EVENTS, REPEAT = 0.1, 8
RUNS = 3
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


def streamed(frames: list[pl.DataFrame], *, watch: bool = False, look: bool = False) -> float:
    """CPU seconds of feeding all frames to a stream, as the loop of ``shoal stream`` does; starting is not counted."""
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
    start = time.process_time()
    for frame in frames:
        runner.feed(frame)
        if page is not None:
            board.look()
    spent = time.process_time() - start
    if page is not None:
        page.close()
    if reader is not None:
        reader.wait()
    return spent


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [(f"{n:,} rows", *(f"{s:.2f}" for s in first_picture(n, folder))) for n in ROWS]
        table("First picture, CPU s", ["file", "read and look", "the page", "another page of rows"], rows)
    made = stream("ecommerce", scale=EVENTS, seed=1)
    frames = list(made.iter_slices(8192)) * REPEAT
    streamed(frames[:4])  # compiled code is loaded
    times: dict[str, list[float]] = {"alone": [], "--watch": [], "--watch, a page open": []}
    for _ in range(RUNS):
        times["alone"].append(streamed(frames))
        times["--watch"].append(streamed(frames, watch=True))
        times["--watch, a page open"].append(streamed(frames, watch=True, look=True))
    best = {name: min(many) for name, many in times.items()}
    base = best["alone"]
    shown = [(n, f"{s:.2f}", f"{100 * (s / base - 1):+.1f} %", "2 %" if n != "alone" else "") for n, s in best.items()]
    title = f"{made.height * REPEAT:,} events through a stream, starting left out"
    table(title, ["stream", "CPU s", "more than alone", "asked at most"], shown)


if __name__ == "__main__":
    main()
