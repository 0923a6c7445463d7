"""How the time of `local` grows by rows, columns, k and different values; the exponent is the slope in logarithms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from benchmarks import cpu, table
from benchmarks.bench_local import generated
from benchmarks.table_cases import compile_for
from benchmarks.table_data import distinct, quasi_only
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.promises.k_anonymity import KAnonymity
from shoal.tables.local import Local


def values(many: int, rows: int = 20_000) -> Table:
    """Four columns of numbers with that many different values each."""
    drawn = np.random.default_rng(7).integers(0, many, (rows, 4))
    frame = pl.DataFrame({f"c{j}": drawn[:, j] for j in range(4)})
    return code(frame, Schema.build(quasi=dict.fromkeys(frame.columns)))


CURVES: dict[str, tuple[list[int], Callable[[int], tuple[Table, int]]]] = {
    "rows (5 columns, k=10)": ([10_000, 30_000, 100_000], lambda n: (generated(n, 5), 10)),
    "nearly distinct rows (6 columns, k=10)": (
        [10_000, 30_000, 100_000, 300_000],
        lambda n: (quasi_only(distinct(n)), 10),
    ),
    "columns (10,000 rows, k=5)": ([4, 8, 16], lambda m: (generated(10_000, m), 5)),
    "k (20,000 rows, 5 columns)": ([2, 10, 50, 250], lambda k: (generated(20_000, 5), k)),
    "different values (20,000 rows, 4 columns, k=5)": ([10, 100, 1_000], lambda v: (values(v), 5)),
}


def growth() -> None:
    """One line per size, and the exponent from the first size to the last."""
    rows = []
    for name, (sizes, make) in CURVES.items():
        seconds = []
        for size in sizes:
            data, k = make(size)
            compile_for(data, Local(), [KAnonymity(k)])
            seconds.append(cpu(lambda d=data, k=k: Local().group(d, [KAnonymity(k)]))[0])
        slope = np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0])
        shown = ", ".join(f"{n:,}: {s:.2f}" for n, s in zip(sizes, seconds, strict=True))
        rows.append([name, shown, f"{slope:.2f}"])
    table("local, CPU seconds and the exponent of growth", ["by", "CPU s", "exponent"], rows)
