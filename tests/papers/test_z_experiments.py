"""The experiments run, write what they say, and keep the published invariants (seed 000, chapters 4 to 6)."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from shoal.report.experiments import z_model, z_streams


def test_the_model_figures(tmp_path: Path) -> None:
    table = z_model.run(tmp_path)
    assert {p.name for p in tmp_path.glob("*.svg")} == {f"figure_{n}.svg" for n in table["figure"].unique()}
    four = table.filter((pl.col("figure") == "4") & pl.col("line").str.starts_with("k = 2"))
    exact, paper = (four.filter(pl.col("line").str.ends_with(m)).sort("x")["y"] for m in ("exact", "paper2020"))
    assert (exact <= paper + 0.002).all()
    assert paper.is_sorted()


@pytest.mark.slow
def test_the_stream_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z_streams, "SCALE", 0.004)
    table = z_streams.run(tmp_path)
    levels = [c for c in table.columns if c.startswith("level_")]
    assert (table.select(pl.sum_horizontal(*levels, "withheld")).to_series() - 100).abs().max() < 1e-9
    for (_, _), part in table.group_by("stream", "generalized"):
        part = part.sort("z")
        assert part["level_0"][0] == 100
        assert part["level_0"].is_sorted(descending=True)
        assert part["withheld"].is_sorted()
    noise = pl.read_csv(tmp_path / "noise.csv")
    none = noise.filter(pl.col("most") == 0)
    assert (none["volume"] + none["withheld"]).abs().max() < 1e-9
    general = noise.filter(pl.col("generalized") & ~pl.col("counted"))
    # withheld does not depend on noise when generalizing, because what can be lifted could be generalized
    assert general.group_by("stream").agg(pl.col("withheld").max() - pl.col("withheld").min())["withheld"].max() < 5
    assert (tmp_path / "tuned.csv").exists()
