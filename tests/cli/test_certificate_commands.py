"""A certificate beside a release, from the command line: made after the release, and checked with it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from shoal.datasets.hospital import hospital

CHECKER = Path(__file__).resolve().parents[2] / "scripts" / "check_certificate.py"
KEY = {"SHOAL_KEY_CERTIFICATE": "ab" * 32}
ASKED = ("--quasi", "sex,age", "--sensitive", "diag", "--k", "3")
MAKE = ("anonymize", "t.csv", *ASKED, "--certificate", "c.json")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hospital(60, seed=3).write_csv(tmp_path / "t.csv")
    return tmp_path


def test_a_release_is_certified_and_checked_by_us_and_by_the_checker(shoal, table):
    done = shoal(*MAKE, "-o", "r.csv", "--report", "r.json", **KEY)
    assert done.returncode == 0, done.stderr
    inside = json.loads(json.loads((table / "c.json").read_text())["certificate"])
    assert [file["part"] for file in inside["files"]] == ["input", "output", "report"]
    assert inside["promises"] == [{"use": "k-anonymity", "k": 3}]
    assert inside["kept"]
    words = [sys.executable, "-I", str(CHECKER), table / "c.json", "--key", inside["public_key"]]
    assert subprocess.run([*words, table / "r.csv", table / "t.csv"], check=False).returncode == 0
    found = shoal("verify", "r.csv", *ASKED, "--certificate", "c.json", **KEY)
    assert found.returncode == 0, found.stderr
    assert "files unchanged: 1" in found.stdout
    assert "the key at hand" in found.stdout
    told = shoal("verify", "r.csv", *ASKED, "--certificate", "c.json", "--public-key", inside["public_key"].upper())
    assert "the publisher's key" in told.stdout
    other = shoal("verify", "r.csv", *ASKED, "--certificate", "c.json", "--public-key", "ab" * 32)
    assert other.returncode > 1
    assert "another key than the publisher's" in other.stderr
    stranger = shoal("verify", "r.csv", *ASKED, "--certificate", "c.json", "--json")
    assert inside["public_key"] in json.loads(stranger.stdout)["certificate"]["signed_by"]


def test_an_earlier_release_stays_certified_and_only_its_time_tells(shoal, table):
    assert shoal(*MAKE, "-o", "r.csv", **KEY).returncode == 0
    first = {name: (table / name).read_bytes() for name in ("r.csv", "c.json")}
    hospital(90, seed=4).write_csv(table / "t.csv")
    assert shoal(*MAKE, "-o", "r.csv", **KEY).returncode == 0
    second = json.loads(json.loads((table / "c.json").read_text())["certificate"])
    for name, content in first.items():  # whoever kept them hands them out
        (table / name).write_bytes(content)
    told = shoal("verify", "r.csv", *ASKED, "--certificate", "c.json", **KEY)
    assert told.returncode == 0, told.stderr
    assert json.loads(json.loads(first["c.json"])["certificate"])["made"] <= second["made"]


def test_another_file_and_a_changed_certificate_are_refused(shoal, table):
    assert shoal(*MAKE, "-o", "r.csv", **KEY).returncode == 0
    whole = (table / "r.csv").read_text()
    (table / "r.csv").write_text(whole + whole.splitlines()[-1] + "\n")
    other = shoal("verify", "r.csv", *ASKED, "--certificate", "c.json")
    assert other.returncode > 1
    assert "this file is not the certified one" in other.stderr
    (table / "r.csv").write_text(whole)
    original = shoal("verify", "t.csv", *ASKED, "--certificate", "c.json")
    assert "not as a release" in original.stderr
    (table / "c.json").write_text((table / "c.json").read_text().replace("3-anonymity", "9-anonymity"))
    changed = shoal("verify", "r.csv", *ASKED, "--certificate", "c.json")
    assert changed.returncode > 1
    assert "the signature is not right" in changed.stderr


@pytest.mark.parametrize(
    ("more", "keys", "words"),
    [
        (("-o", "r.csv"), {}, "certificate"),
        ((), KEY, "-o FILE"),
        (("-o", "r.csv", "--dry-run"), KEY, "--dry-run"),
        (("-o", "c.json"), KEY, "c.json"),
    ],
)
def test_what_cannot_be_certified_is_refused_before_anything_is_written(shoal, table, more, keys, words):
    done = shoal(*MAKE, *more, **keys)
    assert done.returncode > 1
    assert words in done.stderr
    assert sorted(file.name for file in table.iterdir()) == ["t.csv"]


@pytest.mark.parametrize("part", ["t.csv", "r.csv"])
def test_a_file_exchanged_while_the_release_is_made_gets_no_signature(shoal, table, monkeypatch, part):
    """Somebody who may write in the folder swaps the input or the release before it is signed."""
    anonymize = import_module("shoal.cli.anonymize")  # the package has a function of the same name
    deliver = anonymize.deliver

    def exchanged(*given: Any, **named: Any) -> Any:
        written = deliver(*given, **named)
        (table / part).write_text("sex,age,diag\nF,21,flu\n")
        return written

    monkeypatch.setattr(anonymize, "deliver", exchanged)
    done = shoal(*MAKE, "-o", "r.csv", **KEY)
    assert done.returncode == 3, done.stderr
    assert "no certificate" in done.stderr
    assert not (table / "c.json").exists()


def test_a_table_of_a_database_is_refused_before_anything_is_read(shoal, tmp_path):
    words = ("anonymize", "sqlite:nothing.db#patients", *ASKED, "--certificate", "c.json", "-o", "r.csv")
    done = shoal(*words, **KEY)
    assert done.returncode == 2
    assert "a certificate names files" in done.stderr
    assert list(tmp_path.iterdir()) == []
