"""``--type`` speaks on every command that reads a table, and the forms of a policy on streams."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.cli import COMMANDS, build, main

READS = ("anonymize", "view", "verify", "measure", "attack", "compare", "tune", "init", "check")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    days = "".join(f"{d:02}/{m:02}/1980,{d + m}\n" for d in range(1, 7) for m in range(1, 5))
    (tmp_path / "t.csv").write_text("born,n\n" + days)
    (tmp_path / "p.yaml").write_text("columns: {born: quasi, n: plain}\nviews: {r: {show: [n]}}\n")
    promised = "promises: [{use: k-anonymity, k: 2}]"
    (tmp_path / "q.yaml").write_text(
        f"columns: {{born: quasi, n: plain}}\nviews: {{r: {{show: [born], {promised}}}}}\n"
    )
    return tmp_path


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    return int(stop.value.code or 0)


BASES = {
    "anonymize": ["anonymize", "t.csv", "--quasi", "born", "--k", "2", "--method", "datafly", "--dry-run"],
    "view": ["view", "p.yaml", "t.csv", "--role", "r", "--dry-run"],
    "verify": ["verify", "t.csv", "--quasi", "n", "--sensitive", "born", "--k", "1"],
    "measure": ["measure", "t.csv", "--quasi", "born"],
    "attack": ["attack", "t.csv", "t.csv", "--on", "born"],
    "compare": ["compare", "t.csv", "--quasi", "born", "--k", "2", "--methods", "datafly"],
    "tune": ["tune", "q.yaml", "t.csv", "--k", "2", "--methods", "datafly"],
    "init": ["init", "t.csv", "-o", "draft.yaml"],
    "check": ["check", "p.yaml", "t.csv"],
}


@pytest.mark.parametrize("command", READS)
def test_every_command_that_reads_a_table_takes_types(folder, capsys, command):
    found = build()[command].assemble_argument_collection()
    assert any("--type" in argument.names for argument in found)
    assert run(*BASES[command], "--type", "born=date:%d/%m/%Y") == 0
    capsys.readouterr()
    assert run(*BASES[command], "--type", "born=int") == 3, "the type must have an effect"
    said = capsys.readouterr().err
    assert "column 'born': 24 values are not of type int" in said
    assert "1980" not in said
    assert run(*BASES[command], "--type", "nobody=int") == 2
    assert "no column 'nobody'" in capsys.readouterr().err


def test_no_other_command_reads_a_table():
    assert set(READS) <= set(COMMANDS)
    others = [name for name in COMMANDS if name not in READS and name not in ("serve", "connect")]
    with_separator = [
        name for name in others if any("--separator" in a.names for a in build()[name].assemble_argument_collection())
    ]
    assert with_separator == []


STREAM = """
columns:
  at: {role: time, type: datetime, format: FORM}
  who: subject
  price: {role: quasi, type: float, format: ",", hierarchy: {use: range, min: 0, max: 10}}
views:
  market:
    show: [at, price]
    promises: [{use: z-anonymity, z: 2, window: 1h}]
    method: z-anonymity
"""
FORMS = {"'%d.%m.%Y %H:%M'": "31.12.2020 10:{:02}", "ms": "16094088000{:02}", "s": "16094088{:02}"}


@pytest.mark.parametrize("kind", ["ndjson", "csv"])
@pytest.mark.parametrize("form", FORMS)
def test_a_stream_reads_times_and_numbers_in_the_declared_form(folder, capfd, form, kind):
    (folder / "s.yaml").write_text(STREAM.replace("FORM", form))
    rows = [(FORMS[form].format(at), f"p{at % 3}", "1,5") for at in range(9)] + [("yesterday", "p1", "1,5")]
    if kind == "ndjson":
        text = "".join(json.dumps(dict(zip(("at", "who", "price"), row, strict=True))) + "\n" for row in rows)
    else:
        text = "at,who,price\n" + "".join(f'{at},{who},"{price}"\n' for at, who, price in rows)
    (folder / f"e.{kind}").write_text(text)
    assert run("stream", f"e.{kind}", "--policy", "s.yaml", "-o", "out.ndjson") == 0
    said = capfd.readouterr().err
    assert "8 released" in said
    assert "1 unreadable" in said
    assert "yesterday" not in said
    assert "1.5" in (folder / "out.ndjson").read_text()
    assert run("stream", f"e.{kind}", "--policy", "s.yaml", "-o", "out2.ndjson", "--strict") == 3
    assert "event 10" in capfd.readouterr().err
