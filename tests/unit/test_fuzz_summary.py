"""A fuzz run says what it tried, and claims nothing about what it did not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import fuzz


def test_a_run_whose_time_was_up_claims_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--seconds", "0", "--seed", "1", "--family", "files"])
    assert fuzz.main() == 2
    said = capsys.readouterr().out
    assert "nothing found" not in said
    assert "0 of 1 families ended, 0 examples in 0.0 CPU minutes (files 0 in 0.0), no whole round; " in said
    assert "not tried to the end: files; nothing can be said" in said


def test_families_examples_and_whole_rounds_are_counted() -> None:
    names = ["z", "files"]
    assert fuzz.summary(names, [fuzz.Ended("z", 200, cpu=60.0)]) == (
        "1 of 2 families ended (z), 200 examples in 1.0 CPU minutes (z 200 in 1.0, files 0 in 0.0), no whole round; "
        "not tried to the end: files; nothing found"
    )
    turns = [fuzz.Ended("z", 1000, cpu=30.0), fuzz.Ended("files", 500, cpu=60.0), fuzz.Ended("z", 1, whole=False)]
    assert fuzz.summary(names, turns) == (
        "2 of 2 families ended (z, files), 1,501 examples in 1.5 CPU minutes (z 1,001 in 0.5, files 500 in 1.0), "
        "whole rounds: 1; nothing found"
    )
    assert fuzz.summary(names, [*turns, fuzz.Ended("z", 9, whole=False, failed=True)]).endswith("; broken: z")


def test_the_family_with_the_least_cpu_time_goes_on_with_the_laws_it_has_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str, int, frozenset[str]]] = []
    laws = {"slow": ["a", "b"], "fast": ["c"]}

    def run(name: str, seed: int, tried: frozenset[str], seconds: float, end: float) -> fuzz.Ended:
        seen.append((name, seed, tried))
        law = next(law for law in laws[name] if law not in tried)
        whole = {*tried, law} == set(laws[name])
        return fuzz.Ended(name, 10, whole, cpu=60.0 if name == "slow" else 20.0, laws=frozenset([law]))

    monkeypatch.setattr(fuzz, "_run", run)
    ended = fuzz.take_turns(["slow", "fast"], 5, 200.0, 1, end=float("inf"))
    assert [name for name, _, _ in seen] == ["slow", "fast", "fast", "fast", "slow", "fast"]
    assert [seed for _, seed, _ in seen] == [5, 6, 7, 8, 9, 10]
    assert [tried for name, _, tried in seen if name == "slow"] == [frozenset(), frozenset("a")]
    assert fuzz.summary(["slow", "fast"], ended).endswith("whole rounds: 1; nothing found")
    assert fuzz.take_turns(["slow", "fast"], 5, 200.0, 1, end=0.0) == []


def test_a_turn_has_only_laws_that_draw_and_that_were_not_tried(tmp_path: Path) -> None:
    text = "from hypothesis import given, strategies as st\ndef test_plain(): assert False\n"
    for law in ("one", "two"):
        text += f"@given(st.integers())\ndef test_{law}(x): assert x == x\n"
    (tmp_path / "test_it.py").write_text(text)
    (tmp_path / "conftest.py").write_text((fuzz.ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "turn").write_text(json.dumps({"tried": ["test_it.py::test_one"]}))
    told = {"SHOAL_FUZZ": "1", "SHOAL_FUZZ_SEED": "1", "SHOAL_FUZZ_TURN": str(tmp_path / "turn")}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-show-statistics"]
    run = subprocess.run(words, cwd=tmp_path, env={**os.environ, **told}, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert fuzz.laws(run.stdout) == {"test_it.py::test_two"}


def test_every_family_has_its_laws() -> None:
    assert set(fuzz.FAMILIES) >= {
        *("tables", "curves", "z", "groups", "windows", "views", "policies", "files", "state"),
    }
    listed = [file for files in fuzz.FAMILIES.values() for file in files]
    assert all((fuzz.ROOT / fuzz.LAWS / file).is_file() for file in listed)
    assert len(set(listed)) == len(listed)


def test_every_file_of_random_laws_is_in_a_family() -> None:
    tests = fuzz.ROOT / fuzz.LAWS
    random = {
        str(file.relative_to(tests))
        for room in fuzz.ROOMS
        for file in (tests / room).glob("test_*.py")
        if "@given" in file.read_text()
    }
    assert random <= {file for files in fuzz.families().values() for file in files}


@pytest.mark.parametrize(("law", "code"), [("assert x == x", 0), ("assert x < 50", 1)])
def test_a_broken_law_ends_the_run_with_its_seed(
    law: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    text = f"from hypothesis import given, strategies as st\n@given(st.integers())\ndef test_law(x): {law}\n"
    (tmp_path / "test_it.py").write_text(text)
    monkeypatch.setattr(fuzz, "ROOT", tmp_path)
    monkeypatch.setattr(fuzz, "LAWS", ".")
    monkeypatch.setattr(fuzz, "FAMILIES", {"it": ("test_it.py",)})
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--seconds", "2", "--seed", "7"])
    assert fuzz.main() == code
    assert ("To repeat it: SHOAL_FUZZ=1 SHOAL_FUZZ_SEED=7" in capsys.readouterr().out) == bool(code)


def test_examples_are_read_off_what_hypothesis_prints(tmp_path: Path) -> None:
    law = "from hypothesis import given, settings, strategies as st\n@settings(max_examples=30, deadline=None)\n"
    (tmp_path / "test_law.py").write_text(law + "@given(st.integers())\ndef test_law(x): assert x == x\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-show-statistics"]
    run = subprocess.run([*words, "test_law.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert fuzz.passed(run.stdout) == 30


def test_a_short_run_has_laws_of_every_family_though_its_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    names = ("one", "two", "three")
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "tests" / "conftest.py").write_text((fuzz.ROOT / "tests" / "conftest.py").read_text())
    text = "from hypothesis import given, settings, strategies as st\n"
    law = "@settings(max_examples=2)\n@given(st.integers())\ndef test_{}(x): assert {}\n"
    for name in names:
        sound = "".join(law.format(at, "x == x") for at in range(3))
        (tmp_path / "tests" / f"test_{name}.py").write_text(text + sound)
    monkeypatch.setattr(fuzz, "ROOT", tmp_path)
    monkeypatch.setattr(fuzz, "FAMILIES", {name: (f"test_{name}.py",) for name in names})
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--seconds", ".001", "--seed", "7"])
    assert fuzz.main() == 0
    said = capsys.readouterr().out
    assert "all families, seed 7: 3 laws, 6 examples" in said
    assert all(f"{name} 2 in" in said for name in names)
    (tmp_path / "tests" / "test_two.py").write_text(text)
    assert fuzz.main() == 2
    (tmp_path / "tests" / "test_two.py").write_text(text + law.format("law", "x != x"))
    assert fuzz.main() == 1
    assert capsys.readouterr().out.rstrip().endswith("; broken: two")


def test_every_family_has_a_turn_though_others_took_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(name: str, seed: int, tried: frozenset[str], seconds: float, end: float) -> fuzz.Ended:
        return fuzz.Ended(name, 1, cpu=500.0)

    monkeypatch.setattr(fuzz, "_run", run)
    ended = fuzz.take_turns(["a", "b", "c"], 5, 90.0, 1, end=float("inf"))
    assert [turn.family for turn in ended] == ["a", "b", "c"]
