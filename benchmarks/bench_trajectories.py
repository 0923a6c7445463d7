"""People with many rows: 30,000 hospital stays, plain k-anonymity with a pseudonym beside trajectory-anonymity.

``python -m benchmarks.bench_trajectories``; needs the shared data. No peer that installs has such a promise for tables.
"""

from __future__ import annotations

from typing import Any

import polars as pl

import shoal
from benchmarks import cpu, table
from benchmarks.table_data import STAYS
from shoal.core.release import Release
from shoal.promises.trajectory_anonymity import TrajectoryAnonymity
from shoal.verifier import grouped

QUASI = ["race", "gender", "age", "admission_type_id", "time_in_hospital"]
K = 5


def alone(release: Release, people: pl.Series) -> float:
    """Of people with several rows, the share whom nobody else equals in the groups of all of them."""
    groups = grouped(release.data, QUASI, people=people.gather(release.positions))
    rows = pl.DataFrame({"person": groups.people, "group": groups.labels}).sort("person", "group")
    paths = rows.group_by("person").agg(pl.len().alias("rows"), pl.col("group").cast(pl.String).str.join(","))
    several = paths.with_columns(pl.len().over("group").alias("crowd")).filter(pl.col("rows") > 1)
    return float((several["crowd"] == 1).sum() / several.height)


def main() -> None:
    """Loss, rows withheld, and who is alone once all rows of a person are put together."""
    frame = pl.read_csv(STAYS, infer_schema_length=None).head(30_000)
    people = frame["patient_nbr"]
    promised: dict[str, dict[str, Any]] = {
        f"k-anonymity, k={K}": {"k": K},
        f"trajectory-anonymity, k={K}": {"promises": [TrajectoryAnonymity(K)]},
    }
    rows = []
    for method in ("mondrian", "local"):
        for name, asked in promised.items():
            seconds, made = cpu(
                lambda method=method, asked=asked: shoal.anonymize(  # type: ignore[misc]
                    frame, quasi=QUASI, subject="patient_nbr", method=method, seed=1, **asked
                )
            )
            lost = 100 * made.report.loss.gcp
            rows.append([method, name, lost, sum(made.withheld.values()), 100 * alone(made, people), seconds])
    table(
        f"30,000 stays of {people.n_unique():,} patients, 5 quasi columns",
        ["method", "promise", "GCP %", "rows withheld", "alone of those with several rows %", "CPU s"],
        rows,
    )


if __name__ == "__main__":
    main()
