"""A stream goes on from a snapshot only under what decides the same; who reads it and how it is reported may change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import InputError, UsageError
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.tree import Tree
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.policy.load import load
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.z_anonymity import ZAnonymity
from shoal.release.definition import definition_of, differing
from shoal.release.job import job_of
from shoal.release.stream import LocalRunner, StreamJob, stream_job
from shoal.release.wishes import Wishes
from shoal.runtime.kafka.provision.served import definition
from shoal.runtime.kafka.serve.output import Disguise, Record
from shoal.runtime.kafka.serve.stateful import MethodRunner
from shoal.streams import STREAM_METHODS
from shoal.streams.z_stream import ZStream
from tests.cli.in_process import call

KEYS = KeyRing({"default": {1: bytes(range(32))}})
TREES = ("a;x;*\nb;x;*\nc;y;*\n", "a;x;*\nb;y;*\nc;y;*\n", "a;x;u;*\nb;x;u;*\nc;y;v;*\n")
POLICY = """
dataset: {title}
source: {{use: kafka, topic: {topic}, brokers: nowhere}}
columns:
  at: {{role: time, unit: s, late: {late}}}
  who: subject
  age: {{role: quasi, type: {type}, hierarchy: {{use: range, min: 0, max: 120{top}}}}}
  site: {{role: quasi, hierarchy: {{use: tree, file: {file}}}}}
  note: {{role: {role}{of}}}
views:
  {{view}}:
    users: [{users}]
    show: [{show}, note]
    masks: {{note: {{use: bucket, width: {width}}}}}
    {method}
"""
K = "promises: [{{use: k-anonymity, k: {k}}}]\n    method: {{use: {use}, delay: {delay}, reuse: never}}"
METHODS = {
    **{use: K.replace("{use}", use) for use in ("batches", "castle", "fads")},
    "z-anonymity": "promises: [{{use: z-anonymity, z: {k}, window: {delay}s}}]\n    method: z-anonymity",
    "curves": "promises: [{{use: kP-anonymity, k: {k}, p: 2}}]\n"
    "    method: {{use: curves, window: {delay}s, every: 10s, missing: zero}}",
}


class Said(NamedTuple):
    """What a policy says that decides what is counted or published."""

    method: str
    late: str = "0s"
    type: str = "int"
    top: str = ""
    tree: int = 0
    of: str = ", type: int"
    width: int = 10
    k: int = 2
    delay: int = 20


class Beside(NamedTuple):
    """What decides nothing of it."""

    title: str = "visits"
    users: str = ""
    topic: str = "visits"
    file: str = "tree.csv"


SAID = {
    "late": st.sampled_from(["0s", "30s"]), "type": st.sampled_from(["int", "float"]),
    "top": st.sampled_from(["", ", top: 60", ", bottom: 18"]), "tree": st.integers(0, 2),
    "of": st.sampled_from([", type: int", ", type: float"]), "width": st.sampled_from([10, 20]),
    "k": st.integers(2, 3), "delay": st.sampled_from([20, 40]),
}  # fmt: skip
BESIDE = st.builds(
    Beside,
    st.sampled_from(["visits", "others"]),
    st.sampled_from(["", "ann", "ann, bob"]),
    st.sampled_from(["visits", "calls"]),
    st.sampled_from(["tree.csv", "again.csv"]),
)


def job(folder: Path, said: Said, beside: Beside) -> StreamJob:
    """The stream that a policy of these words describes."""
    (folder / beside.file).write_text(TREES[said.tree])
    shown = {"show": "age, site", "role": "plain"}
    if said.method == "curves":  # nothing else may stand beside them
        shown = {"show": "at, age", "role": "sensitive"}
    words = {**said._asdict(), **beside._asdict(), **shown}
    text = POLICY.replace("{method}", METHODS[said.method]).format(**words)
    (folder / "policy.yaml").write_text(text.replace("{view}", "m"))
    made = job_of(Wishes({"policy": load(folder / "policy.yaml"), "view": "m", "keys": KEYS}))
    assert isinstance(made, StreamJob)
    return made


def events(count: int) -> pl.DataFrame:
    numbers = range(count)
    return pl.DataFrame(
        {
            "at": [1_600_000_000 + n for n in numbers],
            "who": [f"p{n}" for n in numbers],
            "age": [20 + n % 7 for n in numbers],
            "site": ["abc"[n % 3] for n in numbers],
            "note": [*numbers],
        }
    )


@pytest.mark.parametrize("method", METHODS)
@given(st.fixed_dictionaries(SAID), st.dictionaries(st.sampled_from([*SAID]), st.none()), st.data())
def test_a_stream_goes_on_only_under_what_decides_the_same(tmp_path_factory, method, first, drawn, data):
    before = Said(method, **first)
    then = before._replace(**{name: data.draw(SAID[name]) for name in drawn})
    folder = tmp_path_factory.mktemp("policy")
    runner = LocalRunner(job(folder, before, data.draw(BESIDE)), bytes(32), lambda frame: None)
    runner.feed(events(7))
    snapshot = runner.snapshot()
    wanted = job(folder, then, data.draw(BESIDE))
    if then == before:
        assert LocalRunner(wanted, bytes(32), lambda frame: None, snapshot=snapshot).first == 7
    else:
        with pytest.raises(UsageError, match="something else declared") as found:
            LocalRunner(wanted, bytes(32), lambda frame: None, snapshot=snapshot)
        assert "start anew" in (found.value.hint or "")


PLACES = {
    "late": "columns.at", "type": "columns.age", "top": "columns.age.hierarchy", "tree": "columns.site.hierarchy",
    "of": "columns.note", "width": "masks.note", "k": "promises",
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_the_error_says_what_kind_of_thing_is_another(tmp_path, name):
    before = Said("batches")
    other = {"late": "30s", "type": "float", "top": ", top: 60", "tree": 2, "of": ", type: float", "width": 20, "k": 3}
    snapshot = LocalRunner(job(tmp_path, before, Beside()), bytes(32), print).snapshot()
    wanted = job(tmp_path, before._replace(**{name: other[name]}), Beside())
    with pytest.raises(UsageError) as found:
        LocalRunner(wanted, bytes(32), print, snapshot=snapshot)
    assert found.value.message.endswith(f"declared: {PLACES[name]}")


def test_a_snapshot_that_does_not_say_what_it_was_made_with_is_refused(tmp_path):
    made = job(tmp_path, Said("batches"), Beside())
    method = made.method.start(made.schema, made.promises, key=bytes(32))
    former = (0).to_bytes(8, "little") + method.snapshot()
    for snapshot in (former, b"", b"\x95", msgspec.msgpack.encode(["shoal-stream", 2, 0, {}, b""])):
        with pytest.raises(InputError, match="says what it was made with"):
            LocalRunner(made, bytes(32), print, snapshot=snapshot)


def test_on_a_topic_a_former_snapshot_is_known_by_its_name(tmp_path):
    """Kafka keeps state under the name of a view's definition, so an older program's state still serves."""
    job(tmp_path, Said("batches"), Beside())
    policy = load(tmp_path / "policy.yaml")
    disguise = Disguise(policy.views["m"], "visits", 1, KEYS)
    records = [Record(0, n, None, row.encode(), n) for n, row in enumerate(events(9).write_ndjson().splitlines())]
    whole = MethodRunner(policy, "m", 0, KEYS, disguise, None)
    begun = MethodRunner(policy, "m", 0, KEYS, disguise, None)
    told, first = whole.push(records)[0].values, begun.push(records[:5])[0].values
    inside = msgspec.msgpack.decode(begun.snapshot())
    former = inside[2].to_bytes(8, "little") + inside[4]
    again = MethodRunner(policy, "m", 0, KEYS, disguise, former)
    assert [*first, *again.push(records[5:])[0].values] == told


def test_a_changed_tree_is_refused_before_anything_is_touched(tmp_path):
    job(tmp_path, Said("batches", k=3), Beside())
    frame = events(400)
    frame[:200].write_ndjson(tmp_path / "events.ndjson")
    words = ["stream", "events.ndjson", "--policy", "policy.yaml", "--view", "m", "-o", "out.ndjson", "--snapshot", "s"]
    key = {"SHOAL_KEY": "ab" * 32}
    assert call(words, tmp_path, b"", key).returncode == 0
    with (tmp_path / "out.ndjson").open("a") as out:  # what came after the checkpoint, and would be cut off
        out.write("more\n")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.name != "tree.csv"}
    (tmp_path / "tree.csv").write_text(TREES[2])
    done = call(words, tmp_path, b"", key)
    assert done.returncode == 2
    assert "s: the snapshot was made with something else declared: columns.site.hierarchy" in done.stderr
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.name != "tree.csv"} == before
    (tmp_path / "tree.csv").write_text(TREES[0].replace("\n", os.linesep))  # the same tree again
    frame.write_ndjson(tmp_path / "events.ndjson")
    done = call(words, tmp_path, b"", key)
    assert done.returncode == 0, done.stderr


def test_what_stands_in_a_file_of_words_belongs_to_the_definition_of_a_view(tmp_path):
    """On a topic and in a file: with another list of names, other names leave in clear."""
    text = """
dataset: calls
columns: {who: subject, at: time, site: quasi, note: {role: plain, type: str}}
views:
  m:
    show: [site, note]
    masks: {note: {use: text, file: words.txt}}
    promises: [{use: z-anonymity, z: 2, window: 1h}]
    method: z-anonymity
"""
    (tmp_path / "policy.yaml").write_text(text)
    told = []
    for words in ("Ada\n", "Ada\nBob\n", "Ada\n"):
        (tmp_path / "words.txt").write_text(words)
        policy = load(tmp_path / "policy.yaml")
        told.append((definition(policy, "m"), definition_of(stream_job(policy, "m", KEYS))))
    assert told[0] == told[2]
    assert told[0][0] != told[1][0]
    assert differing(told[0][1], told[1][1]) == ["masks.note"]


HIERARCHIES = [
    Tree(nodes={"x": ["a", "b"], "y": ["c"]}),
    Tree(nodes={"x": ["a"], "y": ["b", "c"]}),
    Tree(nodes={"u": {"x": ["a", "b"]}, "v": {"y": ["c"]}}),
    Prefix(3),
]


@pytest.mark.parametrize("use", ["batches", "castle", "fads", "z-anonymity", "short"])
@given(st.sampled_from(HIERARCHIES), st.sampled_from(HIERARCHIES))
@settings(max_examples=16)
def test_a_method_goes_on_only_with_the_same_hierarchy(use, before, now):
    """Also where nobody but the caller of a method keeps the snapshot."""

    def start(hierarchy, snapshot=None):
        if use == "short":
            return ZStream(ZAnonymity(2, "1h"), hierarchy, key=bytes(32), snapshot=snapshot)
        timed = {"at": Column("time")} if use == "z-anonymity" else {}
        schema = Schema({**timed, "who": Column("subject"), "site": Column("quasi", hierarchy=hierarchy)})
        promises = [ZAnonymity(2, "1h")] if use == "z-anonymity" else [KAnonymity(2)]
        spec = STREAM_METHODS.decode({"use": use, **({} if timed else {"delay": 9})})
        return spec.start(schema, promises, key=bytes(32), snapshot=snapshot)

    snapshot = start(before).snapshot()
    if now == before:
        assert start(now, snapshot).snapshot()
    else:
        with pytest.raises(UsageError, match="other columns or hierarchies"):
            start(now, snapshot)
