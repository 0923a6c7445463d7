"""``shoal measure --stream`` and ``shoal stream --figures``: tables, JSON, CSV and pictures."""

from __future__ import annotations

import json

import numpy as np
import polars as pl


def events(path, n=1500):
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "time": np.sort(rng.uniform(0, 20_000, n)),
            "subject": [f"u{i}" for i in rng.integers(0, 60, n)],
            "value": [f"{i % 3}.{i}" for i in rng.integers(0, 30, n)],
        }
    )
    frame.write_ndjson(path)


def test_profile_and_figures(shoal, tmp_path):
    events(tmp_path / "e.ndjson")
    profile = shoal("measure", "e.ndjson", "--stream", "--hierarchy", "path", "--out", "profile")
    assert profile.returncode == 0, profile.stderr
    assert "60 people" in profile.stdout
    made = {p.name for p in (tmp_path / "profile").iterdir()}
    assert {"exposed.csv", "levels.csv", "week.csv", "spread.csv", "people.svg", "values_1.svg", "week.svg"} <= made
    as_json = json.loads(shoal("measure", "e.ndjson", "--stream", "--json").stdout)
    assert as_json["events"] == 1500
    assert as_json["people"]["count"] == 60
    planned = shoal("plan", "--exposed", "profile/exposed.csv", "--users", "60", "--z", "5", "--json")
    assert 0 <= json.loads(planned.stdout)["p"] <= 1
    ran = shoal(
        "stream",
        "e.ndjson",
        "--z",
        "8",
        "--window",
        "1h",
        "--hierarchy",
        "path",
        "-o",
        "out.csv",
        "--figures",
        "figures",
    )
    assert ran.returncode == 0, ran.stderr
    found = pl.read_csv(tmp_path / "figures" / "figures.csv")
    assert {"p_k", "entropy_before", "entropy_after", "residual", "z", "level_0", "withheld"} <= set(found.columns)
    assert (found["level_0"] + found["level_1"] + found["withheld"] == found["events"]).all()
    pictures = {p.name for p in (tmp_path / "figures").glob("*.svg")}
    assert pictures == {"volume.svg", "p_k.svg", "z.svg", "entropy.svg"}
    missing = shoal("measure", "e.ndjson", "--stream", "--subject", "nobody")
    assert missing.returncode == 3
    assert "nobody" in missing.stderr
