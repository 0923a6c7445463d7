"""The experiments run, write what they say, and keep the published invariants (Bacconi 2021, chapters 3 to 7)."""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.experiments import EXPERIMENTS, find, z_data, z_goals, z_model, z_night, z_profile, z_streams, z_time


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z_data, "SHRINK", 0.08)


def test_the_model_figures(tmp_path: Path) -> None:
    table = z_model.run(tmp_path)
    assert {p.name for p in tmp_path.glob("*.svg")} == {f"figure_{n}.svg" for n in table["figure"].unique()}
    four = table.filter((pl.col("figure") == "4") & pl.col("line").str.starts_with("k = 2"))
    exact, paper = (four.filter(pl.col("line").str.ends_with(m)).sort("x")["y"] for m in ("exact", "paper2020"))
    assert (exact <= paper + 0.002).all()
    assert paper.is_sorted()


def test_every_experiment_is_found() -> None:
    assert all(callable(find(name)) for name in EXPERIMENTS)


@pytest.mark.usefixtures("small")
def test_profiles_and_their_calibration(tmp_path: Path) -> None:
    table = z_profile.run(tmp_path)
    rows = {(row["stream"], row["what"]): row for row in table.to_dicts()}
    for name in ("ecommerce", "domains", "positions"):
        files = {p.name for p in (tmp_path / name).iterdir()}
        pictures = {"people.svg", "values_0.svg", "week.svg"}
        assert {"spread.csv", "levels.csv", "week.csv", "exposed.csv", *pictures} <= files
        # Tables 3.4 and 3.5, thinned: every count by one factor
        for what in ("tuples", "users", "samples per user"):
            assert rows[name, what]["ours"] == pytest.approx(rows[name, what]["published"], rel=0.02)
    assert (tmp_path / "calibration.csv").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_stream_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z_streams, "ZS", {name: (zs[0], zs[2], zs[4]) for name, zs in z_streams.ZS.items()})
    monkeypatch.setattr(z_streams, "ALONE", (0.0, 1 / 4, 1 / 2))
    monkeypatch.setattr(z_streams, "BESIDE", (0.0, 1 / 6, 1 / 4))
    table = z_streams.run(tmp_path)
    levels = [c for c in table.columns if c.startswith("level_")]
    assert (table.select(pl.sum_horizontal(*levels, "withheld")).to_series() - 100).abs().max() < 1e-9
    for (_, _), part in table.group_by("stream", "generalized"):
        part = part.sort("z")
        assert part["level_0"][0] == 100
        assert part["level_0"].is_sorted(descending=True)
        assert part["withheld"].is_sorted()
    # Figures 4.1 and 4.2: without generalization p rises with z, with it the same z hides fewer
    for (_,), part in table.group_by("stream"):
        alone, general = (part.filter(pl.col("generalized") == g).sort("z")["p_2"] for g in (False, True))
        assert alone.is_sorted()
        assert (general <= alone + 1e-12).all()
    noise = pl.read_csv(tmp_path / "noise.csv")
    none = noise.filter(pl.col("most") == 0)
    assert (none["volume"] + none["withheld"]).abs().max() < 1e-9
    published = noise.filter(~pl.col("counted"))
    for (_, generalized), part in published.group_by("stream", "generalized"):
        part = part.sort("most")
        assert part["volume"].is_sorted()  # Tables 6.2 to 6.5
        if generalized:
            # who has no category of z people has no z people to invent from: noise frees nothing that was withheld
            assert part["withheld"].n_unique() == 1
            assert part["residual"].is_sorted()
        else:
            assert part["withheld"].is_sorted(descending=True)  # Table 6.1
    assert (noise["least_real"] >= 1).all()


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_figures_over_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z_data, "SHRINK", 0.2)
    monkeypatch.setattr(z_time, "FIGURES", [f for f in z_time.FIGURES if f[0][:3] in ("4.4", "5.5", "5.8")])
    table = z_time.run(tmp_path)
    levels = [c for c in table.columns if c.startswith("level_")]
    assert (table.select(pl.sum_horizontal(*levels, "withheld") - pl.col("events")).to_series() == 0).all()
    assert table["figure"].n_unique() == 5
    assert table["p_k"].drop_nulls().is_between(0, 1).all()

    def of(figure: str, name: str) -> pl.DataFrame:
        return table.filter(pl.col("figure").str.starts_with(figure) & (pl.col("stream") == name)).filter(
            pl.col("time") > 3600
        )

    # 4.4: with a fixed z, p collapses when traffic rises; 5.5: z follows the traffic
    fixed = of("4.4", "domains")
    busy = fixed["events"] > fixed["events"].median()
    assert fixed.filter(busy)["p_k"].mean() < fixed.filter(~busy)["p_k"].mean()
    tuned = of("5.5", "domains")
    assert np.corrcoef(tuned["events"].to_numpy(), tuned["z"].to_numpy())[0, 1] > 0.5
    assert tuned.filter(busy)["p_k"].mean() > fixed.filter(busy)["p_k"].mean()
    # 5.8: less is left than there was, in domains most
    entropy = table.filter(pl.col("figure").str.starts_with("5.8") & (pl.col("time") > 3600))
    left = {name: part["residual"].mean() for (name,), part in entropy.group_by("stream")}
    assert all(0 < share <= 1 for share in left.values())
    assert (tmp_path / "5.7a" / "positions" / "volume.svg").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_what_a_goal_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z_goals, "SHARES", (0.2, 0.5, 0.9))
    monkeypatch.setattr(z_goals, "KS", (2, 5, 9))
    table = z_goals.run(tmp_path)
    for (_, by), part in table.group_by("stream", "by"):
        part = part.sort(by)
        assert all(a <= b for a, b in pairwise(part["z_median"])), part  # Figures 5.9 and 5.10: z rises with both
        assert (part["z_least"] <= part["z_median"]).all()
        if by == "p":
            assert part["residual"][0] >= part["residual"][-1]  # Figure 5.11
    assert len(list(tmp_path.glob("*.svg"))) == 12


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_morning_dip_is_smaller_when_z_is_known_or_learned(tmp_path: Path) -> None:
    table = z_night.run(tmp_path)
    for (_,), part in table.group_by("stream"):
        missing = dict(zip(part["way"], part["mean_shortfall"], strict=True))
        assert missing["z by the hour known"] <= missing["as it is"]
    # in one of three so small streams the dip can be a twentieth of a percent, and what is learned another chance
    total = dict(table.group_by("way").agg(pl.sum("mean_shortfall")).rows())
    assert 0 <= total["z by the hour learned"] < total["as it is"]
    assert len(list(tmp_path.glob("morning_*.svg"))) == 3


@pytest.mark.shared
def test_the_real_stream_of_the_shop(shared: Path, tmp_path: Path) -> None:
    frames = z_data.real(shared)
    assert set(frames) == {"ecommerce, real", "domains, real", "positions, real"}
    assert all(f["time"].is_sorted() and f.null_count().sum_horizontal()[0] == 0 for f in frames.values())
    assert frames["ecommerce, real"].height > 10_000
    made, parts, found = z_data.play(frames["ecommerce, real"], 5, every="30m")
    assert made.counters["level_0"] > 0
    assert sum(row["events"] for row in found) <= frames["ecommerce, real"].height == sum(len(p.levels) for p in parts)


def published_noise(frame: pl.DataFrame, z: int, most: int) -> tuple[list[str | None], list[tuple[int, str, str]]]:
    """Algorithm 5 with a queue per node: what is released, and who is invented for which event."""
    queues: dict[str, deque[tuple[float, str]]] = defaultdict(deque)
    released: list[str | None] = []
    fakes: list[tuple[int, str, str]] = []
    for at, (time, who, value) in enumerate(frame.select("time", "subject", "value").rows()):
        steps = value.split(".")
        labels = [".".join(steps[:n]) for n in range(len(steps), 0, -1)]
        for label in labels:
            queues[label].append((time, who))
            while queues[label][0][0] < time - 3600:
                queues[label].popleft()
        shown = {person for _, person in queues[value]}
        near = [p for _, p in reversed(queues[labels[1]]) if p not in shown] if 0 < z - len(shown) <= most else []
        chosen = list(dict.fromkeys(near))[: z - len(shown)]
        if chosen and len(chosen) == z - len(shown):
            fakes += [(at, person, value) for person in chosen]
            released.append(value)
        else:
            released.append(next((label for label in labels if len({p for _, p in queues[label]}) >= z), None))
    return released, fakes


@pytest.mark.shared
def test_noise_is_algorithm_5_on_all_events_of_the_real_shop(shared: Path) -> None:
    frame = z_data.real(shared)["ecommerce, real"]
    _, parts, _ = z_data.play(frame, 6, noise={"most": 3}, allow_noise=True)
    released, fakes = published_noise(frame, 6, 3)
    assert len(parts) == 1
    assert parts[0].values.to_list() == released
    assert parts[0].fakes == fakes
    assert len(fakes) > 2000
