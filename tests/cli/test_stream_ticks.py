"""A quiet stream: the clock goes on, is written down first, and a replay decides alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import InputError
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Column, Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.release import stream as local
from shoal.release.stream import LocalRunner, StreamJob
from shoal.release.ticks import Tick, TickLog
from shoal.streams import STREAM_METHODS

KEY = bytes(range(32))
SCHEMA = Schema(
    {
        "at": Column("time", unit="us", ahead="1d"),
        "who": Column("subject"),
        "age": Column("quasi", type="int", hierarchy=Range(min=0, max=100)),
    }
)
POLICY = """
dataset: visits
columns:
  at:  {role: time, unit: s}
  who: {role: subject}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
views:
  research:
    show: [age]
    promises: [{use: k-anonymity, k: 2}]
    method: {use: batches, delay: 100, delay_time: 1s}
"""


def job(name: str) -> StreamJob:
    method = STREAM_METHODS.decode({"use": name, "delay": 20, "delay_time": "10us", "reuse": "forever"})
    return StreamJob(SCHEMA, [KAnonymity(2)], method)


def events(count: int) -> pl.DataFrame:
    rng = np.random.default_rng(count)
    return pl.DataFrame(
        {"at": np.arange(count) + 100, "who": [f"p{i % 9}" for i in range(count)], "age": rng.integers(0, 100, count)}
    )


@settings(max_examples=30)
@given(st.data())
def test_ticks_of_a_run_that_died_are_repeated_where_they_stood(tmp_path_factory: Any, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["batches", "castle", "fads"]))
    log = tmp_path_factory.mktemp("ticks") / "state.ticks"
    frame = events(data.draw(st.integers(1, 40)))
    told: list[pl.DataFrame] = []
    first = LocalRunner(job(name), KEY, told.append, ticks=log)
    at = 0
    while at < frame.height:
        size = data.draw(st.integers(1, 9))
        first.feed(frame[at : at + size])
        at += size
        if data.draw(st.booleans()):
            first.tick(100 + min(at, frame.height) + data.draw(st.integers(0, 20)))
    again: list[pl.DataFrame] = []
    second = LocalRunner(job(name), KEY, again.append, ticks=log)  # the first one died without a snapshot
    size = data.draw(st.integers(1, 50))
    for start in range(0, frame.height, size):
        second.feed(frame[start : start + size])
    assert [row for part in again for row in part.rows()] == [row for part in told for row in part.rows()]
    assert second.method.held == first.method.held
    second.forget_ticks()
    assert not log.exists()


def test_a_tick_stands_in_the_file_before_it_is_acted_on(tmp_path: Path) -> None:
    log = tmp_path / "state.ticks"
    seen: list[str] = []
    runner = LocalRunner(job("batches"), KEY, lambda _: seen.append(log.read_text()), ticks=log)
    runner.feed(events(6))
    runner.tick(5_000)
    assert seen == ["6 5000\n"]


def test_a_torn_line_is_no_tick_and_another_file_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "state.ticks"
    log.write_text("3 1000\n4 20")
    assert TickLog(log, 0).again == [Tick(3, 1000)]
    log.write_text("hello world\n")
    with pytest.raises(InputError, match="not a log of ticks"):
        TickLog(log, 0)


def test_the_clock_goes_on_by_the_time_that_passed_since_the_last_event(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [50.0]
    monkeypatch.setattr(local, "monotonic", lambda: seconds[0])
    told: list[pl.DataFrame] = []
    runner = LocalRunner(job("batches"), KEY, told.append)
    runner.feed(pl.DataFrame())  # nothing waits: nothing happens
    runner.feed(events(6))
    runner.feed(pl.DataFrame())
    assert not told  # no time has passed
    seconds[0] += 1
    runner.feed(pl.DataFrame())
    assert sum(part.height for part in told) == 6
    assert runner.method.figures()["wait_most"] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.skipif(os.name != "posix", reason="pipes are waited for by select")
def test_a_quiet_pipe_is_answered_in_time(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    run = subprocess.Popen(
        [sys.executable, "-m", "shoal", "stream", "--policy", "policy.yaml", "--view", "research"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    assert run.stdin is not None
    assert run.stdout is not None
    for i in range(4):
        run.stdin.write(json.dumps({"at": 1000, "who": f"p{i}", "age": 30 + i}).encode() + b"\n")
    run.stdin.flush()
    released = [json.loads(run.stdout.readline()) for _ in range(4)]  # the pipe is still open
    assert {row["age"] for row in released} <= {f"[{a}, {b}]" for a in range(30, 34) for b in range(a, 34)}
    run.stdin.close()
    assert run.wait() == 0
    assert not run.stdout.read()
    run.stdout.close()
