"""A stream as a page: its profile, its figures over time, how a run ended; and the same as figures and text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.cli import main

POLICY = """
columns: {time: {role: time, unit: s}, who: subject, site: {role: quasi, hierarchy: path}}
views:
  market:
    show: [time, site]
    promises: [{use: z-anonymity, z: 3, window: 1h}]
    method: z-anonymity
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"time": 60 * n, "who": f"p{n % 7}", "site": f"shop.{'ab'[n % 2]}" if n % 10 else f"own.{n}"} for n in range(90)
    ]
    rows.append({"time": None, "who": "p1", "site": "shop.a"})
    (tmp_path / "e.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "p.yaml").write_text(POLICY)
    return tmp_path


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    return int(stop.value.code or 0)


def whole(page: str) -> None:
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "p1<" not in page, "nobody is named"
    assert "own." not in page, "no value is shown"


def test_a_run_ends_with_a_page_that_says_why(folder, capfd):
    words = ("stream", "e.ndjson", "--policy", "p.yaml", "-o", "out.ndjson")
    assert run(*words, "--report", "run.html", "--figures", "figures", "--figures-every", "10m") == 0
    page = (folder / "run.html").read_text()
    whole(page)
    for words_ in ("Why events were withheld", "shown by too few people", "unreadable", "Over time", "Not judged here"):
        assert words_ in page
    whole((folder / "figures" / "page.html").read_text())


@pytest.mark.parametrize("kind", ["json", "txt"])
def test_the_same_as_figures_and_as_text(folder, kind):
    assert run("stream", "e.ndjson", "--policy", "p.yaml", "-o", "out.ndjson", "--report", f"run.{kind}") == 0
    text = (folder / f"run.{kind}").read_text()
    assert json.loads(text)["bad"] == 1 if kind == "json" else "1 withheld: unreadable" in text


def test_a_page_of_another_kind_is_refused_before_anything_is_released(folder, capfd):
    assert run("stream", "e.ndjson", "--policy", "p.yaml", "-o", "out.ndjson", "--report", "run.pdf") == 2
    assert not (folder / "out.ndjson").exists()


def test_a_table_released_as_a_stream_has_a_judged_page(folder):
    assert run("anonymize", "e.ndjson", "--policy", "p.yaml", "-o", "out.ndjson", "--report", "r.html") == 0
    page = (folder / "r.html").read_text()
    whole(page)
    assert "Verified: every promise is kept" in page


def test_a_profile_has_a_page(folder):
    words = ("--stream", "--subject", "who", "--value", "site", "--hierarchy", "path", "--out", "profile")
    assert run("measure", "e.ndjson", *words) == 0
    page = (folder / "profile" / "page.html").read_text()
    whole(page)
    assert "Values of one person" in page
