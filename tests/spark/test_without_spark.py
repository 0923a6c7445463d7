"""Where Spark or Java is missing: an error that says what to install, before anything is read."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from shoal.core.errors import UsageError
from shoal.runtime.spark import session
from tests.cli.in_process import call

ASKED = ["anonymize", "t.csv", "--quasi", "age", "--k", "2", "--engine", "spark", "-o", "r.csv"]


@pytest.fixture
def folder(tmp_path):
    pl.DataFrame({"age": [20, 21, 50, 52]}).write_csv(tmp_path / "t.csv")
    return tmp_path


def test_spark_is_not_installed(folder, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *a: None if name == "pyspark" else find(name, *a))
    done = call(ASKED, folder, None, {})
    assert done.returncode == 2
    assert "Spark is not installed" in done.stderr
    assert "hint: pip install 'shoal[spark]'" in done.stderr
    assert [f.name for f in folder.iterdir()] == ["t.csv"]


def test_java_is_missing(folder, monkeypatch):
    pytest.importorskip("pyspark")
    monkeypatch.setattr(session.shutil, "which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    done = call(ASKED, folder, None, {})
    assert done.returncode == 2
    assert "Spark needs Java" in done.stderr
    assert "hint: install Java 17" in done.stderr
    assert [f.name for f in folder.iterdir()] == ["t.csv"]


def test_java_home_is_looked_at(tmp_path, monkeypatch):
    pytest.importorskip("pyspark")
    monkeypatch.setattr(session.shutil, "which", lambda name: None)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    session.require_spark()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(UsageError, match="Java"):
        session.require_spark()


def test_what_waits_to_be_judged_on_this_machine_is_gone_when_the_program_ends(monkeypatch):
    """It says whose each row is, and Spark leaves it lying."""
    ends: list = []
    monkeypatch.setattr("atexit.register", lambda *call, **named: ends.append((call, named)))
    place: list[str] = []
    context = SimpleNamespace(
        getCheckpointDir=lambda: place[-1] if place else None, master="local[2]", setCheckpointDir=place.append
    )
    session.checkpoints(SimpleNamespace(sparkContext=context))
    session.checkpoints(SimpleNamespace(sparkContext=context))
    (folder,) = map(Path, place)
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "part").write_text("p1")
    for (function, *given), named in ends:
        function(*given, **named)
    assert not folder.exists()
