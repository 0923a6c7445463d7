"""Somebody with a table of their own follows README and tutorial, line by line, and gets a verified release.

Only what a reader has to change is changed: the name of the file, and the columns that an attacker knows, which are
those the drafted policy calls quasi. The tables are public ones that nothing here was made for.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import polars as pl
import pytest

from shoal.policy.load import load

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/tutorials/table.md"]
TABLES = {
    "adult": ("adult/adult_full.csv.gz", 1000),
    "patients": ("diabetes_130us/diabetic_data.csv.gz", 800),
    "shop": ("online_retail/online_retail.parquet", 1500),
}


def lines(page: str) -> list[list[str]]:
    """The commands of the block that begins with the tour, without the tour."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.S)
    block = next(b for b in blocks if b.startswith("$ shoal demo"))
    return [shlex.split(line.removeprefix("$ shoal ")) for line in block.splitlines()[1:]]


@pytest.mark.shared
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", TABLES)
def test_every_line_works_on_a_table_that_is_not_ours(page, name, shared, shoal, tmp_path):
    file, rows = TABLES[name]
    place = shared / "data" / file
    frame = pl.read_parquet(place) if place.suffix == ".parquet" else pl.read_csv(place, infer_schema=False)
    frame.head(rows).write_csv(tmp_path / "mine.csv")
    walked = []
    for words in lines(page):
        mine = ["mine.csv" if word == "tour/hospital.csv" else word for word in words]
        if "--on" in mine:
            policy = load(str(tmp_path / "policy.yaml"))
            known = [c for c in policy.schema.quasi if c in frame.columns][:3]
            mine[mine.index("--on") + 1] = ",".join(known)
        if mine[0] == "anonymize" and "--method" not in mine:
            mine += ["--effort", "low"]  # as good a release for this test, sooner
        done = shoal(*mine)
        assert done.returncode == 0, f"{' '.join(mine)}\n{done.stdout}\n{done.stderr}"
        walked.append(mine[0])
        if mine[0] == "verify":
            assert "kept" in done.stdout
    assert walked == ["init", "anonymize", "verify", "attack"]
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert pl.read_csv(tmp_path / "released.csv", infer_schema=False).height > 0
