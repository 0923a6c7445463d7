"""What a first use shows: verdicts, messages that locate and never quote, models sent on, titles, drafts, pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.cli import main

AGES = [1_000_003 + 17 * n for n in range(40)]  # numbers that stand nowhere else


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    return int(stop.value.code or 0)


def test_a_verdict_is_true_only_if_every_promise_is_kept():
    frame = pl.DataFrame({"age": ["30", "30", "31"]})
    assert not shoal.verify(frame, quasi=["age"], k=2)
    assert shoal.verify(frame.head(2), quasi=["age"], k=2)


def test_a_release_in_a_notebook_is_small_and_shows_no_original():
    release = shoal.anonymize(pl.DataFrame({"n": AGES}), quasi=["n"], k=8, method="mondrian", seed=1)
    page, line = release._repr_html_(), repr(release)
    assert len(line) < 100
    released = " ".join(release.data["n"])
    inside = [str(age) for age in AGES if str(age) not in released]
    assert len(inside) > 20
    assert not [age for age in inside if age in page or age in line]


def test_what_a_model_says_when_sent_on_cannot_rebuild_the_original():
    import pickle

    release = shoal.anonymize(pl.DataFrame({"n": AGES}), quasi=["n"], k=8, method="mondrian", seed=1)
    assert pickle.loads(pickle.dumps(release)).model is None


@pytest.mark.parametrize("kind", ["ndjson", "csv"])
def test_lines_that_cannot_be_read_are_located_without_being_quoted(tmp_path: Path, capfd, kind):
    file = tmp_path / f"e.{kind}"
    good = [{"time": n, "subject": f"p{n % 3}", "value": "x"} for n in range(6)]
    if kind == "ndjson":
        lines = [json.dumps(row) for row in good]
        lines[2], lines[4] = "Mrs Secret", '{"time": 4, "subject": {"name": "Mrs Secret"}, "value": "x"}'
        expected = "2 lines cannot be read, first of them: 3, 5"
    else:
        lines = ["time,subject,value", *(f"{r['time']},{r['subject']},x" for r in good)]
        lines[3] = "2,Mrs Secret,x,y,z"
        lines[5] = '4,"Mrs Secret" x,x'
        expected = "first of them: "
    file.write_text("\n".join(lines) + "\n")
    assert run("stream", str(file), "--z", "2", "--window", "1h", "-o", str(tmp_path / "out.ndjson")) == 0
    said = capfd.readouterr().err
    assert expected in said
    assert "Secret" not in said


def test_a_comparison_has_colours_and_the_name_of_the_table_as_title(tmp_path: Path):
    rng = np.random.default_rng(2)
    pl.DataFrame({"age": rng.integers(20, 60, 60)}).write_csv(tmp_path / "patients.csv")
    page = tmp_path / "page.html"
    words = ("--quasi", "age", "--k", "2,5", "--methods", "datafly,mondrian", "--report", str(page))
    assert run("compare", str(tmp_path / "patients.csv"), *words) == 0
    text = page.read_text()
    assert "<title>Comparison of patients</title>" in text
    assert str(tmp_path) not in text
    style = "".join(re.findall(r"<style>(.*?)</style>", text, re.S))
    used = set(re.findall(r"var\((--[\w-]+)", text))
    assert used
    assert used <= set(re.findall(r"(--[\w-]+)\s*:", style)), "every colour that is used is defined on the page"


def test_hidden_columns_of_a_draft_are_left_out_not_starred(tmp_path: Path):
    rng = np.random.default_rng(3)
    pl.DataFrame({"age": rng.integers(20, 60, 60), "colour": rng.choice(["a", "b"], 60)}).write_csv(tmp_path / "t.csv")
    policy, out = str(tmp_path / "p.yaml"), tmp_path / "out.csv"
    assert run("init", str(tmp_path / "t.csv"), "-o", policy, "--k", "3") == 0
    assert run("anonymize", str(tmp_path / "t.csv"), "--policy", policy, "-o", str(out)) == 0
    assert pl.read_csv(out).columns == ["age"]


def test_a_report_of_curves_has_words_not_keys():
    curves = np.add.outer(np.arange(8), [0, 1, 2, 3])
    text = shoal.anonymize_series(curves, k=4, p=2)[1].text()
    assert not re.findall(r"^\s*\w+_\w+\s", text, re.M)


@pytest.mark.parametrize("kind", ["table", "curves", "compare"])
def test_names_and_values_of_a_page_are_text(shoal, tmp_path, kind):
    """A column or value with a script in it is shown, not run."""
    bad, worse = "<script>alert(1)</script>", "<img src=x onerror=alert(1)>"
    if kind == "curves":
        curves = {f"t{j}{worse}": [(i % 3) + j for i in range(12)] for j in range(6)}
        pl.DataFrame({bad: [f"p{i}" for i in range(12)], **curves}).write_csv(tmp_path / "in.csv")
        words = ("anonymize", "in.csv", "--series", "--id", bad, "--quasi", ",".join(curves), "--k", "4", "--p", "2")
        done = shoal(*words, "-o", "out.csv", "--report", "page.html")
    else:
        rows = {bad: [i % 20 for i in range(60)], "zip": [f"{bad}{i % 3}" for i in range(60)], worse: [worse, "b"] * 30}
        pl.DataFrame(rows).write_csv(tmp_path / "in.csv")
        words = ("--quasi", f"{bad},zip", "--k", "3", "--report", "page.html")
        more = ("--sensitive", worse, "-o", "out.csv") if kind == "table" else ("--methods", "mondrian")
        done = shoal("anonymize" if kind == "table" else "compare", "in.csv", *words, *more)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert bad not in page
    assert worse not in page
    assert kind == "compare" or "&lt;script&gt;" in page or "&lt;img" in page  # a comparison names no column
