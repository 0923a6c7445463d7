"""Releases in a database: what stands in its file beside the released cells, and in which order rows come."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.connect import sql
from shoal.tables.local import Local


def patients(rows: int = 400) -> pl.DataFrame:
    """Sorted by an exact age, so that the order of rows would tell it; names and withheld values carry marks."""
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "name": [f"MARKNAME{n:04d}" for n in range(rows)],
            "age": np.sort(rng.integers(0, 30_000, rows)),
            "town": ["MARKTOWN" if n == 7 else str(n % 3) for n in range(rows)],
            "diag": rng.choice(["flu", "cold", "asthma"], rows),
        }
    )


def test_the_rows_of_a_released_table_come_in_no_order_of_the_input(tmp_path: Path) -> None:
    """By its row ids a table has an order, whatever SQL says: read so, it must not join with the input line by line."""
    frame = patients()
    release = shoal.anonymize(frame, quasi=["age"], sensitive=["diag"], k=4)
    sql.write(release.data, f"sqlite:{tmp_path}/out.db#released")
    with sqlite3.connect(tmp_path / "out.db") as there:
        texts = [row[0] for row in there.execute("select age from released order by rowid")]
    low = np.array([float(text.strip("[]").split(",")[0]) for text in texts])
    # sorted input, one group after the other: kept, the order would correlate with the ages wholly
    assert abs(np.corrcoef(low, np.arange(len(low)))[0, 1]) < 0.25  # five deviations of an order drawn at random


def test_nothing_but_the_release_stands_in_the_file_of_a_database(tmp_path: Path) -> None:
    """No staging table, no name, no value of a withheld row, not in free pages nor in the schema."""
    for kind in ("sqlite", "duckdb"):
        file = tmp_path / f"out.{kind}"
        method = Local(effort="low", suppress=0.05)
        release = shoal.anonymize(patients(), quasi=["age", "town"], sensitive=["diag"], k=4, method=method)
        assert release.data is not None
        sql.write(release.data, f"{kind}:{file}#released")
        assert b"MARKNAME" not in file.read_bytes()
        if not any("MARKTOWN" in str(cell) for cell in release.data["town"]):
            assert b"MARKTOWN" not in file.read_bytes()
        assert not list(tmp_path.glob("*.wal")) + list(tmp_path.glob("*-journal")) + list(tmp_path.glob("*-wal"))
    with sqlite3.connect(tmp_path / "out.sqlite") as there:
        assert [name for (name,) in there.execute("select name from sqlite_master")] == ["released"]


@pytest.mark.parametrize(("kind", "rows"), [("sqlite", 2000), ("duckdb", 2000), ("duckdb", 40_000)])
def test_a_replaced_release_is_not_left_in_free_pages(tmp_path: Path, kind: str, rows: int) -> None:
    """Who retracts a release must not hand it out with the next one."""
    file, at = tmp_path / "out.db", f"{kind}:{tmp_path}/out.db#released"
    other = pl.DataFrame({"x": range(500)})
    sql.write(other, f"{kind}:{tmp_path}/out.db#other")
    sql.write(patients(rows).select("name"), at)
    before = file.stat().st_size
    assert b"MARKNAME" in file.read_bytes()
    sql.write(pl.DataFrame({"name": ["*"] * 3}), at, replace=True)
    assert b"MARKNAME" not in file.read_bytes()
    assert [f.name for f in tmp_path.iterdir()] == ["out.db"]
    assert sql.read(at)["name"].to_list() == ["*"] * 3
    assert sql.read(f"{kind}:{tmp_path}/out.db#other").equals(other)
    assert file.stat().st_size <= before + 4 * 262_144
