"""One road: the same wish gives the same release by every caller, and no wish is ignored or weakened."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.keys import KeyRing
from shoal.datasets.hospital import hospital
from shoal.policy.load import load, parse
from shoal.release.job import job_of
from shoal.release.judges import judge_of
from shoal.release.stream import LocalRunner
from shoal.release.wishes import Wishes
from tests.cli.in_process import call

KEY = "ab" * 32
KEYS = KeyRing.load(environ={"SHOAL_KEY": KEY})
POLICY = """
dataset: hospital
columns:
  pid: subject
  zip: {role: quasi, type: str, hierarchy: {use: prefix, length: 5}}
  sex: quasi
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  diag: sensitive
views:
  res:
    show: [zip, sex, age, diag]
    promises: [{use: k-anonymity, k: 3}]
  late:
    show: [zip, sex, age, diag]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: batches, delay: 60}
  ward:
    show: [pid, zip, diag]
    masks: {pid: {use: pseudonym}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOAL_KEY", KEY)
    hospital(150, seed=4).write_csv(tmp_path / "p.csv")
    (tmp_path / "pol.yaml").write_text(POLICY)
    return tmp_path


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return call(list(words), Path.cwd())


def python(folder, **wishes) -> str:
    policy = load(folder / "pol.yaml")
    job = job_of(Wishes({"policy": policy, "keys": KEYS, "seed": 3, **wishes}))
    from shoal.connect.files import read

    return job.run(read(str(folder / "p.csv"), types=dict(job.types), exact=job.exact)).data.write_csv()


@pytest.mark.parametrize("role", ["res", "late", "ward"])
def test_python_anonymize_and_view_give_the_same_bytes(folder, role):
    expected = python(folder, view=role)
    viewed = run("view", "pol.yaml", "p.csv", "--role", role, "--seed", "3")
    assert viewed.stdout == expected, viewed.stderr
    if role != "ward":
        made = run("anonymize", "p.csv", "--policy", "pol.yaml", "--view", role, "--seed", "3")
        assert made.stdout == expected, made.stderr
    if role == "late":
        hospital(150, seed=4).write_ndjson("p.ndjson")
        streamed = run("stream", "p.ndjson", "--policy", "pol.yaml", "--view", role, "--seed", "3", "-o", "s.ndjson")
        assert streamed.returncode == 0, streamed.stderr
        shown = pl.read_csv(expected.encode(), infer_schema=False)
        assert pl.read_ndjson("s.ndjson").cast(pl.String).equals(shown)


def test_one_chunk_of_new_rows_is_the_whole_table(folder):
    frame = hospital(60, seed=4)
    how = {"quasi": {"age": {"use": "range", "min": 0, "max": 120}}, "k": 3, "seed": 1, "keys": KEYS}
    whole = job_of(Wishes({**how, "method": "forest"})).run(frame)
    chunk = job_of(Wishes({**how, "method": "forest", "append": str(folder / "state"), "publish": "new"})).run(frame)
    assert sorted(chunk.data.rows()) == sorted(whole.data.rows())


def test_an_option_makes_a_policy_stronger_and_says_so(folder):
    made = run("anonymize", "p.csv", "--policy", "pol.yaml", "--view", "res", "--k", "20", "-o", "out.csv")
    assert made.returncode == 0, made.stderr
    assert "changed from 3 to 20 by an option" in made.stderr
    assert run("verify", "out.csv", "--policy", "pol.yaml", "--view", "res", "--k", "20").returncode == 0
    assert run("verify", "out.csv", "--policy", "pol.yaml", "--view", "res", "--k", "150").returncode == 1


def test_an_option_never_makes_a_policy_weaker(folder):
    for command in (["anonymize", "p.csv", "-o", "out.csv"], ["verify", "p.csv"]):
        done = run(*command, "--policy", "pol.yaml", "--view", "res", "--k", "2")
        assert done.returncode == 2
        assert "--k: the policy promises k = 3" in done.stderr
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize(
    ("wishes", "named"),
    [
        ({"quasi": ["age"], "k": 3, "every": "1h"}, "every"),
        ({"quasi": ["age"], "k": 3, "p": 2}, "p"),
        ({"quasi": ["age"], "k": 3, "append": "s", "cells": "struct"}, "cells"),
        ({"quasi": ["age"], "k": 3, "append": "s", "report": "r.html"}, "report"),
        ({"series": True, "k": 3, "p": 2, "plain": ["x"]}, "plain"),
        ({"quasi": ["age"], "k": 3, "view": "x"}, "view"),
        ({"policy": parse(POLICY), "view": "res", "quasi": ["age"]}, "quasi"),
        ({"policy": parse(POLICY), "view": "late", "cells": "struct"}, "cells"),
        ({"policy": parse(POLICY), "view": "ward", "method": "local"}, "method"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_job_would_ignore_is_an_error_that_names_it(wishes, named):
    with pytest.raises(shoal.UsageError) as error:
        job_of(Wishes(wishes))
    assert error.value.where == named


@pytest.mark.parametrize("value", [5.0, "5", True, 0, -1, 2.5])
def test_k_is_a_whole_number_or_told(value):
    with pytest.raises(shoal.UsageError) as error:
        shoal.anonymize(pl.DataFrame({"q": [1, 1]}), quasi=["q"], k=value)
    assert error.value.where == "k"


def test_one_name_may_stand_alone():
    frame = hospital(60, seed=1)
    made = shoal.anonymize(frame, quasi="age", sensitive="diag", plain="med", k=3, l=2)
    assert set(made.data.columns) == {"age", "diag", "med"}


def test_the_judge_takes_the_hierarchy_of_a_sensitive_column():
    tree = {"use": "tree", "nodes": {"virus": ["flu", "cold"], "other": ["asthma", "gout"]}}
    policy = parse(
        "columns:\n  age: quasi\n"
        "  diag: {role: sensitive, hierarchy: {use: tree, nodes: {virus: [flu, cold], other: [asthma, gout]}}}\n"
        "views: {v: {show: [age, diag],"
        " promises: [{use: t-closeness, t: 0.9, column: diag, distance: hierarchical}]}}"
    )
    assert tree
    judge = judge_of(Wishes({"policy": policy, "view": "v"}))
    frame = pl.DataFrame({"age": [1, 1, 2, 2], "diag": ["flu", "asthma", "cold", "gout"]})
    assert judge.judge(frame).kept


def test_a_stream_without_a_view_shows_its_subject_to_nobody():
    job = job_of(Wishes({"z": 2, "window": "1h", "keys": KEYS}))
    out: list[pl.DataFrame] = []
    runner = LocalRunner(job, job.key(), out.append)
    times = np.arange(40.0)
    frame = pl.DataFrame({"time": times, "subject": [f"u{i % 8}" for i in range(40)], "value": ["x"] * 40})
    runner.feed(frame)
    runner.finish()
    shown = pl.concat(out)
    assert shown.height
    assert not set(shown["subject"].cast(pl.String)) & set(frame["subject"])


def test_check_takes_a_policy_with_one_view(folder):
    (folder / "z.yaml").write_text(
        "columns: {time: time, client: subject, site: {role: quasi, hierarchy: path}}\n"
        "views: {m: {show: [time, site], promises: [{use: z-anonymity, z: 2, window: 1h}], method: z-anonymity}}"
    )
    pl.DataFrame({"time": range(30), "client": [i % 5 for i in range(30)], "site": ["a.b"] * 30}).write_csv("e.csv")
    done = run("check", "z.yaml", "e.csv")
    assert done.returncode == 0, done.stderr
    assert "1 of 1 views made" in done.stderr


NOISY = st.fixed_dictionaries(
    {"hierarchy": st.just("path")}, optional={"noise": st.sampled_from([0.4, 1.0]), "exact": st.just(True)}
)


@st.composite
def wished_streams(draw) -> tuple[dict[str, Any], pl.DataFrame]:
    """What may be asked of a stream without a policy, and events with columns that nobody declares, in any order."""
    asked = {"z": draw(st.integers(1, 4)), "window": draw(st.sampled_from(["10s", "1m"]))}
    asked |= {"seed": draw(st.integers(0, 3)), "time": "at", "subject": "who", "value": "site"}
    asked |= draw(st.fixed_dictionaries({}, optional={"late": st.just("5s"), "unit": st.sampled_from(["s", "ms"])}))
    asked |= draw(st.just({}) | NOISY)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    many = draw(st.integers(1, 120))
    events = pl.DataFrame(
        {
            "name": [f"Ada Lovelace {i}" for i in range(many)],
            "site": [f"shop.{'abc'[i]}" for i in rng.integers(0, 3, many)],
            "at": np.sort(rng.integers(0, 90, many)),
            "zip": rng.integers(10_000, 99_999, many),
            "who": [f"u{i}" for i in rng.integers(0, 6, many)],
        }
    )
    return asked, events.select(draw(st.permutations(events.columns)))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wished=wished_streams())
def test_a_stream_of_options_is_the_same_from_python_and_the_command_line(folder, wished):
    asked, events = wished
    events.write_ndjson("e.ndjson")
    words = [word for name, value in asked.items() for word in (f"--{name}", str(value)) if value is not True]
    words += ["--exact"] if asked.get("exact") else []
    done = run("stream", "e.ndjson", *words, "-o", "out.ndjson")
    assert done.returncode == 0, done.stderr
    released = shoal.stream(events, **asked).data
    assert released.columns == ["at", "who", "site"]
    assert (folder / "out.ndjson").read_text() == released.write_ndjson()


@pytest.mark.parametrize("lacking", ["at", "who", "site"])
@pytest.mark.parametrize("by", ["options", "policy"])
def test_an_event_without_a_declared_column_is_told_by_its_name(lacking, by):
    events = pl.DataFrame({"at": [0, 1], "who": ["ada", "bob"], "site": ["x", "x"]}).drop(lacking)
    text = (
        "columns: {at: time, who: subject, site: {role: quasi, hierarchy: path}}\n"
        "views: {m: {show: [site], promises: [{use: z-anonymity, z: 2, window: 1h}], method: z-anonymity}}"
    )
    asked = {"z": 2, "window": "1h", "time": "at", "subject": "who", "value": "site"}
    with pytest.raises(shoal.ShoalError, match=lacking) as error:
        shoal.stream(events, **(asked if by == "options" else {"policy": parse(text), "view": "m"}))
    assert error.value.where
    assert error.value.hint
