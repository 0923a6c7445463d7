"""A release on executors in processes of their own, twice: undisturbed, and with one of them killed in the middle.

    python -m tests.spark.cluster_release FOLDER

Writes ``undisturbed.parquet`` and ``disturbed.parquet``; says which executors there were. A process of its own, because
there is one Spark per process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import polars as pl

from shoal.datasets.hospital import hospital
from shoal.release.job import job_of
from shoal.release.regional import plan
from shoal.release.wishes import Wishes
from shoal.runtime.spark.table import released
from tests.spark.conftest import start
from tests.spark.test_spark_tables import ASKED

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


def main(folder: Path) -> None:
    """See above."""
    session = start("local-cluster[2,1,1024]", **SETTINGS)
    app = session.sparkContext.applicationId.encode()
    session.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
    plan.FEWEST = 40
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
    main(Path(sys.argv[1]))
