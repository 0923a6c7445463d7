"""No output of a command is a file that it reads, or another of its outputs: every pair of both, by every name, is
refused before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from shoal.core.keys import KeyRing
from shoal.datasets.hospital import hospital
from tests.cli.in_process import call

STREAM = """
columns: {time: time, client: subject, domain: {role: quasi, hierarchy: {use: tree, file: tree.csv}}, note: plain}
views:
  market:
    show: [time, client, domain]
    masks: {client: {use: tokenize, form: vault, vault: vault.db}}
    promises: [{use: z-anonymity, z: 2, window: 1h}]
    method: z-anonymity
  second:
    show: [time, domain]
    promises: [{use: z-anonymity, z: 3, window: 1h}]
    method: z-anonymity
  words:
    show: [note]
    masks: {note: {use: text, file: words.txt}}
"""
TABLE = """
columns: {age: quasi, sex: {role: quasi, hierarchy: {use: tree, file: sexes.csv}}, diag: sensitive}
views: {v: {show: [age, sex, diag], promises: [{use: k-anonymity, k: 3}, {use: k-map, k: 3, register: people.csv}]}}
"""


class Line(NamedTuple):
    """A command line, its outputs by option, and what it reads without an option for it."""

    words: str
    outputs: Mapping[str, str]
    reads: tuple[str, ...]
    beside: Mapping[str, tuple[str, ...]] = {}  # files that are written next to an output


LINES = {
    "stream": Line(
        "stream e.ndjson --policy s.yaml --view market --keys ring.json",
        {
            "-o": "out.ndjson",
            "--also second=": "second.ndjson",
            "--snapshot": "state.ndjson",
            "--withheld": "why.ndjson",
            "--synthetic": "numbers.ndjson",
            "--report": "run.json",
        },
        ("e.ndjson", "s.yaml", "tree.csv", "ring.json", "vault.db", "words.txt"),
        {
            "--snapshot": ("state.ndjson.counter", "state.ndjson.ticks", "state.ndjson.second.ticks"),
            "--figures": ("figures/figures.csv",),
        },
    ),
    "stream of options": Line(
        "stream e.ndjson --z 2 --window 1h --subject client --value domain --hierarchy tree.csv --keys ring.json",
        {"-o": "out.csv", "--withheld": "why.ndjson"},
        ("e.ndjson", "tree.csv", "ring.json"),
    ),
    "anonymize": Line(
        "anonymize t.csv --quasi age,sex --sensitive diag --hierarchy sex=sexes.csv --k 2 --previous before.csv "
        "--waive earlier-release",
        {"-o": "out.csv", "--report": "run.json", "--save-model": "model", "--certificate": "signed.json"},
        ("t.csv", "sexes.csv", "before.csv", "certificate.key"),
        {"--save-model": ("model.counter",)},
    ),
    "anonymize by policy": Line(
        "anonymize t.csv --policy t.yaml", {"-o": "out.csv", "--report": "run.txt"},
        ("t.csv", "t.yaml", "sexes.csv", "people.csv"),
    ),
    "anonymize a pattern": Line(
        "anonymize parts/*.csv --quasi age --k 2", {"-o": "out.csv", "--report": "run.txt"}, ("parts/a.csv",)
    ),
    "append": Line(
        "anonymize t.csv --quasi age,sex --hierarchy age=range:0:120 --k 2", {"-o": "out.csv", "--append": "state"},
        ("t.csv",), {"--append": ("state.counter",)},
    ),
    "join": Line(
        "anonymize t.csv --model kept.model", {"-o": "out.csv"}, ("t.csv", "kept.model", "kept.model.counter")
    ),
    "curves": Line(
        "anonymize c.csv --series --id who --k 6 --p 3", {"-o": "out.csv", "--representatives": "means.csv"}, ("c.csv",)
    ),
    "view": Line(
        "view t.yaml t.csv --role v --keys ring.json", {"-o": "out.csv", "--report": "run.txt"},
        ("t.csv", "t.yaml", "sexes.csv", "people.csv", "ring.json"),
    ),
    "init": Line("init t.csv", {"-o": "draft.yaml"}, ("t.csv",)),
    "compare": Line("compare t.csv --quasi age --k 2 --methods mondrian", {"--report": "r.html"}, ("t.csv",)),
    "tune": Line("tune t.yaml t.csv --methods mondrian", {"--report": "r.svg"}, ("t.csv", "t.yaml", "sexes.csv")),
    "reveal": Line(
        "reveal s.yaml --role market --column client --keys ring.json", {"--audit": "audit"},
        ("s.yaml", "ring.json", "vault.db", "tree.csv"),
    ),
}  # fmt: skip


def pairs() -> Iterator[tuple[str, str, str]]:
    for name, line in LINES.items():
        others = list(permutations(line.outputs, 2))
        yield from ((name, option, line.outputs[other]) for option, other in others)
        yield from ((name, option, read) for option in line.outputs for read in line.reads)
        beside = [(of, file) for of, files in line.beside.items() for file in files]
        yield from ((name, option, file) for option in line.outputs for of, file in beside if option != of)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    at = tmp_path_factory.mktemp("apart")
    hospital(40, seed=1).select("age", "sex", "diag").write_csv(at / "t.csv")
    for copy in ("people.csv", "before.csv"):
        (at / copy).write_bytes((at / "t.csv").read_bytes())
    (at / "parts").mkdir()
    (at / "parts" / "a.csv").write_bytes((at / "t.csv").read_bytes())
    events = {"time": range(40), "client": [f"u{i % 9}" for i in range(40)], "domain": ["a", "b"] * 20}
    pl.DataFrame(events).write_ndjson(at / "e.ndjson")
    curves = {f"W{i}": np.random.default_rng(i).integers(0, 9, 60) for i in range(4)}
    pl.DataFrame({"who": range(60), **curves}).write_csv(at / "c.csv")
    (at / "tree.csv").write_text("a;x;*\nb;x;*\n")
    (at / "sexes.csv").write_text("F;*\nM;*\n")
    (at / "words.txt").write_text("Meier\n")
    (at / "s.yaml").write_text(STREAM)
    (at / "t.yaml").write_text(TABLE)
    for name in ("vault.db", "kept.model", "kept.model.counter"):
        (at / name).write_bytes(b"")
    (at / "certificate.key").write_text("cd" * 32)
    for private in ("vault.db", "certificate.key"):
        (at / private).chmod(0o600)
    KeyRing().new("default").save(at / "ring.json")
    return at


@pytest.fixture
def folder(inputs, tmp_path, monkeypatch):
    for file in inputs.rglob("*"):
        if file.is_file():
            place = tmp_path / file.relative_to(inputs)
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(file.read_bytes())
            place.chmod(file.stat().st_mode)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOAL_KEY", "ab" * 32)
    monkeypatch.setenv("SHOAL_KEY_CERTIFICATE", "file:certificate.key")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def typed(line: Line, outputs: Mapping[str, str]) -> list[str]:
    words = line.words.split()
    for option, path in outputs.items():
        words += [*option.split()[:-1], option.split()[-1] + path] if option.endswith("=") else [option, path]
    return [*words, "--figures", "figures"] if "--figures" in line.beside else words


@pytest.mark.parametrize(("name", "option", "other"), list(pairs()), ids=lambda word: word)
def test_an_output_is_no_other_file_of_the_command(name, option, other, folder):
    line = LINES[name]
    before = contents(folder)
    done = call(typed(line, {**line.outputs, option: other}), Path.cwd())
    assert done.returncode in (2, 3), done.stderr
    assert "unexpected" not in done.stderr
    assert contents(folder) == before


@pytest.mark.parametrize("name", LINES)
def test_apart_they_are_refused_for_nothing(name, folder):
    """Otherwise the test above would pass by whatever else is wrong with a line."""
    done = call(typed(LINES[name], LINES[name].outputs), Path.cwd())
    assert "would replace" not in done.stderr
    assert "have the same name" not in done.stderr
    if name not in ("join", "reveal"):  # they need a model, or a vault, with something in it
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize("read", LINES["stream"].reads)
def test_other_names_of_a_file_are_seen_through(link, read, folder):
    line = LINES["stream"]
    getattr(folder / "link.ndjson", link)(folder / read)
    before = contents(folder)
    done = call(typed(line, {**line.outputs, "-o": "link.ndjson"}), Path.cwd())
    assert done.returncode == 2
    assert "the output would replace a file that is read" in done.stderr
    assert contents(folder) == before


@pytest.mark.parametrize(
    "words",
    [
        "stream e.ndjson --z 2 --window 1h --subject client --value domain --figures t.csv",
        "stream e.ndjson --z 2 --window 1h --subject client --value domain --figures t.csv/within",
        "measure e.ndjson --stream --subject client --value domain --out t.csv",
        "demo --rows 60 --out t.csv",
    ],
)
def test_a_file_is_no_folder_and_it_is_told_before_anything_is_done(words, folder):
    before = contents(folder)
    done = call(words.split(), Path.cwd())
    assert done.returncode == 2, done.stderr
    assert "expected a folder, found a file" in done.stderr
    assert not done.stdout
    assert contents(folder) == before


def test_a_profile_does_not_replace_its_events(folder):
    (folder / "run").mkdir()
    frame = pl.read_ndjson("e.ndjson")
    frame.write_csv("run/week.csv")
    frame.write_csv("run/events.csv")
    words = "measure run/{}.csv --stream --subject client --value domain --out run"
    before = contents(folder)
    assert call(words.format("week").split(), Path.cwd()).returncode == 2
    assert contents(folder) == before
    assert call(words.format("events").split(), Path.cwd()).returncode == 0
