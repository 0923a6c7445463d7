"""Tables larger than memory: rows, CPU, wall time, peak memory and loss, on one machine and through Spark.

    make bench BENCH=scale                                  10^6 to 10^8 generated rows of 6 quasi columns, k = 10: an
                                                            hour and more on two cores
    SHOAL_SCALE=1e6,1e7 make bench BENCH=scale              without the largest: some minutes
    SHOAL_SCALE_SPARK=1e6 make bench BENCH=scale            which of them also through Spark local[2] (0: none)
    SHOAL_SCALE_DATA=folder make bench BENCH=scale          where the generated rows are kept for the next run

Each run is a process of its own: CPU and the greatest memory are those of it and of all that it started (Spark's Java
and its Python workers, too), read every half second: the last of these is not in it. The 10^6 rows are released twice,
as one table and in regions: the loss of the second is asked to be at most 1.03 times that of the first. Peak memory is
asked to stay under 4 GB; the limit given to the command is 2 GB.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import psutil  # type: ignore[import-untyped]

QUASI = "age,sex,zip,education,marital,hours"
CHUNK = 1_000_000


def generate(rows: int, folder: Path) -> None:
    """Invented people: skewed towns, ages and hours of work as of a census; a file per million, if it is not there."""
    folder.mkdir(exist_ok=True)
    for number, start in enumerate(range(0, rows, CHUNK)):
        if (folder / f"{number:04}.parquet").exists():
            continue
        rng = np.random.default_rng([7, number])
        n = min(CHUNK, rows - start)
        age = np.clip(rng.gamma(6, 7, n) + 15, 17, 90).astype(np.int16)
        town = np.minimum(99, rng.zipf(1.3, n)) * 100 + rng.integers(0, 20, n)
        pl.DataFrame(
            {
                "age": age,
                "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
                "zip": pl.Series(town).cast(pl.String).str.zfill(5),
                "education": np.minimum(15, rng.poisson(6 + (age > 30) * 2, n)).astype(np.int8),
                "marital": np.array(list("abcde"))[np.minimum(4, rng.poisson(1.2, n))],
                "hours": np.clip(rng.normal(40, 11, n), 1, 99).astype(np.int8),
                "diag": np.array([f"d{i}" for i in range(30)])[np.minimum(29, rng.zipf(1.5, n) - 1)],
            }
        ).write_parquet(folder / "part")
        (folder / "part").rename(folder / f"{number:04}.parquet")


class Used(threading.Thread):
    """What a process and all it started have used, looked at every half second until it ends.

    The system counts for a process only those children that it waited for, and Python does not wait for Spark's Java.
    """

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.cpu: dict[int, float] = {}
        self.peak = 0  # of all together, in bytes
        self._first = psutil.Process(pid)
        self.start()

    def run(self) -> None:
        """Until it has ended."""
        while self._first.is_running() and self._first.status() != psutil.STATUS_ZOMBIE:
            together = 0
            try:
                for process in (self._first, *self._first.children(recursive=True)):
                    with process.oneshot(), contextlib.suppress(psutil.Error):
                        times = process.cpu_times()
                        self.cpu[process.pid] = times.user + times.system
                        together += process.memory_full_info().uss
            except psutil.Error:
                break
            self.peak = max(self.peak, together)
            time.sleep(0.5)


def run(data: Path, out: Path, *more: str, cores: int | None = None) -> dict[str, float]:
    """One release: what it cost, and what it lost; on so many cores, or on all."""
    words = [sys.executable, "-m", "shoal", "anonymize", str(data), "--quasi", QUASI, "--hierarchy", "zip=prefix:5"]
    words += ["--sensitive", "diag", "--k", "10", "--seed", "7", "-o", str(out), "--json", *more]
    start = time.perf_counter()
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    done = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, chosen),
    )
    used = Used(done.pid)
    said, errors = done.communicate()
    used.join()
    assert done.returncode == 0, errors[-2000:]
    report = json.loads(said)
    assert report["verified"]
    return {
        "cpu": sum(used.cpu.values()),
        "wall": time.perf_counter() - start,
        "peak": used.peak / 1e9,
        "loss": report["loss"]["gcp"],
        "groups": sum(count for _, count in report["size_counts"]),
    }


def show(what: str, found: dict[str, float]) -> None:
    print(
        f"{what:34} {found['cpu']:9.0f} {found['wall']:9.0f} {found['peak']:8.2f} {found['loss']:9.3%} "
        f"{found['groups']:12,.0f}",
        flush=True,
    )


def main() -> None:
    sizes = [int(float(word)) for word in os.environ.get("SHOAL_SCALE", "1e6,1e7,1e8").split(",")]
    spark = [int(float(word)) for word in os.environ.get("SHOAL_SCALE_SPARK", "1e6,1e7,1e8").split(",")]
    load = f"{os.getloadavg()[0]:.1f}"
    print(f"6 quasi columns, k = 10, Parquet; load {load}; peak is of all its processes together", flush=True)
    print(f"{'rows':34} {'CPU s':>9} {'wall s':>9} {'GB':>8} {'loss':>9} {'groups':>12}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        kept = Path(os.environ.get("SHOAL_SCALE_DATA", f"{place}/data"))
        for rows in sorted(sizes):
            data, out = Path(place) / f"{rows}", Path(place) / "out.parquet"
            generate(rows, kept)
            data.mkdir()
            for file in sorted(kept.iterdir())[: -(-rows // CHUNK)]:
                (data / file.name).symlink_to(file.absolute())
            regional = run(data, out, "--memory", "700MB" if rows <= 10**6 else "2GB")
            show(f"{rows:,} in regions", regional)
            if rows in spark:
                show(f"{rows:,} through Spark local[2]", run(data, Path(place) / "spark.parquet", "--engine", "spark"))
            if rows <= 10**6:
                whole = run(data, out, "--memory", "64GB")
                show(f"{rows:,} as one table", whole)
                ratio = regional["loss"] / whole["loss"]
                print(f"loss in regions / as one table: {ratio:.3f} (asked: at most 1.03)", flush=True)
                one, two = (run(data, out, "--memory", "700MB", cores=cores) for cores in (1, 2))
                print(f"wall time on one core / on two: {one['wall'] / two['wall']:.2f}", flush=True)


if __name__ == "__main__":
    main()
