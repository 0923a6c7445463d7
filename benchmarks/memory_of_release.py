"""One large release in a process of its own; prints what it needed beyond its input. Run by bench_tables."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

import shoal

COLUMNS = {"age": 90, "income": 2000, "height": 80, "children": 8}
TEXTS = {"zip": 9000, "job": 60, "country": 120, "sex": 3}


def people(rows: int, seed: int = 0) -> pl.DataFrame:
    """Four numbers and four texts per person, the frequent ones frequent."""
    random = np.random.default_rng(seed)
    columns: dict[str, pl.Series] = {}
    for name, size in COLUMNS.items():
        columns[name] = pl.Series(np.minimum(random.gamma(3.0, size / 9, rows), size).astype(np.int32))
    for name, size in TEXTS.items():
        words = pl.Series([f"{10_000 + 7 * i}" for i in range(size)])
        columns[name] = words.gather(np.minimum(random.gamma(2.0, size / 8, rows), size - 1).astype(np.int64))
    return pl.DataFrame(columns)


def memory(word: str) -> int:
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(word))
    return int(line.split()[1]) * 1024


def _held(frame: pl.DataFrame) -> int:
    """Bytes of the released columns: text is held as a view of 16 bytes per cell, longer text besides."""
    return sum(16 * len(s) + int(s.str.len_bytes().filter(s.str.len_bytes() > 12).sum()) for s in frame)


def main() -> None:
    rows, method = int(sys.argv[1]), sys.argv[2]
    quasi = dict.fromkeys(COLUMNS, "range") | {name: {"use": "prefix", "length": 5} for name in TEXTS}
    shoal.anonymize(people(2000), quasi=quasi, k=5, method=method)  # compiled code is not the table's memory
    frame = people(rows)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again here
    loaded = memory("VmRSS")
    start = time.process_time()
    release = shoal.anonymize(frame, quasi=quasi, k=10, method=method)
    print(
        json.dumps(
            {
                "cpu": time.process_time() - start,
                "beyond": memory("VmHWM") - loaded,
                "output": _held(release.data),
                "gcp": release.report.loss.gcp,
                "seconds": release.report.seconds,
            }
        )
    )


if __name__ == "__main__":
    main()
