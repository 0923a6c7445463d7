"""z-anonymity over frames, its verifier, its snapshots, and the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cli import main
from shoal.core.errors import InputError, UsageError
from shoal.core.hierarchy.path import Path as PathHierarchy
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.rescan import rescan
from shoal.promises.z_anonymity import ZAnonymity
from shoal.release.checkpoints import read
from shoal.release.definition import Saved
from shoal.release.position import Position, snapshot_file
from shoal.release.stream import LocalRunner, StreamJob
from shoal.streams.base import Batch
from shoal.streams.chains import Coder
from shoal.streams.z_anonymity import ZAnon
from shoal.streams.z_stream import z_anonymity

KEY = b"yet another key of thirty-two byt"
SCHEMA = Schema(
    {
        "time": Column("time"),
        "who": Column("subject"),
        "site": Column("quasi", hierarchy=PathHierarchy()),
        "zip": Column("quasi", hierarchy=Prefix(3)),
        "note": Column("plain"),
    }
)


def frame(n: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "time": np.sort(rng.uniform(0, 10_000, n)),
            "who": [f"u{i}" for i in rng.integers(0, 60, n)],
            "site": [f"{i % 3}.{i}" for i in rng.integers(0, 30, n)],
            "zip": [f"{i:03d}" for i in rng.integers(0, 300, n)],
            "note": ["n"] * n,
        }
    )


@pytest.mark.parametrize("withheld", ["drop", "blank"])
def test_several_columns_are_each_decided_and_the_verifier_agrees(withheld: str) -> None:
    data = frame(3000)
    promise = ZAnonymity(8, "20m")
    out: list[pl.DataFrame] = []
    method = msgspec.convert({"use": "z-anonymity", "withheld": withheld}, ZAnon)
    runner = LocalRunner(StreamJob(schema=SCHEMA, promises=[promise], method=method), KEY, out.append)
    runner.run([data[:700], data[700:]])
    released = pl.concat(out)
    assert released.columns == data.columns
    counters = runner.method.counters
    assert counters["released"] + counters["withheld"] == 3000
    assert released.height == (3000 if withheld == "blank" else counters["released"])
    quasi = {"site": PathHierarchy(), "zip": Prefix(3)}
    findings = rescan(data, released, promise, time="time", subject="who", quasi=quasi)
    assert all(f.kept and f.reached >= 8 for f in findings)
    # a forged row with a value nobody else showed is found
    forged = pl.concat([released, data[-1:].with_columns(site=pl.lit("9.9"))])
    assert not rescan(data, forged, promise, time="time", subject="who", quasi=quasi)[0].kept
    stricter = rescan(data, released, ZAnonymity(40, "20m"), time="time", subject="who", quasi=quasi)
    assert not all(f.kept for f in stricter)


def test_every_event_has_one_outcome_and_inputs_stay() -> None:
    data = frame(500, 3)
    copy = data.clone()
    running = ZAnon().start(SCHEMA, [ZAnonymity(5, "10m")], key=KEY)
    out = running.push(Batch(data, (data["time"].to_numpy() * 1e6).astype(np.int64), data["who"], 100))
    assert sorted([*out.events.tolist(), *out.withheld.tolist()]) == list(range(100, 600))
    assert data.equals(copy)
    assert len(running.flush()) == len(running.tick(10**12)) == running.held == 0


def test_promises_it_cannot_keep_are_refused_at_the_start() -> None:
    with pytest.raises(UsageError, match="exactly one"):
        ZAnon().start(SCHEMA, [KAnonymity(3)], key=KEY)
    with pytest.raises(UsageError, match="quasi"):
        ZAnon().start(Schema({"a": Column("plain")}), [ZAnonymity(3, 1)], key=KEY)
    with pytest.raises(UsageError, match="alone"):
        ZAnonymity(3, 1).judge(None)  # type: ignore[arg-type]


def test_snapshots_are_recognised() -> None:
    stream = z_anonymity(2, 10, key=KEY)
    stream.push(1, "a", "x")
    data = stream.snapshot()
    with pytest.raises(InputError, match="cannot be opened with this key"):
        z_anonymity(2, 10, key=b"0" * 32, snapshot=data)
    with pytest.raises(InputError, match="not a state of z-anonymity"):
        z_anonymity(2, 10, key=KEY, snapshot=b"\x00")
    outside = msgspec.msgpack.decode(data)
    old = msgspec.msgpack.encode([*outside[:2], 99, *outside[3:]])
    with pytest.raises(InputError, match="version 3 of the state, found another"):
        z_anonymity(2, 10, key=KEY, snapshot=old)
    changed = z_anonymity(3, 20, key=KEY, snapshot=data)  # another policy, the same window
    assert [changed.push(2, "b", "x"), changed.push(3, "c", "x")] == [None, "x"]


@given(st.lists(st.text("ab.é", max_size=12), max_size=30), st.integers(0, 4), st.booleans())
def test_one_value_is_coded_as_in_a_batch(values: list[str], depth: int, reverse: bool) -> None:
    coder = Coder(PathHierarchy(".", depth, reverse), KEY, "v")
    coded = coder.code(pl.Series(values, dtype=pl.String))
    for at, value in enumerate(values):
        chain, labels = coder.one(value)
        if coded.codes[at] < 0:
            assert not chain
            continue
        assert [p for p in coded.chains[coded.codes[at]].tolist() if p] == chain
        for level, label in enumerate(labels):
            levels = np.full(len(values), -1, np.int8)
            levels[at] = level
            assert coded.text(levels)[at] == label


def lines(path: Path, n: int = 2000) -> list[dict[str, object]]:
    data = frame(n).select("time", "who", "site").rename({"who": "subject", "site": "value"})
    rows = data.to_dicts()
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return rows


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return int(end.value.code or 0)


def test_stream_from_file_to_file_with_bad_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "events.ndjson"
    rows = lines(source)
    text = source.read_text().splitlines()
    bad = [
        "{not json",
        '{"time": -4, "subject": "u1", "value": "0.3"}',
        '{"time": 1, "value": "0.3"}',
        '{"time": "NaN", "subject": "u1", "value": "0.3"}',
        json.dumps({"time": rows[999]["time"], "subject": "u", "value": "x" * 1_000_000}),
    ]
    source.write_text("\n".join([*text[:1000], *bad, *text[1000:]]) + "\n")
    out = tmp_path / "out.ndjson"
    assert (
        run("stream", str(source), "--z", "8", "--window", "20m", "--hierarchy", "path", "-o", str(out), "--json") == 0
    )
    said = capfd.readouterr().err
    figures = json.loads(said[said.index("{") :])
    assert figures["unreadable_lines"] == 2  # what is no JSON, and a time that is none
    assert figures["events"] == len(rows) + 5
    assert figures["bad"] == 5
    released = pl.read_ndjson(out)
    assert released.height == figures["released"] > 0
    assert not set(released["subject"]) & {f"u{i}" for i in range(60)}  # nobody leaves under their own name
    expected = z_anonymity(8, "20m", "path").push_many(
        *(list(c) for c in zip(*[r.values() for r in rows], strict=True))
    )
    assert released["value"].to_list() == expected.values.drop_nulls().to_list()
    assert run("stream", str(source), "--z", "8", "--window", "20m", "-o", str(out), "--strict") == 3
    assert "line 1,001" in capfd.readouterr().err


def test_stream_stops_and_resumes_from_its_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_KEY", "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3JldCE=")
    source, half, rest = tmp_path / "events.ndjson", tmp_path / "a.ndjson", tmp_path / "b.ndjson"
    lines(source)
    text = source.read_text().splitlines(keepends=True)
    half.write_text("".join(text[:900]))
    rest.write_text("".join(text[900:]))
    whole, parts, state = tmp_path / "whole.csv", tmp_path / "parts.csv", tmp_path / "state"
    common = ("--z", "8", "--window", "20m", "--hierarchy", "path")
    assert run("stream", str(source), *common, "-o", str(whole)) == 0
    assert run("stream", str(half), *common, "-o", str(parts), "--snapshot", str(state)) == 0
    assert run("stream", str(rest), *common, "-o", str(parts), "--snapshot", str(state)) == 0
    assert parts.read_text() == whole.read_text()


@pytest.mark.parametrize("kind", ["ndjson", "csv"])
def test_the_same_file_goes_on_where_it_stopped(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHOAL_KEY", "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3JldCE=")
    data = frame(1500).select("time", subject="who", value="site")
    grown, whole, out, state = (tmp_path / name for name in (f"e.{kind}", "whole.csv", "out.csv", "state"))

    def save(rows: pl.DataFrame) -> None:
        (rows.write_csv if kind == "csv" else rows.write_ndjson)(grown)

    save(data)
    common = ("stream", str(grown), "--z", "8", "--window", "20m", "--hierarchy", "path")
    assert run(*common, "-o", str(whole)) == 0
    for rows in (data[:700], data[:700], data):  # the second time nothing is new, the third time the file has grown
        save(rows)
        assert run(*common, "-o", str(out), "--snapshot", str(state)) == 0
    assert out.read_text() == whole.read_text()
    assert "after its event 700" in capfd.readouterr().err
    save(data[::-1])  # another content under the same name
    assert run(*common, "-o", str(out), "--snapshot", str(state), "--json") == 0
    said = capfd.readouterr().err
    assert "not the file" in said
    assert json.loads(said[said.index("{") :])["events"] == 3000


@pytest.mark.slow
def test_sigterm_drains_and_leaves_a_resumable_snapshot(tmp_path: Path) -> None:
    environ = {**os.environ, "SHOAL_KEY": "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3JldCE="}
    state = tmp_path / "state"
    words = [sys.executable, "-c", "from shoal.cli import main; main()", "stream", "--z", "1", "--window", "20m"]
    process = subprocess.Popen(
        [*words, "--snapshot", str(state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"time": 1, "subject": "a", "value": "x"}\n{"time": 2, "subject": "b", "value": "x"}\n')
    process.stdin.flush()
    first = process.stdout.readline()  # it has been decided though the pipe is still open
    assert json.loads(first)["value"] == "x"
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert b"stopped after event 2" in said
    stopped = read(snapshot_file(state, KeyRing.load(environ=environ).derive("default", "stream")))
    assert stopped is not None
    assert stopped.position == Position(read=2)  # of a pipe; nothing is skipped of the next one
    assert msgspec.msgpack.decode(stopped.state, type=Saved).first == 2


def test_plan_for_people_of_several_kinds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.csv").write_text("users,rate\n2000,0.05\n3000,0.05\n")
    (tmp_path / "two.csv").write_text("users,rate,exponent\n2000,0.5,1\n3000,0.01,1.2\n")
    common = ("--attributes", "200", "--z", "60", "--json")
    found = []
    for more in (
        ("--users", "5000"),
        ("--classes", str(tmp_path / "one.csv")),
        ("--classes", str(tmp_path / "two.csv")),
    ):
        assert run("plan", *common, *more) == 0
        found.append(json.loads(capfd.readouterr().out))
    alike, halves, mixed = found
    assert abs(alike["p"] - halves["p"]) < 4 * (alike["standard_error"] + halves["standard_error"])
    assert mixed["p"] != pytest.approx(alike["p"], abs=0.01)
    (tmp_path / "bad.csv").write_text("people\n1\n")
    assert run("plan", "--classes", str(tmp_path / "bad.csv")) == 2


def test_plan(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("plan", "--method", "paper2020", "--json") == 0
    assert json.loads(capfd.readouterr().out)["p"] == pytest.approx(0.86921, abs=1e-6)
    assert run("plan", "--goal", "0.5", "--users", "2000", "--attributes", "50") == 0
    assert "smallest z" in capfd.readouterr().out


def test_ahead_of_nothing_is_nothing() -> None:
    free = z_anonymity(1, 10, key=KEY)
    assert [free.push(t, "a", "x") for t in (5.0, 6.0)] == ["x", "x"]
    strict = z_anonymity(2, 10, key=KEY, ahead="0s")
    # nobody moves the clock alone, not by a microsecond; two people at one time do
    assert [strict.push(t, u, "x") for t, u in ((5, "a"), (6, "b"), (6.1, "c"), (7, "a"), (7, "b"))] == [
        None,
        None,
        None,
        None,
        "x",
    ]
    assert strict.counters["released"] == 1
    default = z_anonymity(2, 10, key=KEY)
    assert [default.push(t, u, "x") for t, u in ((5, "a"), (6, "b"), (6.1, "c"))] == [None, "x", "x"]
    schema = Schema({**SCHEMA.columns, "time": Column("time", ahead="0s")})
    running = ZAnon().start(schema, [ZAnonymity(2, "10m")], key=KEY)
    data = frame(300)
    running.push(Batch(data, (data["time"].to_numpy() * 1e6).astype(np.int64), data["who"], 0))
    assert running.counters["released"] == 0


def test_events_out_of_order_and_at_one_time_are_counted() -> None:
    rows = [(10, "a"), (10, "b"), (12, "c"), (11, "d"), (12, "e"), (12, "f"), (5, "g"), (100, "h")]
    many, one = (z_anonymity(1, 20, key=KEY, late=2) for _ in range(2))
    many.push_many([t for t, _ in rows], [u for _, u in rows], ["x"] * len(rows))
    for time, who in rows:
        one.push(time, who, "x")
    assert many.counters == one.counters
    # b confirms the clock; e and f stand at the time of c
    assert (many.counters["behind"], many.counters["ties"], many.counters["too_late"]) == (1, 2, 1)
    assert many.counters["events"] == 8
