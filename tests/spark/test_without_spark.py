"""Where Spark or Java is missing: an error that says what to install, before anything is read."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
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


def started(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: here a session may be running already, and would be taken."""
    words = [sys.executable, "-m", "shoal", *ASKED]
    env = {**os.environ, **environment}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.system
@pytest.mark.parametrize("why", ["JAVA_HOME", "old Java", "SPARK_MASTER"])
def test_spark_that_cannot_be_started_is_told_with_what_it_needs(why, folder, tmp_path_factory):
    pytest.importorskip("pyspark")
    home = tmp_path_factory.mktemp("java")
    if why == "old Java":
        (home / "bin").mkdir()
        java = home / "bin" / "java"
        java.write_text(
            "#!/bin/sh\necho 'has been compiled by a more recent version of the Java Runtime' >&2\nexit 1\n"
        )
        java.chmod(0o755)
    environment = {"SPARK_MASTER": "nonsense"} if why == "SPARK_MASTER" else {"JAVA_HOME": str(home)}
    if why == "SPARK_MASTER" and session.shutil.which("java") is None:
        pytest.skip("Java is missing")
    done = started(folder, **environment)
    assert done.returncode == 3, done.stderr
    assert "error: spark: Spark could not be started" in done.stderr
    assert "hint: it needs Java 17 or newer" in done.stderr
    assert str(*environment.values()) in done.stderr.partition("hint:")[2]
    assert "defect" not in done.stderr
    assert [f.name for f in folder.iterdir()] == ["t.csv"]


@pytest.mark.system
def test_spark_starts_without_a_word_of_its_own():
    """But for what Java itself says before anything of Spark runs."""
    pytest.importorskip("pyspark")
    if session.shutil.which("java") is None:
        pytest.skip("Java is missing")
    code = "from shoal.runtime.spark.session import local_session; local_session().range(3).count()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    of_java = ("WARNING: Using incubator", "NOTE: Picked up JDK_JAVA_OPTIONS")
    assert [line for line in done.stderr.splitlines() if not line.startswith(of_java)] == []


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
