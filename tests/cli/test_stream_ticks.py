"""A quiet stream: the clock goes on, is written down first, and a replay decides alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import InputError
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Column, Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.release.stream import LocalRunner, StreamJob
from shoal.release.ticks import Tick, TickLog
from shoal.streams import STREAM_METHODS
from shoal.testing import HandClock, ListSink

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
    method = STREAM_METHODS.decode({"use": name, "delay": 20, "delay_time": "10us", "reuse": "never"})
    return StreamJob(schema=SCHEMA, promises=[KAnonymity(2)], method=method)


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
    first = LocalRunner(job(name), KEY, told.append, ticks=TickLog(log, KEY, 0))
    at = 0
    while at < frame.height:
        size = data.draw(st.integers(1, 9))
        first.feed(frame[at : at + size])
        at += size
        if data.draw(st.booleans()):
            first.tick(100 + min(at, frame.height) + data.draw(st.integers(0, 20)))
    again: list[pl.DataFrame] = []
    second = LocalRunner(
        job(name), KEY, again.append, ticks=TickLog(log, KEY, 0)
    )  # the first one died without a snapshot
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
    runner = LocalRunner(job("batches"), KEY, lambda _: seen.append(log.read_text()), ticks=TickLog(log, KEY, 0))
    runner.feed(events(6))
    runner.tick(5_000)
    assert [text.count("\n") for text in seen] == [1]
    assert TickLog(log, KEY, 0).again == [Tick(6, 5000)]


def test_a_torn_line_is_no_tick_and_another_file_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "state.ticks"
    TickLog(log, KEY, 0).write(Tick(3, 1000))
    with log.open("a") as out:
        out.write("0 9a")  # the machine died while it was written
    torn = TickLog(log, KEY, 0)
    assert torn.again == [Tick(3, 1000)]
    torn.write(Tick(4, 2000))
    assert TickLog(log, KEY, 0).again == [Tick(3, 1000), Tick(4, 2000)]
    log.write_text("hello world\n")
    with pytest.raises(InputError, match="not a log of ticks"):
        TickLog(log, KEY, 0)


@pytest.mark.parametrize("change", ["added in clear", "of another key", "first gone", "swapped", "of another state"])
def test_ticks_cannot_be_forged(tmp_path: Path, change: str) -> None:
    """Who moves the clock decides what is due; so a tick without its seal is not acted on."""
    path, others = tmp_path / "state.ticks", tmp_path / "other.ticks"
    log = TickLog(path, KEY, 4)
    for number in range(3):
        log.write(Tick(number, number * 1000))
    TickLog(others, bytes(32), 4).write(Tick(9, 9))
    lines = path.read_text().splitlines(keepends=True)
    changed = {
        "added in clear": [*lines, "4 " + msgspec.msgpack.encode(Tick(9, 9)).hex() + "\n"],
        "of another key": [*lines, others.read_text()],
        "first gone": lines[1:],
        "swapped": [lines[1], lines[0], lines[2]],
        "of another state": [line.replace("4 ", "5 ", 1) for line in lines],
    }[change]
    path.write_text("".join(changed))
    with pytest.raises(InputError):
        TickLog(path, KEY, 5 if change == "of another state" else 4)


def test_the_clock_goes_on_by_the_time_that_passed_since_the_last_event() -> None:
    clock, sink = HandClock(50.0), ListSink()
    runner = LocalRunner(job("batches"), KEY, sink, clock=clock)
    runner.feed(pl.DataFrame())  # nothing waits: nothing happens
    runner.feed(events(6))
    runner.feed(pl.DataFrame())
    assert not sink.frames  # no time has passed
    clock.move(1)
    runner.feed(pl.DataFrame())
    assert sink.frame.height == 6
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
