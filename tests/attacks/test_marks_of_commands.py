"""The law of the one gate on newer roads: tuning, models, earlier releases, regions, curves of a stream, side files.

See :mod:`tests.attacks.test_marks`; what the studio hands out is in ``tests/web/test_studio_gate.py``.
"""

from __future__ import annotations

import polars as pl

from tests.attacks.test_marks import Marks, inputs, rows, run

__all__ = ["run"]  # a fixture

RESEARCH = ("--policy", "policy.yaml", "--view", "research")


def test_tuning_and_its_report(run, tmp_path):
    inputs(tmp_path, rows(Marks()))
    words = ("tune", "policy.yaml", "inputs/in.csv", "--view", "research", "--methods", "mondrian", "--k", "3,4")
    for report in ("t.html", "t.svg"):
        run(*words, "--report", report)
    run(*words, "--max-loss", "0", "--json", code=None)
    run("tune", "policy.yaml", "inputs/in.csv", "--view", "market", "--z", "2,3", "--window", "1h", code=None)


def test_models_and_new_rows(run, tmp_path):
    inputs(tmp_path, rows(Marks()))
    run("anonymize", "inputs/in.csv", *RESEARCH, "--save-model", "m.model", "-o", "out.csv")
    more = Marks()
    more.number = 500
    inputs(tmp_path, rows(more))
    for source in ("csv", "parquet", "ndjson"):
        run("anonymize", f"inputs/in.{source}", "--model", "m.model", "-o", f"new.{source}", "--json")
    inputs(tmp_path, [{**row, "ward": more.text()} for row in rows(more)])
    run("anonymize", "inputs/in.csv", "--model", "m.model", "-o", "no.csv", code=1)


def test_earlier_releases(run, tmp_path):
    inputs(tmp_path, rows(Marks()))
    run("anonymize", "inputs/in.csv", *RESEARCH, "-o", "first.csv", "--k", "6")
    run("anonymize", "inputs/in.csv", *RESEARCH, "-o", "second.csv", "--previous", "first.csv", code=None)
    waived = ("--waive", "earlier-release", "--report", "r.html")
    run("anonymize", "inputs/in.csv", *RESEARCH, "-o", "second.csv", "--previous", "first.csv", *waived)
    # a table of somebody else's, with names in it, is laid beside and quoted nowhere
    run("anonymize", "inputs/in.csv", *RESEARCH, "-o", "third.csv", "--previous", "inputs/in.parquet", code=None)


def test_regions(run, tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.release.regional.choose.PER_ROW", 20_000_000)
    monkeypatch.setattr("shoal.release.regional.plan.FEWEST", 6)
    inputs(tmp_path, rows(Marks()))
    for source in ("csv", "parquet", "ndjson"):
        words = ("anonymize", f"inputs/in.{source}", *RESEARCH, "--memory", "400MB", "-o", f"out.{source}")
        run(*words, "--report", "r.html")
    assert "released in one region" in (tmp_path / "r.html").read_text()
    run("anonymize", "inputs/in.csv", *RESEARCH, "--memory", "400MB", "--k", "1000", "-o", "no.csv", code=1)


CURVES = """
columns: {at: {role: time, unit: s}, who: subject, kwh: {role: quasi, type: float}, diag: sensitive, note: plain}
views:
  grid:
    show: [at, kwh, diag]
    promises: [{use: kP-anonymity, k: 4, p: 2}]
    method: {use: curves, window: 4h, every: 1h}
"""


def test_curves_of_a_stream_and_what_is_written_beside(run, tmp_path):
    marks = Marks()
    (tmp_path / "curves.yaml").write_text(CURVES)
    names = [(marks.text(), marks.text()) for _ in range(12)]
    events = [
        {"at": 3600 * hour, "who": who, "kwh": float(number % 3 + hour % 2), "diag": "ab"[number % 2], "note": note}
        for hour in range(9)
        for number, (who, note) in enumerate(names)
    ]
    events += [{"at": 3600 * 9, "who": names[0][0], "kwh": odd, "diag": marks.text()} for odd in (None, marks.text())]
    pl.DataFrame(events, strict=False, infer_schema_length=None).write_csv(tmp_path / "inputs" / "e.csv")
    words = ("stream", "inputs/e.csv", "--policy", "curves.yaml", "--verify", "1", "--trust-times")
    beside = ("--withheld", "w.ndjson", "--synthetic", "s.txt", "--json")
    for report in ("c.html", "c.json", "c.txt"):
        run(*words, *beside, "-o", "curves.ndjson", "--report", report)
    run(*words, "--snapshot", "c.snap", "-o", "curves.csv")
    assert (tmp_path / "curves.ndjson").stat().st_size > 0


def test_two_views_of_one_pass(run, tmp_path):
    inputs(tmp_path, rows(Marks()))
    words = ("stream", "inputs/in.ndjson", "--policy", "policy.yaml", "--view", "market", "--also", "held=h.ndjson")
    run(*words, "-o", "m.ndjson", "--withheld", "w.ndjson", "--snapshot", "s.snap", "--report", "r.json", "--json")
