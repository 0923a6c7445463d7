"""Tables for the edges of table methods: wide, nearly distinct, many texts, skewed sensitive values."""

from __future__ import annotations

import numpy as np
import polars as pl

from benchmarks import SHARED
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.core.table import Table, code

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


def distinct(rows: int) -> pl.DataFrame:
    """Six columns, one of them continuous: nearly all rows differ."""
    rng = np.random.default_rng(7)
    kind = rng.normal(size=rows)
    data: dict[str, np.ndarray] = {"c0": np.round(np.exp(rng.normal(size=rows) * 0.5 + 0.3 * kind) * 1000, 6)}
    for j in range(1, 6):
        near = np.clip(np.round(4 + 1.5 * (0.6 * kind + 0.8 * rng.normal(size=rows))), 0, 7).astype(np.int64)
        data[f"c{j}"] = rng.integers(0, 100, rows) if j % 2 else near
    return pl.DataFrame(data)


def quasi_only(frame: pl.DataFrame, hierarchies: dict[str, Hierarchy] | None = None) -> Table:
    """All columns quasi."""
    return code(frame, Schema.build(quasi={**dict.fromkeys(frame.columns), **(hierarchies or {})}))


def texts(rows: int) -> pl.DataFrame:
    """A column of different texts beside an age."""
    rng = np.random.default_rng(11)
    numbers = pl.Series("text", 10_000_000 + 80 * rng.permutation(rows) + rng.integers(0, 80, rows))
    return pl.DataFrame({"text": numbers.cast(pl.String), "age": rng.integers(18, 90, rows)})


TEXT_TREES: dict[str, dict[str, Hierarchy]] = {
    "prefix": {"text": Prefix(8)},
    "tree": {"text": Tree(children=10)},
}


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
