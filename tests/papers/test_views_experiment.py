"""Allgöwer 2023, chapter 5: the experiment of role views runs, and its tables say what must be true."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from shoal.experiments import views


@pytest.mark.slow
def test_scopes_tables_and_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RECORDS": 3000,
        "WINDOWS": (10, 100),
        "KS": (2, 10),
        "DELAYS": (50, 500),
        "PARTITIONS": (1, 4),
    }.items():
        monkeypatch.setattr(views, name, value)
    views.run(tmp_path)
    scopes, tables, partitions = (pl.read_csv(tmp_path / f"{n}.csv") for n in ("scopes", "tables", "partitions"))
    assert set(scopes["scope"]) == {"value", "tuple", "window"}
    assert (scopes.select("loss").to_series().is_between(0, 1)).all()
    instant = scopes.filter(pl.col("scope") != "window")
    assert instant["wait_mean"].max() == 0
    loss = dict(zip(instant["mask"], instant["loss"], strict=True))
    assert loss["suppress"] == 1
    assert loss["bucket of 10"] == pytest.approx(9 / 120)
    assert loss["bucket of 10"] < loss["bucket of 30"]
    windows = scopes.filter(pl.col("scope") == "window")
    assert (windows["wait_p99"] <= windows["size"]).all()
    small, large = (windows.filter(pl.col("size") == n).sort("mask") for n in (10, 100))
    assert (small["wait_mean"] < large["wait_mean"]).all()
    micro = windows.filter(pl.col("mask") == "microaggregate").sort("size")
    assert micro["loss"].is_sorted(descending=True)  # among more, the nearest are nearer
    assert (tables["smallest"] >= tables["k"]).all()
    assert (tables["wait_most"] <= tables["size"]).all()
    batches = tables.filter((pl.col("mask") == "batches") & (pl.col("size") == 500)).sort("k")
    assert batches["loss"].is_sorted()
    one, four = (partitions.filter(pl.col("partitions") == n).sort("setting") for n in (1, 4))
    assert (four["loss"] >= one["loss"]).all()  # partitions cost utility, never privacy
    # keyed by the value, the exact values keep all their supporters: only what generalizes them is divided
    by_value = partitions.filter(pl.col("setting").str.ends_with("value"))
    assert by_value["loss"].n_unique() == 1
    assert len(list(tmp_path.glob("*.svg"))) == 8
