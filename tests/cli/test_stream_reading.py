"""What `shoal stream` reads, writes and says at its end."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from shoal.cli import main
from shoal.connect.events import Events
from shoal.connect.pipes import MOST_BYTES, opened
from shoal.connect.sink import Sink
from shoal.connect.sink import _zstd as sink_zstd
from shoal.core.errors import InputError
from tests.cli.in_process import call


def test_the_first_lines_do_not_decide_a_declared_type(tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    rows = [{"zip": 10115} for _ in range(300)] + [{"zip": "D-10115"} for _ in range(100)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    declared = pl.concat(list(Events(str(file), ["zip"], types={"zip": "str"})))
    assert declared["zip"].null_count() == 0


def test_a_compressed_output_is_compressed_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "out.ndjson.gz"
    for append in (False, True):
        sink = Sink(str(file), append=append)
        sink.write(pl.DataFrame({"a": [1]}))
        sink.close()
    assert gzip.decompress(file.read_bytes()) == b'{"a":1}\n{"a":1}\n'


def in_process(words: list[str], folder: Path, stdin: bytes, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command with any bytes on its standard input."""
    return call(words, folder, stdin, environment)


def run(*words: str) -> int:
    try:
        return int(main(list(words)) or 0)
    except SystemExit as stop:
        return int(stop.code or 0)


def test_reasons_are_spelled_out_and_an_absent_column_is_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.ndjson"
    rows = [{"time": t, "subject": f"p{t}", "value": "x" if t < 4 else None} for t in range(6)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("stream", str(file), "--z", "2", "--window", "1h", "-o", "/dev/null") == 0
    said = capfd.readouterr().err
    assert "1 shown by too few people" in said
    assert "2 unreadable" in said
    words = ("--z", "2", "--window", "1h", "--value", "domain", "-o", "/dev/null")
    assert run("stream", str(file), *words) != 0
    said = capfd.readouterr().err
    assert "'domain'" in said
    assert "hint:" in said


EVENTS = [{"time": t, "subject": f"p{t % 9}", "value": "xyz"[t % 3]} for t in range(60)]
NDJSON = "".join(json.dumps(row) + "\n" for row in EVENTS).encode()
CSV = pl.DataFrame(EVENTS).write_csv().encode()


def zstd(data: bytes) -> bytes:
    return sink_zstd(data)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd], ids=["plain", "gzip", "zstd"])
@pytest.mark.parametrize("kind", ["ndjson", "csv"])
@pytest.mark.parametrize("named", [False, True])
def test_standard_input_is_read_whatever_it_is(tmp_path: Path, pack: Any, kind: str, named: bool) -> None:
    (tmp_path / "events.ndjson").write_bytes(NDJSON)
    asked = ["--z", "2", "--window", "1h"]
    plain = in_process(["stream", "events.ndjson", *asked], tmp_path, b"")
    more = ["--format", kind] if named else []
    piped = in_process(["stream", *asked, *more], tmp_path, pack({"ndjson": NDJSON, "csv": CSV}[kind]))
    assert plain.returncode == piped.returncode == 0, piped.stderr
    assert [row["value"] for row in map(json.loads, piped.stdout.splitlines())] == [
        row["value"] for row in map(json.loads, plain.stdout.splitlines())
    ]
    assert piped.stdout.count("\n") > 40


@pytest.mark.parametrize("name", ["out.ndjson.gz", "out.ndjson.zst", "out.csv.zst", "out.tsv"])
def test_what_is_written_compressed_can_be_read_again(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame({"a": ["x", 'say "é"', "tab\there"], "b": ["1", "2", "3"]})
    sink = Sink(str(tmp_path / name))
    sink.write(frame)
    sink.write(frame)
    sink.close()
    again = pl.concat(list(Events(str(tmp_path / name), ["a", "b"], types={"a": "str", "b": "str"})))
    assert again.equals(pl.concat([frame, frame]))


def test_a_small_file_does_not_become_a_large_memory(tmp_path: Path) -> None:
    """Of very much that is packed into little, only a piece at a time is unpacked."""
    (tmp_path / "bomb").write_bytes(gzip.compress(b"\n" * (64 << 20)))
    with opened(str(tmp_path / "bomb")) as stream:
        assert all(len(piece) <= MOST_BYTES for piece in iter(stream.read, b""))


def test_a_pipe_that_broke_off_is_said(tmp_path: Path) -> None:
    done = in_process(["stream", "--z", "2", "--window", "1h"], tmp_path, gzip.compress(NDJSON)[:-20])
    assert done.returncode == 3
    assert "broke off" in done.stderr


def test_nothing_is_a_stream_of_no_events(tmp_path: Path) -> None:
    done = in_process(["stream", "/dev/null", "--z", "2", "--window", "1h"], tmp_path, b"")
    assert done.returncode == 0, done.stderr
    assert not done.stdout


def test_a_growing_file_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    file.write_text('{"a": 1}\n{"a"')
    frames = iter(Events(str(file), ["a"], beat=0.01, follow=True))
    assert next(frames)["a"].to_list() == [1]
    assert next(frames).height == 0  # half a line is no event
    with file.open("a") as more:
        more.write(": 2}\n")
    assert next(frame for frame in frames if frame.height)["a"].to_list() == [2]


@pytest.mark.parametrize("source", ["-", "tcp://localhost:7000", "events.parquet"])
def test_what_cannot_be_followed_is_refused(tmp_path: Path, source: str) -> None:
    pl.DataFrame({"time": [1], "subject": ["a"], "value": ["x"]}).write_parquet(tmp_path / "events.parquet")
    words = ["stream", source, "--z", "2", "--window", "1h", "--follow", "-o", "out.ndjson"]
    ended = in_process(words, tmp_path, b'{"time": 1, "subject": "a", "value": "x"}\n')
    assert ended.returncode == 2
    assert "leave --follow out" in ended.stderr
    assert not (tmp_path / "out.ndjson").exists()


def test_a_socket_is_read_like_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "events.ndjson").write_bytes(NDJSON)
    asked = ["--z", "2", "--window", "1h"]
    plain = in_process(["stream", "events.ndjson", *asked], tmp_path, b"")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def feed() -> None:
            link, _ = server.accept()
            with link:
                for at in range(0, len(NDJSON), 999):  # in pieces that end anywhere
                    link.sendall(NDJSON[at : at + 999])

        feeder = threading.Thread(target=feed)
        feeder.start()
        read = in_process(["stream", f"tcp://127.0.0.1:{port}", *asked], tmp_path, b"")
        feeder.join()
    assert read.returncode == 0, read.stderr
    assert [json.loads(line)["value"] for line in read.stdout.splitlines()] == [
        json.loads(line)["value"] for line in plain.stdout.splitlines()
    ]
    nobody = in_process(["stream", f"tcp://127.0.0.1:{port}", *asked], tmp_path, b"")
    assert nobody.returncode == 3
    assert "does anybody listen" in nobody.stderr
    assert in_process(["stream", "tcp://here", *asked], tmp_path, b"").returncode == 2


ROTATING = """
dataset: visits
columns:
  time: {role: time, unit: s}
  subject: subject
  value: {role: quasi, hierarchy: path}
views:
  market:
    show: [time, subject, value]
    masks: {subject: {use: pseudonym, rotate: 10s}}
    promises: [{use: z-anonymity, z: 2, window: 1h}]
    method: z-anonymity
"""


def test_a_rotating_pseudonym_reads_times_that_came_as_text(tmp_path: Path) -> None:
    """A CSV has no types: the period must be told from the text, or every name would read `*`."""
    (tmp_path / "policy.yaml").write_text(ROTATING)
    asked = ["stream", "--policy", "policy.yaml"]
    told = [
        [row["subject"] for row in map(json.loads, done.stdout.splitlines())]
        for done in (in_process(asked, tmp_path, data, SHOAL_KEY="ab" * 32) for data in (NDJSON, CSV))
    ]
    assert told[0] == told[1]
    assert len(told[0]) > 40
    assert not any(name == "*" for name in told[0])
    assert len(set(told[0])) > 9  # nine people, and more than one period


def test_one_pass_makes_several_views(tmp_path: Path) -> None:
    second = (
        "  town:\n    show: [value]\n    promises: [{use: z-anonymity, z: 4, window: 1h}]\n    method: z-anonymity\n"
    )
    (tmp_path / "policy.yaml").write_text(ROTATING + second)
    (tmp_path / "events.ndjson").write_bytes(NDJSON)
    asked = ["stream", "events.ndjson", "--policy", "policy.yaml"]
    for view in ("market", "town"):
        done = in_process([*asked, "--view", view, "-o", f"{view}.ndjson"], tmp_path, b"", SHOAL_KEY="ab" * 32)
        assert done.returncode == 0, done.stderr
    words = [*asked, "--view", "market", "-o", "one.ndjson", "--also", "town=two.ndjson", "--snapshot", "state"]
    done = in_process(words, tmp_path, b"", SHOAL_KEY="ab" * 32)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "one.ndjson").read_bytes() == (tmp_path / "market.ndjson").read_bytes()
    assert (tmp_path / "two.ndjson").read_bytes() == (tmp_path / "town.ndjson").read_bytes()
    done = in_process(words[:-4] + words[-2:], tmp_path, b"", SHOAL_KEY="ab" * 32)
    assert done.returncode == 2
    assert "other further views" in done.stderr


def _cut_off(file: Path) -> None:
    file.write_text("")


def _written_anew(file: Path) -> None:
    file.write_text('{"a": 7, "more": "than stood there before"}\n' * 9)


def _replaced(file: Path) -> None:
    file.rename(file.with_suffix(".1"))
    file.write_text('{"a": 1}\n{"a": 2}\n')


def _gone(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("change", [_cut_off, _written_anew, _replaced, _gone])
def test_a_file_that_is_another_now_is_not_followed_in_silence(change, tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    file.write_text('{"a": 1}\n{"a": 2}\n')
    frames = iter(Events(str(file), ["a"], beat=0.01, follow=True))
    assert next(frames)["a"].to_list() == [1, 2]
    change(file)
    with pytest.raises(InputError, match="cut off or replaced") as error:
        next(frames)
    assert error.value.where == str(file)
    assert error.value.hint


def test_after_a_cut_every_event_is_answered_once(tmp_path: Path) -> None:
    """The run that finds it leaves a snapshot; the next one reads what stands there now from its first event."""
    file, out = tmp_path / "e.ndjson", tmp_path / "out.ndjson"
    words = ["stream", "e.ndjson", "--z", "1", "--window", "1h", "--snapshot", "state", "-o", "out.ndjson"]

    def events(first: int) -> str:
        return "".join(f'{{"time": {n}, "subject": "u{n}", "value": "x"}}\n' for n in range(first, first + 5))

    file.write_text("")  # nothing by which it could be known again
    more = {"SHOAL_KEY": "ab" * 32, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.Popen(
        [sys.executable, "-m", "shoal", *words, "--follow"], cwd=tmp_path, env={**os.environ, **more},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        with file.open("a") as growing:
            growing.write(events(0))
        until = time.monotonic() + 120
        while not (out.exists() and out.read_text().count("\n") == 5):
            assert run.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        file.write_text(events(5)[:-1])
        _, said = run.communicate(timeout=120)
    finally:
        run.kill()
    assert run.returncode == 3, said
    assert "cut off or replaced" in said
    with file.open("a") as growing:
        growing.write("\n")
    again = call(words, tmp_path, environment={"SHOAL_KEY": "ab" * 32})
    assert again.returncode == 0, again.stderr
    assert pl.read_ndjson(out)["time"].to_list() == list(range(10))


@pytest.mark.parametrize("also", [False, True])
def test_a_format_is_that_of_every_output_whose_name_says_none(also, tmp_path: Path) -> None:
    (tmp_path / "e.ndjson").write_text("".join(f'{{"t": {n}, "who": {n}, "v": "x"}}\n' for n in range(9)))
    view = "{show: [t, v], promises: [{use: z-anonymity, z: 2, window: 1h}], method: z-anonymity}"
    (tmp_path / "p.yaml").write_text(f"columns: {{t: time, who: subject, v: quasi}}\nviews: {{a: {view}, b: {view}}}\n")
    words = ["stream", "e.ndjson", "--policy", "p.yaml", "--view", "a", "-o", "a.dat"]
    words += ["--also", "b=b.dat"] if also else []
    refused = call(words, tmp_path)
    assert refused.returncode == 2
    assert ".ndjson, .jsonl, .csv" in refused.stderr
    assert ".parquet" not in refused.stderr
    done = call([*words, "--output-format", "csv"], tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("a.dat", "b.dat") if also else ("a.dat",):
        assert (tmp_path / name).read_text().startswith("t,v\n")
    against = call([*words[:-1], words[-1].replace(".dat", ".ndjson"), "--output-format", "csv"], tmp_path)
    assert against.returncode == 2
    assert "the name says ndjson" in against.stderr
