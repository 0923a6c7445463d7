"""One road, values of right and wrong types: what a file or a pipe releases is what a topic gets, byte for byte.

An event with a value that is not of its declared type is withheld as a whole on every road. A value of a column without
a declared type is never lost, whatever came before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.connect.events import CHUNK, Events
from shoal.connect.json_out import json_lines
from shoal.connect.typed_lines import needs_of
from shoal.core.errors import InputError
from shoal.core.keys import KeyRing
from shoal.policy.load import parse
from shoal.release.stream import LocalRunner, stream_job
from shoal.release.stream_needs import needed
from shoal.runtime.kafka.serve.output import Disguise, Record
from shoal.runtime.kafka.serve.stateful import MethodRunner
from tests.cli.in_process import call

KEYS = KeyRing({"default": {1: bytes(range(32))}})
TEXT = """
dataset: visits
source: {use: kafka, topic: visits, brokers: nowhere}
columns:
  at: {role: time, unit: s, type: int}
  who: {role: subject}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  zip: {role: quasi, hierarchy: {use: prefix, length: 5}}
  size: {role: plain, type: float}
  ok: {role: plain, type: bool}
  day: {role: plain, type: date}
  note: {role: plain}
  more: {role: plain}
  gone: {role: plain, type: int}
views:
  z:
    show: [zip, size, ok, day, note, more]
    hidden: drop
    promises: [{use: z-anonymity, z: 2, window: 1h}]
    method: z-anonymity
  batches:
    show: [age, zip, size, ok, day, note, more]
    hidden: drop
    promises: [{use: k-anonymity, k: 2}]
    method: {use: batches, delay: 6, reuse: never}
  castle:
    show: [age, zip, note]
    hidden: drop
    promises: [{use: k-anonymity, k: 2}]
    method: {use: castle, delay: 6, reuse: never}
"""
POLICY = parse(TEXT)
WRONG = st.sampled_from([True, False, 7, -3, 33.5, "33", "abc", "", None, [1], {"a": 1}, 2**63, "é\n\\", 1e300, -0.5])
RIGHT: dict[str, st.SearchStrategy[Any]] = {
    "who": st.sampled_from(["ann", "bob", "D-7", 7, 8]),
    "age": st.integers(0, 120),
    "zip": st.sampled_from([10115, 10117, "10115", "D-101", "é1\\"]),
    "size": st.integers(-9, 9) | st.sampled_from([0.5, -1.25, 1e-7]),
    "ok": st.booleans(),
    "day": st.sampled_from(["2024-02-29", "2020-01-01"]),
    "note": st.sampled_from([1, 2.5, 7.0, True, "x", 'é"\n', None]),
    "more": st.sampled_from([4, 5, "y"]),
    "gone": st.integers(0, 9),
}
ODD = st.dictionaries(st.sampled_from([*RIGHT]), WRONG, max_size=1)
RECORDS = st.lists(st.tuples(st.fixed_dictionaries(RIGHT), ODD, st.booleans()), min_size=1, max_size=40)


def lines_of(drawn: list[Any]) -> list[bytes]:
    """Records, of which some have a value of another type; most have only right ones."""
    rows = [{"at": 1_600_000_000 + n, **right, **(wrong if bad else {})} for n, (right, wrong, bad) in enumerate(drawn)]
    return [json.dumps(row, ensure_ascii=False).encode() for row in rows]


def on_a_topic(role: str, lines: list[bytes]) -> tuple[list[bytes], list[int], int]:
    """What a partition's runner publishes, which records it does not read, and how many more it withholds at once."""
    runner = MethodRunner(POLICY, role, 0, KEYS, Disguise(POLICY.views[role], "visits", 1, KEYS), None)
    out, refused = runner.push([Record(0, n, None, line, 1) for n, line in enumerate(lines)])
    return [value for value in out.values if value is not None], [one.offset for one in refused], runner.withheld


def in_a_file(path: Path, role: str, chunk: int) -> tuple[list[bytes], int, int]:
    """What a stream from a file releases before its end, how many events it withholds, and how many cannot be read."""
    job, out = stream_job(POLICY, role, KEYS), []
    runner = LocalRunner(job, job.lasting_key(), out.append)
    source = Events(str(path), job.columns, types=job.types, needs=needs_of([needed(job)]), chunk=chunk)
    for frame in source:
        runner.feed(frame)
    assert runner.first == len(path.read_bytes().splitlines())
    return [line for part in out for line in bytes(json_lines(part)).splitlines()], runner.withheld, source.bad


@pytest.mark.parametrize("role", ["z", "batches", "castle"])
@given(RECORDS, st.sampled_from([200, 3000, CHUNK]))
@settings(max_examples=30)
def test_a_file_releases_what_a_topic_gets(tmp_path_factory, role, drawn, chunk):
    lines = lines_of(drawn)
    path = tmp_path_factory.mktemp("events") / "events.ndjson"
    path.write_bytes(b"\n".join(lines) + b"\n")
    published, refused, withheld = on_a_topic(role, lines)
    released, missed, bad = in_a_file(path, role, chunk)
    assert bad == len(refused)
    if role != "z":
        # a delay counts events, in a file also those that cannot be read: so let there be none
        assert missed >= len(refused)
        kept = [line for at, line in enumerate(lines) if at not in refused]
        path.write_bytes(b"".join(line + b"\n" for line in kept))
        released, missed, _ = in_a_file(path, role, chunk)
        refused = []
    assert sorted(released) == sorted(published)
    assert missed == withheld + len(refused)


TYPED = {
    "age": ["abc", "33", 33.5, 33.0, True, [1], 2**63], "size": ["1", False, {"a": 1}], "ok": [1, "true", 0.0],
    "day": [20240101, True, ["2024-02-29"]], "at": ["x", True],
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("note", ["x", "é"])
def test_a_value_of_another_type_withholds_its_event_everywhere(tmp_path, name, note):
    """On the fast road and on the slow one, from a file and from a pipe; it is counted, told and found by --strict."""
    right = {"age": 30, "zip": "10115", "size": 1.5, "ok": True, "day": "2024-02-29", "note": note}
    plain = [{"at": 1_600_000_000 + n, "who": f"p{n}", **right} for n in range(60)]
    for at, value in enumerate(TYPED[name]):
        plain[20 + at][name] = value
    wrong = [20 + at for at in range(len(TYPED[name]))]
    data = "".join(json.dumps(row) + "\n" for row in plain)
    (tmp_path / "events.ndjson").write_text(data)
    (tmp_path / "policy.yaml").write_text(TEXT)
    for events, stdin in (("events.ndjson", ""), ("-", data)):
        words = ["stream", events, "--policy", "policy.yaml", "--view", "batches", "-o", "out.ndjson"]
        done = call([*words, "--withheld", "why"], tmp_path, stdin, {"SHOAL_KEY": "ab" * 32})
        assert done.returncode == 0, done.stderr
        told = [json.loads(line) for line in (tmp_path / "why").read_text().splitlines()]
        assert {one["event"] for one in told if one["reason"] == "bad"} == set(wrong)
        released = (tmp_path / "out.ndjson").read_text().splitlines()
        assert len(released) + len(told) == 60
        assert f"{len(wrong)} lines cannot be read, first of them: 21" in done.stderr
        done = call([*words, "--strict"], tmp_path, stdin, {"SHOAL_KEY": "ab" * 32})
        assert done.returncode == 3
        assert "line 21" in done.stderr


@pytest.mark.parametrize("role", ["z", "batches"])
@example(first=300)
@given(st.integers(190, 260))
@settings(max_examples=4)
def test_a_column_without_a_type_becomes_one_of_texts_and_loses_nothing(tmp_path_factory, role, first):
    """However many whole numbers came before: 300 of them, then texts, left a view with missing values."""
    rows = [{"at": 1_600_000_000 + n, "who": n % 40, "age": 30, "zip": 10115, "note": n} for n in range(first)]
    later = {"age": 30, "zip": "D-101", "note": "n"}
    rows += [{"at": 1_600_000_000 + n, "who": f"q{n}", **later} for n in range(first, first + 50)]
    lines = [json.dumps(row).encode() for row in rows]
    path = tmp_path_factory.mktemp("events") / "events.ndjson"
    path.write_bytes(b"\n".join(lines))
    published, _, _ = on_a_topic(role, lines)
    for chunk in (500, 10_000, CHUNK):
        released, _, bad = in_a_file(path, role, chunk)
        assert sorted(released) == sorted(published)
        assert bad == 0
        assert not any(b'"zip":null' in line or b'"note":null' in line for line in released)


def test_what_a_mask_was_made_for_holds(tmp_path):
    """A mask of numbers that nobody declared cannot work on a text: its event is withheld, and the stream goes on."""
    policy = parse(
        TEXT.replace("    hidden: drop\n", "    masks: {note: {use: bucket, width: 10}}\n    hidden: drop\n", 1)
    )
    path = tmp_path / "events.ndjson"
    rows = [{"at": 1_600_000_000 + n, "who": n, "zip": "10115", "note": n if n < 250 else "n"} for n in range(260)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    job, out = stream_job(policy, "z", KEYS), []
    runner = LocalRunner(job, bytes(32), out.append)
    source = Events(str(path), job.columns, types=job.types, needs=needed(job))
    for frame in source:
        runner.feed(frame)
    assert (source.bad, runner.withheld) == (10, 11)
    assert pl.concat(out)["note"].null_count() == 0
    with pytest.raises(InputError, match="line 251"):
        list(Events(str(path), job.columns, types=job.types, needs=needed(job), strict=True))


@pytest.mark.parametrize("use", ["batches", "castle", "fads"])
@pytest.mark.parametrize("kind", ["ndjson", "csv"])
def test_what_cannot_be_read_is_nobody_where_every_row_is_a_person(tmp_path, use, kind):
    """Without a subject, five lines of nonsense were a group of five people whose values are missing."""
    policy = f"""
dataset: visits
columns: {{age: {{role: quasi, type: int, hierarchy: {{use: range, min: 0, max: 120}}}}}}
views: {{r: {{show: [age], promises: [{{use: k-anonymity, k: 5}}], method: {{use: {use}, delay: 20}}}}}}
"""
    (tmp_path / "policy.yaml").write_text(policy)
    rows = {"ndjson": ['{"age": 30}', '{"age": "x"}', "nonsense"], "csv": ["30,1", "x,1", "30.5,1"]}[kind]
    data = "\n".join([*(["age,n"] if kind == "csv" else []), *(rows[0] for _ in range(9)), *rows[1:] * 4]) + "\n"
    (tmp_path / f"events.{kind}").write_text(data)
    words = ["stream", f"events.{kind}", "--policy", "policy.yaml", "-o", "out.ndjson", "--withheld", "why"]
    done = call(words, tmp_path, "", {"SHOAL_KEY": "ab" * 32})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.ndjson").read_text() == '{"age":"30"}\n' * 9
    told = [json.loads(line) for line in (tmp_path / "why").read_text().splitlines()]
    assert sorted(one["event"] for one in told) == [*range(9, 17)]
    assert {one["reason"] for one in told} == {"bad"}
