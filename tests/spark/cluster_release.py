"""A release on executors in processes of their own, twice: undisturbed, and with one of them killed in the middle.

    python -m tests.spark.cluster_release FOLDER [task]

Writes ``undisturbed.parquet`` and ``disturbed.parquet``; says which executors there were. With ``task`` it is small and
disturbed only, and the kill comes while a region is solved. A process of its own, because there is one Spark per
process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import polars as pl

from shoal.datasets.hospital import hospital
from shoal.release.job import job_of
from shoal.release.regional import plan
from shoal.release.wishes import Wishes
from shoal.runtime.spark import work
from shoal.runtime.spark.table import released
from tests.spark.conftest import start
from tests.spark.test_spark_tables import ASKED, ROWS

SETTINGS = {"spark.executor.memory": "512m", "spark.ui.showConsoleProgress": "false"}


def executors(app: bytes) -> list[int]:
    """The processes that work for this application of Spark."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if any(w.endswith(b"CoarseGrainedExecutorBackend") for w in words) and any(app in w for w in words):
            found.append(int(place.name))
    return sorted(found)


def executor_of(process: int) -> int:
    """The executor that a worker of Python belongs to."""
    while b"CoarseGrainedExecutorBackend" not in (Path("/proc") / str(process) / "cmdline").read_bytes():
        process = int((Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[1])
    return process


def waiting(folder: str, solving: Any) -> Any:
    """Executors that wait in the middle of a region until one of them was killed, and leave a mark of each try."""

    def wrapped(plan: Any, empty: pl.DataFrame) -> Any:
        honest = solving(plan, empty)

        def solve(key: Any, table: Any) -> Any:
            place, made = Path(folder), honest(key, table)
            name = f"{key[0].as_py()}.{uuid4().hex}"
            (place / f"{name}.draft").write_text(str(executor_of(os.getppid())))
            (place / f"{name}.draft").rename(place / f"{name}.try")
            until = time.monotonic() + 60
            while not (place / "killed").exists() and time.monotonic() < until:
                time.sleep(0.05)
            return made

        return solve

    return wrapped


def kill_one(folder: Path, killed: list[int]) -> None:
    """Kill the executor of the first region that is being solved."""
    while not (tries := sorted(folder.glob("*.try"))):
        time.sleep(0.05)
    killed.append(int(tries[0].read_text()))
    os.kill(killed[0], signal.SIGKILL)
    (folder / "killed").touch()


def in_a_task(folder: Path) -> None:
    """One release, small, whose executor is killed while it solves a region."""
    session = begun(folder)
    marks, killed = folder / "marks", list[int]()
    marks.mkdir()
    work.solving = waiting(str(marks), work.solving)
    Thread(target=kill_one, args=(marks, killed), daemon=True).start()
    frame = session.createDataFrame(hospital(ROWS, seed=2).to_arrow(compat_level=pl.CompatLevel.oldest()))
    made = released(job_of(Wishes(ASKED)), frame, most=ROWS // 2)
    assert made.report.verified
    pl.from_arrow(made.data.toArrow()).write_parquet(folder / "disturbed.parquet")
    tries = [file.name.partition(".")[0] for file in marks.glob("*.try")]
    left = executors(session.sparkContext.applicationId.encode())
    print(json.dumps({"killed": killed, "left": left, "tried": len(tries), "regions": len(set(tries))}))
    session.stop()


def begun(folder: Path) -> Any:
    session = start("local-cluster[2,1,1024]", **SETTINGS)
    session.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
    plan.FEWEST = 40
    return session


def main(folder: Path) -> None:
    """See above."""
    session = begun(folder)
    app = session.sparkContext.applicationId.encode()
    frame = session.createDataFrame(hospital(1200, seed=2).to_arrow(compat_level=pl.CompatLevel.oldest()))
    killed: list[int] = []

    def disturb(share: float, word: str) -> None:
        if share >= 0.2 and not killed:  # rows are parted, and their regions are solved next
            killed.append(executors(app)[0])
            os.kill(killed[0], signal.SIGKILL)

    for name, progress in (("undisturbed", lambda share, word: None), ("disturbed", disturb)):
        made = released(job_of(Wishes(ASKED)), frame, most=300, progress=progress)
        assert made.report.verified
        pl.from_arrow(made.data.toArrow()).write_parquet(folder / f"{name}.parquet")
    print(json.dumps({"killed": killed, "left": executors(app)}))
    session.stop()


if __name__ == "__main__":
    (in_a_task if sys.argv[2:] == ["task"] else main)(Path(sys.argv[1]))
