"""CPU seconds of small work from the start of a process, with an empty and a full cache of compiled kernels.

`python -m benchmarks.bench_start full` leaves the empty cache out. Each figure is user and system time of a new process
and its children; `again` is the second run after the empty cache, `full` the best of three after `shoal warm`. A small
release must not be slower by the compiler than by its method, so the limits asked for stand beside the figures.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import table

BIN = Path(sys.executable).parent
PUSH = "import shoal; shoal.z_anonymity(z=2, window='1h', hierarchy='path').push(0, 'u1', 'a.b.c')"
QUASI = ["--quasi", "zip,sex,age,ins_co"]
PROMISED = [*QUASI, "--sensitive", "diag", "--k", "5", "--l", "2"]
SHAPES = ["--hierarchy", "sex=suppress", "ins_co=suppress", "zip=prefix:5"]
# name: command and asked CPU seconds with a full and with an empty cache
WORK: dict[str, tuple[list[str], float, float | None]] = {
    "import": ([str(BIN / "python"), "-c", "import shoal"], 0.25, None),
    "--help": ([str(BIN / "shoal"), "--help"], 0.5, None),
    "anonymize": (
        [str(BIN / "shoal"), "anonymize", "patients.csv", *PROMISED, *SHAPES, "--subject", "pid", "-o", "released.csv"],
        1.5,
        25.0,
    ),
    "first z push": ([str(BIN / "python"), "-c", PUSH], 1.5, None),
    "verify": ([str(BIN / "shoal"), "verify", "released.csv", *PROMISED], 0.8, None),
    "demo": ([str(BIN / "shoal"), "demo", "--rows", "1000"], 2.0, 60.0),
}


def spent(command: list[str], folder: Path, cache: Path) -> float:
    """CPU seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # with it, each start would compile all sources anew
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(words: list[str]) -> None:
    """Print the table."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        full = folder / "full"
        generate = [str(BIN / "shoal"), "generate", "hospital", "--rows", "1000", "-o", "patients.csv"]
        spent(generate, folder, full)
        spent([str(BIN / "shoal"), "warm", "local", "z-anonymity"], folder, full)
        for what, (command, asked, asked_empty) in WORK.items():
            empty = again = None
            if "full" not in words:
                empty, again = (spent(command, folder, folder / f"empty-{what}") for _ in range(2))
            best = min(spent(command, folder, full) for _ in range(3))
            rows.append((what, *map(_seconds, (empty, asked_empty, again, best, asked))))
    table("start, CPU seconds", ("work", "empty cache", "asked", "again", "full cache", "asked"), rows)


def _seconds(number: float | None) -> str:
    return "" if number is None else f"{number:.2f}"


if __name__ == "__main__":
    main(sys.argv[1:])
