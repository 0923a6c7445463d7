"""`shoal warm` compiles before the first use, in processes of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shoal.cli import main, warm
from shoal.series import SERIES_METHODS
from shoal.streams import STREAM_METHODS
from shoal.streams.z_stream import ZStream
from shoal.tables import TABLE_METHODS


def _run(*words):
    with pytest.raises(SystemExit) as done:
        main(["warm", *words])
    return done.value.code


def test_every_method_of_the_package_is_listed():
    own = {name for family in (TABLE_METHODS, STREAM_METHODS, SERIES_METHODS) for name in family._members}
    assert sorted(warm.listed()) == sorted(own)


@pytest.fixture
def nothing_compiled(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_methods_are_compiled_apart_and_named(nothing_compiled, monkeypatch, capfd):
    apart = []
    monkeypatch.setattr(warm, "_apart", lambda name: apart.append(name) or 0)
    assert not _run("mondrian", "kapra", "mondrian")
    assert sorted(apart) == ["kapra", "mondrian"]
    assert not _run()
    assert sorted(apart) == sorted(warm.listed())  # what was done is not done again
    assert not _run()
    assert sorted(apart) == sorted(warm.listed())
    said = capfd.readouterr()
    assert not said.out
    assert "compiled for this machine: mondrian, kapra" in said.err
    assert "everything is compiled" in said.err
    assert "\x1b" not in said.err  # nobody looks: no bar


def test_an_unknown_method_and_one_that_fails_are_named(nothing_compiled, monkeypatch, capfd):
    assert _run("mondrain") == 2
    assert "hint: one of: local" in capfd.readouterr().err
    monkeypatch.setattr(warm, "_apart", lambda name: 1)
    assert _run("kapra") == _run("kapra") == 3
    assert "'kapra'" in capfd.readouterr().err


def test_a_process_of_its_own_runs_the_method(monkeypatch):
    done = []
    monkeypatch.setattr(
        subprocess, "run", lambda words, **_: done.append(words) or subprocess.CompletedProcess(words, 0)
    )
    assert warm._apart("naive") == 0
    assert done == [[sys.executable, "-c", warm.ONE, "naive"]]


def test_a_method_of_each_family_runs_on_invented_data():
    for name in ("datafly", "fads", "naive"):
        warm.compile_for(name)


def test_zero_delay_covers_single_events_of_python(monkeypatch):
    """The first `push` runs other code than a batch: what is compiled for batches alone leaves it to wait."""
    pushed = []
    whole = ZStream.push
    monkeypatch.setattr(ZStream, "push", lambda self, *event: pushed.append(self) or whole(self, *event))
    warm.compile_for("z-anonymity")
    assert len(set(map(id, pushed))) == 2  # with a hierarchy and without
