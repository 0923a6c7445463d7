"""A stream that dies at any moment and is started again releases every event once: its output is, byte for byte, that
of a run nobody disturbed. Deaths are simulated at every write, in this process; and by SIGKILL, in one of its own."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pytest

from shoal.connect import events as reading
from shoal.connect.sink import Lines
from shoal.core import private_file
from shoal.core.errors import InputError
from shoal.release import checkpoints
from tests.cli.in_process import call

POLICY = """
dataset: visits
columns:
  at:   {role: time, unit: s, late: 10s}
  who:  {role: subject}
  age:  {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  pulse: {role: quasi, type: int}
  site: {role: quasi, hierarchy: {use: path, depth: 2}}
  ill:  {role: sensitive}
views:
"""
VIEWS = {
    "z-anonymity": "{show: [at, who, site], masks: {who: pseudonym}, "
    "promises: [{use: z-anonymity, z: 3, window: 60s}], method: z-anonymity}",
    "noise": "{show: [at, who, site], masks: {who: pseudonym}, "
    "promises: [{use: z-anonymity, z: 4, window: 60s}], "
    "method: {use: z-anonymity, noise: {most: 2}, allow_noise: true}}",
    "batches": "{show: [age, site, ill], promises: [{use: k-anonymity, k: 4}], "
    "method: {use: batches, delay: 60, delay_time: 40s}}",
    "castle": "{show: [age, site, ill], promises: [{use: k-anonymity, k: 4}, {use: l-diversity, l: 2, column: ill}], "
    "method: {use: castle, delay: 60}}",
    "fads": "{show: [age, site, ill], promises: [{use: k-anonymity, k: 4}], method: {use: fads, delay: 60}}",
    "tuned": "{show: [at, who, site], masks: {who: pseudonym}, promises: [{use: z-anonymity, z: 2, window: 60s}], "
    "method: {use: z-anonymity, tune: {goal: {k: 3, probability: 0.8}, every: 30s}}}",
    "curves": "{show: [at, pulse, ill], promises: [{use: kP-anonymity, k: 4, p: 2}], "
    "method: {use: curves, window: 40s, every: 20s, missing: zero}}",
}
ALSO = {"batches": "z-anonymity", "tuned": "castle", "curves": "fads"}  # a second view, made in the same pass
ENVIRONMENT = {"SHOAL_KEY": "ab" * 32}
SOURCES, SINKS = ("events.ndjson", "events.csv.gz", "events.parquet", "-"), ("out.ndjson", "out.csv", "out.ndjson.gz")
LONG = bool(os.environ.get("SHOAL_LONG"))
WAYS = [
    (view, SOURCES[i % len(SOURCES)], SINKS[(i + j) % len(SINKS)])
    for j, view in enumerate(VIEWS)
    for i in range(j, j + 2)
] + [("batches", "-", "out.csv.zst"), ("curves", "-", "out.csv.zst"), ("z-anonymity", "events.csv.gz", "out.ndjson"),
     ("fads", "events.csv.zst", "out.ndjson")]  # fmt: skip


# by SIGKILL a few ways; all of them where there is time
KILLED = WAYS if LONG else [("batches", "events.ndjson", "out.csv"), ("z-anonymity", "-", "out.ndjson.gz")]


class KilledError(BaseException):
    """The process is gone."""


def prepare(folder: Path, count: int = 400) -> None:
    """A policy, and the same events in every form."""
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "at": 1_600_000_000 + np.sort(rng.integers(0, count, count)),
            "who": [f"p{i}" for i in rng.integers(0, 40, count)],
            "age": rng.integers(18, 90, count),
            "pulse": rng.integers(50, 120, count),
            "site": [f"shop.{'abc'[i % 3]}" for i in rng.integers(0, 9, count)],
            "ill": [("flu", "cold", "cough")[i] for i in rng.integers(0, 3, count)],
        }
    )
    (folder / "policy.yaml").write_text(POLICY + "".join(f"  {name}: {view}\n" for name, view in VIEWS.items()))
    frame.write_ndjson(folder / "events.ndjson")
    frame.write_parquet(folder / "events.parquet")
    (folder / "events.csv.gz").write_bytes(gzip.compress(frame.write_csv().encode()))
    packed = Lines(str(folder / "events.csv.zst"))
    packed.write(frame.write_csv().encode())
    packed.close()


@contextmanager
def dying(after: int) -> Iterator[list[int]]:
    """After so many writes the next one is torn in the middle, and the process is gone."""
    steps = [0]
    written, private = Lines._written, private_file.write_private

    def count() -> bool:
        steps[0] += 1
        return steps[0] > after

    def torn(self: Lines, data: bytes) -> None:
        if count():
            written(self, data[: len(data) // 2])
            raise KilledError
        written(self, data)

    def state(path: Path, data: bytes, what: str) -> None:
        if count():
            raise KilledError
        private(path, data, what)

    with (
        mock.patch.object(Lines, "_written", torn),
        mock.patch("shoal.core.sealed_state.write_private", state),
        mock.patch.object(reading, "CHUNK", 3000),
        mock.patch.object(reading.Events.__init__, "__kwdefaults__", {**KWDEFAULTS, "chunk": 3000}),
        mock.patch.object(checkpoints, "LEAST", 37),
    ):
        yield steps


KWDEFAULTS: dict[str, Any] = dict(reading.Events.__init__.__kwdefaults__)


def words(view: str, source: str, output: str) -> list[str]:
    """A stream with checkpoints as often as it may."""
    more = ["--again"] if source == "-" else []
    if view in ALSO:
        more += ["--also", f"{ALSO[view]}=also.ndjson"]
    return [
        *("stream", source, "--policy", "policy.yaml", "--view", view, "-o", output, "--synthetic", "numbers"),
        *("--withheld", "reasons.ndjson", "--snapshot", "state", "--checkpoint", "0s", "--flush", *more),
    ]


def left(folder: Path, output: str) -> dict[str, bytes]:
    """What stands in the files, uncompressed."""
    read: dict[str, Callable[[Path], bytes]] = {
        ".gz": lambda file: gzip.decompress(file.read_bytes()),
        ".zst": lambda file: pl.read_csv(file).write_csv().encode(),
    }
    found = {name: folder / name for name in (output, "numbers", "reasons.ndjson", "also.ndjson")}
    return {name: read.get(file.suffix, Path.read_bytes)(file) for name, file in found.items() if file.exists()}


@pytest.mark.parametrize(("view", "source", "output"), WAYS)
def test_a_stream_killed_at_any_write_goes_on_as_if_nothing_happened(
    tmp_path: Path, view: str, source: str, output: str
) -> None:
    prepare(tmp_path)
    stdin = (tmp_path / "events.ndjson").read_text() if source == "-" else None
    line = words(view, source, output)
    done = call([w for w in line if w not in ("--snapshot", "state", "--checkpoint", "0s", "--flush", "--again")],
                tmp_path, stdin, ENVIRONMENT)  # fmt: skip
    assert done.returncode == 0, done.stderr
    whole = left(tmp_path, output)
    assert whole[output].count(b"\n") > 50
    assert whole["reasons.ndjson"] or view not in ("z-anonymity", "noise", "tuned")
    assert ("also.ndjson" in whole) == (view in ALSO)
    for name in whole:
        (tmp_path / name).unlink()
    chance = random.Random(f"{view} {source} {output}")
    deaths = 0
    for after in [chance.randrange(1, 12 + 4 * i) for i in range(60)]:
        try:
            with dying(after) as steps:
                done = call(line, tmp_path, stdin, ENVIRONMENT)
        except KilledError:
            deaths += 1
            continue
        assert steps[0] <= after
        break
    assert done.returncode == 0, done.stderr
    assert deaths
    assert left(tmp_path, output) == whole


def test_what_is_held_stays_held_until_the_stream_is_said_to_end(tmp_path: Path) -> None:
    prepare(tmp_path, 100)
    line = ["stream", "events.ndjson", "--policy", "policy.yaml", "--view", "batches", "-o", "out.ndjson", "--snapshot",
            "state", "--json"]  # fmt: skip
    done = call(line, tmp_path, None, ENVIRONMENT)
    held = json.loads(done.stderr[done.stderr.index("{") :])["held"]
    assert held > 0
    (tmp_path / "none.ndjson").write_text("")
    done = call(["stream", "none.ndjson", *line[2:], "--flush"], tmp_path, None, ENVIRONMENT)
    found = json.loads(done.stderr[done.stderr.index("{") :])
    assert found["held"] == 0
    assert found["released"] + found["withheld"] == 100
    assert (tmp_path / "out.ndjson").read_text().count("\n") == found["released"]


def test_an_output_that_was_changed_is_never_cut(tmp_path: Path) -> None:
    """Cutting a file back destroys what is behind: it must be the one we wrote."""
    prepare(tmp_path, 100)
    line = ["stream", "events.ndjson", "--policy", "policy.yaml", "--view", "batches", "-o", "out.ndjson", "--snapshot",
            "state"]  # fmt: skip
    assert call(line, tmp_path, None, ENVIRONMENT).returncode == 0
    mine = (tmp_path / "out.ndjson").read_bytes()
    (tmp_path / "out.ndjson").write_bytes(bytes(len(mine) + 100))
    done = call(line, tmp_path, None, ENVIRONMENT)
    assert done.returncode == 3
    assert "not what was written" in done.stderr
    assert (tmp_path / "out.ndjson").read_bytes() == bytes(len(mine) + 100)
    (tmp_path / "out.ndjson").write_bytes(mine[:-10])
    assert call(line, tmp_path, None, ENVIRONMENT).returncode == 3
    (tmp_path / "out.ndjson").unlink()  # taken away by its reader: the stream goes on in a new one
    done = call(line, tmp_path, None, ENVIRONMENT)
    assert done.returncode == 0
    assert "not the file of the snapshot" in done.stderr


def test_a_mark_of_another_key_is_no_mark(tmp_path: Path) -> None:
    out = Lines(str(tmp_path / "out"))
    out.write(b"x" * 10)
    mark = out.mark(bytes(32))
    out.close()
    with pytest.raises(InputError, match="not what was written"):
        Lines(str(tmp_path / "out")).resume(mark, bytes(range(32)))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize(("view", "source", "output"), KILLED)
def test_sigkill_at_random_moments(tmp_path: Path, view: str, source: str, output: str) -> None:
    """The same with real deaths; SHOAL_STREAM_KILLS says how many at most."""
    prepare(tmp_path, 60_000)
    stdin = (tmp_path / "events.ndjson").read_text() if source == "-" else None
    line = words(view, source, output)
    plain = [w for w in line if w not in ("--snapshot", "state", "--checkpoint", "0s", "--flush", "--again")]
    assert call(plain, tmp_path, stdin, ENVIRONMENT).returncode == 0
    whole = left(tmp_path, output)
    for name in whole:
        (tmp_path / name).unlink()
    chance, killed, most = random.Random(output), 0, int(os.environ.get("SHOAL_STREAM_KILLS", "3"))
    while True:
        with (tmp_path / "events.ndjson").open("rb") as given:
            run = subprocess.Popen(
                [sys.executable, "-m", "shoal", *line],
                cwd=tmp_path, stdin=given, stderr=subprocess.PIPE, env={**os.environ, **ENVIRONMENT},
            )  # fmt: skip
            try:
                # it is killed some time after its first state stands on the disk, and never at all the last time
                while killed < most and run.poll() is None and not (tmp_path / "state").exists():
                    time.sleep(0.02)
                said = run.communicate(timeout=chance.uniform(0.0, 0.5) if killed < most else None)[1]
                break
            except subprocess.TimeoutExpired:
                run.kill()
                run.communicate()
                killed += 1
    assert run.returncode == 0, said
    assert left(tmp_path, output) == whole


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix" or not LONG, reason="SIGKILL, where there is time")
@pytest.mark.parametrize("view", ["z-anonymity", "tuned", "noise"])
def test_sigkill_while_a_file_grows_and_is_followed(tmp_path: Path, view: str) -> None:
    """It grows while nobody reads it, too; methods without delay hold nothing back at the end."""
    prepare(tmp_path, 20_000)
    lines = (tmp_path / "events.ndjson").read_bytes().splitlines(keepends=True)
    line = ["stream", "grown.ndjson", *words(view, "", "out.ndjson")[2:]]
    line = [w for w in line if w not in ("--also", f"{ALSO.get(view)}=also.ndjson", "--flush")]
    (tmp_path / "grown.ndjson").write_bytes(b"".join(lines))
    plain = [w for w in line if w not in ("--snapshot", "state", "--checkpoint", "0s")]
    assert call(plain, tmp_path, None, ENVIRONMENT).returncode == 0
    whole = left(tmp_path, "out.ndjson")
    for name in whole:
        (tmp_path / name).unlink()
    chance, most = random.Random(view), int(os.environ.get("SHOAL_STREAM_KILLS", "3"))
    ends = sorted(chance.randrange(2000, len(lines)) for _ in range(2 * most))
    (tmp_path / "grown.ndjson").write_bytes(b"".join(lines[: ends[0]]))
    for last, (end, later) in enumerate(zip([*ends[::2], len(lines)], [*ends[1::2], len(lines)], strict=True)):
        run = subprocess.Popen(
            [sys.executable, "-m", "shoal", *line, "--follow"], cwd=tmp_path, stderr=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT},
        )  # fmt: skip
        while run.poll() is None and not (tmp_path / "state").exists():
            time.sleep(0.02)
        for upto in (end, later):
            with (tmp_path / "grown.ndjson").open("ab") as grown:
                grown.write(b"".join(lines[(tmp_path / "grown.ndjson").read_bytes().count(b"\n") : upto]))
            time.sleep(chance.uniform(0.0, 0.5))
        while last == most and run.poll() is None and left(tmp_path, "out.ndjson") != whole:
            time.sleep(0.1)
        run.send_signal(signal.SIGTERM if last == most else signal.SIGKILL)
        said = run.communicate()[1]
    assert run.returncode == 0, said
    assert left(tmp_path, "out.ndjson") == whole
