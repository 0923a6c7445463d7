"""The edges of table methods: wide, nearly distinct, hard promises; each with what was measured before and is asked.

``python -m benchmarks.table_cases NAME`` runs one case in a process of its own, for its peak memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from benchmarks import SHARED, cpu, table
from benchmarks.data import ADULT, adult, coded
from shoal.core.release import boxes_of
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.tables.local import Local

STAYS = SHARED / "data" / "diabetes_130us" / "diabetic_data.csv.gz"
COLUMNS = [
    "race",
    "gender",
    "age",
    "admission_type_id",
    "discharge_disposition_id",
    "admission_source_id",
    "time_in_hospital",
    "medical_specialty",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
    "payer_code",
    "max_glu_serum",
    "A1Cresult",
    "insulin",
    "diag_1",
]


@dataclass(frozen=True)
class Case:
    """A table, its promises, what `local` took before (CPU seconds, loss in percent), what was asked."""

    make: Callable[[], Table]
    promises: list[Promise]
    before: str
    asked: str


def stays(columns: int, rows: int | None = None, sensitive: str | None = None) -> Table:
    """Hospital stays; texts are kept or suppressed, numbers become intervals."""
    frame = pl.read_csv(STAYS, infer_schema_length=None)
    quasi = dict.fromkeys(COLUMNS[:columns])
    # linear, as the figures it is compared with: by itself, counts of earlier visits would be measured by rank
    linear = {name: "linear" for name in quasi if frame[name].dtype.is_numeric()}
    return code(
        frame if rows is None else frame.head(rows),
        Schema.build(quasi=quasi, sensitive=[sensitive] if sensitive else [], losses=linear),  # type: ignore[arg-type]
    )


def distinct(rows: int) -> Table:
    """Six columns, one of them continuous: nearly all rows differ."""
    rng = np.random.default_rng(7)
    kind = rng.normal(size=rows)
    data: dict[str, np.ndarray] = {"c0": np.round(np.exp(rng.normal(size=rows) * 0.5 + 0.3 * kind) * 1000, 6)}
    for j in range(1, 6):
        near = np.clip(np.round(4 + 1.5 * (0.6 * kind + 0.8 * rng.normal(size=rows))), 0, 7).astype(np.int64)
        data[f"c{j}"] = rng.integers(0, 100, rows) if j % 2 else near
    return code(pl.DataFrame(data), Schema.build(quasi=dict.fromkeys(data)))


def beside(values: np.ndarray) -> Table:
    """Four correlated numbers beside a sensitive column of these values."""
    rng = np.random.default_rng(3)
    kind = rng.normal(size=len(values))
    data = {
        f"c{j}": np.clip(np.round(20 + 6 * (0.6 * kind + 0.8 * rng.normal(size=len(values)))), 0, 40) for j in range(4)
    }
    return code(pl.DataFrame({**data, "s": values}), Schema.build(quasi=dict.fromkeys(data), sensitive=["s"]))


def skewed() -> Table:
    """10,000 rows whose commonest value is held by nearly half."""
    return beside(np.minimum(np.random.default_rng(4).zipf(1.6, 10_000), 20))


def wide() -> Table:
    """20,000 rows of 50 correlated columns."""
    from benchmarks.bench_local import generated

    return generated(20_000, 50)


def diversity(kind: str, l: float) -> list[Promise]:
    """k and one kind of l-diversity."""
    return [KAnonymity(5), LDiversity(l, "s", kind=kind)]  # type: ignore[arg-type]


K5, K10 = [KAnonymity(5)], [KAnonymity(10)]
CASES: dict[str, Case] = {
    "stays-8": Case(lambda: stays(8), K5, "3.2 s, 3.21 %", ""),
    "stays-15": Case(lambda: stays(15), K5, "64 s, 9.84 %", "<= 12 s"),
    "stays-20": Case(lambda: stays(20), K5, "", "<= 18 s"),
    "wide-50": Case(wide, K5, "25 s, 57.0 %", "<= 10 s"),
    "distinct-1e5": Case(lambda: distinct(100_000), K10, "23 s, 9.83 %", "<= 4 s"),
    "distinct-3e5": Case(lambda: distinct(300_000), K10, "", "<= 9 s"),
    "distinct-1e6": Case(lambda: distinct(1_000_000), K10, "", "<= 25 s, 400 bytes a row"),
    "entropy": Case(skewed, diversity("entropy", 2.2), "", "<= 2 s"),
    "recursive": Case(skewed, diversity("recursive", 3), "", "<= 2 s"),
    "frequency": Case(skewed, diversity("frequency", 1.6), "", "<= 2 s"),
    "adult-t": Case(
        lambda: coded(adult(), ["occupation"]),
        [KAnonymity(5), TCloseness(0.2, "occupation")],
        "60 s, 40.8 %",
        "<= 5 s, 41 %",
    ),
    "diagnosis-t": Case(
        lambda: stays(7, 20_000, "diag_1"), [KAnonymity(5), TCloseness(0.2, "diag_1")], "65 s, 65.9 %", "<= 8 s"
    ),
    "700-values-t": Case(
        lambda: beside(np.random.default_rng(5).integers(0, 700, 10_000)),
        [KAnonymity(5), TCloseness(0.3, "s")],
        "12 s, 76.4 %",
        "<= 8 s",
    ),
}


def one(name: str) -> None:
    """Compile on a part, then time the whole: seconds, loss, smallest group, memory beyond the loaded table."""
    case = CASES[name]
    data = case.make()
    Local().group(data, case.promises)  # compiles; the second run is the one that counts
    seconds, grouping = cpu(lambda: Local().group(data, case.promises))
    boxes = boxes_of(data, grouping.labels)
    size = np.bincount(grouping.labels)
    lost = sum(float(size @ x.ncp(*boxes.column(j))) for j, x in enumerate(data.levels)) / data.matrix.size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{data.size:,}|{seconds:.2f}|{100 * lost:.3f}|{size.min()}|{peak:.0f}", end="")


def edges() -> None:
    """All cases, one process each."""
    rows = []
    for name, case in CASES.items():
        if (not STAYS.is_file() and name.startswith(("stays", "diagnosis"))) or (
            not ADULT.is_dir() and name == "adult-t"
        ):
            continue
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.table_cases", name], capture_output=True, text=True, check=True
        )
        n, seconds, lost, least, peak = done.stdout.split("|")
        rows.append([name, n, case.before, seconds, lost, case.asked, least, peak])
    table(
        "local at the edges: before groups were grown in regions, and now",
        ["case", "rows", "before", "CPU s", "GCP %", "asked", "least group", "peak MB"],
        rows,
    )


if __name__ == "__main__":
    one(sys.argv[1])
