"""Records on Kafka are read by a compiled loop where they are plain, by a decoder else: nobody can tell which.

One odd record sends its batch down the slow road, so what a record is read as must not hang on who stands beside it.
"""

from __future__ import annotations

import json

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from shoal.core.keys import KeyRing
from shoal.core.schema import Column
from shoal.masks.base import text_of
from shoal.policy.load import parse
from shoal.runtime.kafka.formats import flat_records
from shoal.runtime.kafka.formats.flat_records import FlatRecords
from shoal.runtime.kafka.formats.record_frames import RecordFrames
from shoal.runtime.kafka.regions.glance import Glance
from shoal.runtime.kafka.serve import stateful

KEYS = KeyRing({"default": {1: bytes(range(32))}})
POLICY = parse("""
dataset: visits
source: {use: kafka, topic: visits, brokers: nowhere}
columns:
  at: {role: time}
  who: {role: subject}
  age: {role: quasi, type: int}
  site: {role: quasi, hierarchy: path}
  dose: {role: plain, type: float}
  ok: {role: plain, type: bool}
  note: {role: plain}
  ward: {role: sensitive, type: str}
views:
  market:
    show: [at, age, site, dose, ok, note, ward]
    promises: [{use: k-anonymity, k: 2}]
    method: {use: batches, delay: 4}
""")

spellings = st.one_of(
    st.from_regex(r"\A-?(0|[1-9][0-9]{0,16})(\.[0-9]{1,14})?\Z"),
    st.from_regex(r"\A-?[0-9]{1,3}(\.0{1,6}[0-9]{0,2})?([eE][+-]?[0-9])?\Z"),
    st.integers(-(10**19), 10**19).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
texts = st.one_of(st.text("ad.* é0", max_size=5), st.text(max_size=4)).map(json.dumps)
plain_texts = st.text("ad.* é0", max_size=5).map(lambda t: json.dumps(t, ensure_ascii=False))
anything = st.one_of(spellings, texts, plain_texts, st.sampled_from(["null", "true", "false", "[1]", '{"a":1}', "01"]))
names = st.sampled_from(["at", "who", "age", "site", "dose", "ok", "note", "ward", "else"])


def spelled(parts: list[tuple[str, str]], blank: str) -> bytes:
    return ("{" + ",".join(f'{blank}"{name}":{blank}{value}' for name, value in parts) + "}").encode(errors="replace")


right = {
    "at": st.one_of(spellings, plain_texts),
    "who": st.one_of(spellings, plain_texts, st.just("true")),
    "age": st.integers(-(10**17), 10**17).map(str),
    "site": st.one_of(spellings, plain_texts),
    "dose": spellings,
    "ok": st.sampled_from(["true", "false", "null"]),
    "note": st.one_of(spellings, plain_texts, st.sampled_from(["true", "null"])),
    "ward": plain_texts,
    "else": st.one_of(spellings, plain_texts),
}
fitting = st.fixed_dictionaries({}, optional=right).map(lambda made: list(made.items()))
loose = st.lists(st.tuples(names, anything), max_size=5)
rows = st.builds(spelled, st.one_of(fitting, loose), st.sampled_from(["", " ", "\t", "\n"]))
junk = st.sampled_from([b"", b"{}\n", b"{}\n{}", b"no", b'{"age":1}x', b'{"ward":"\xc3"}', b'\xef\xbb\xbf{"age":1}'])
batches = st.lists(st.one_of(rows, rows, rows, junk), min_size=1, max_size=5)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """A batch of any size may take the fast road."""
    monkeypatch.setattr(flat_records, "LEAST", 1)


def frames() -> RecordFrames:
    job = stateful.carrying_job(POLICY, "market", KEYS)
    assert job.view is not None
    return RecordFrames(job.view, KEYS)


def slowly(reader: RecordFrames | Glance) -> RecordFrames | Glance:
    nothing = FlatRecords({})
    reader._flat = nothing if isinstance(reader, RecordFrames) else [nothing]  # type: ignore[assignment]
    return reader


@given(batches)
@settings(max_examples=250)
def test_a_view_reads_the_same_on_both_roads(values):
    fast, slow = frames(), slowly(frames())
    found, refused = fast.read(values)
    expected, also = slow.read(values)
    assert refused == also
    assert_frame_equal(found, expected)
    if found.height:
        assert fast.write(found) == [msgspec.json.encode(record) for record in slow._objects(slow._output, expected)]


@given(batches)
@settings(max_examples=150)
def test_a_record_is_read_alike_whoever_stands_beside_it(values):
    reader = frames()
    alone = [reader.read([value]) for value in values]
    together, refused = reader.read(values)
    assert refused == [at for at, (_, bad) in enumerate(alone) if bad]
    assert_frame_equal(together, pl.concat([frame for frame, _ in alone]))


@example([b'{"at":123456789012345678}'])  # exact as a whole number only
@example([b'{"at":"2024-05-01T10:00:00"}', b'{"at":7}'])
@given(batches)
@settings(max_examples=200)
def test_the_repartition_step_sees_the_same_on_both_roads(values):
    wanted = ["site", "age"]
    fast, slow = Glance(POLICY.schema, wanted), slowly(Glance(POLICY.schema, wanted))
    for _ in range(2):  # the second batch begins with the way that the first one went
        found, times = fast.read(values)
        expected, moments = slow.read(values)
        assert_frame_equal(found, expected)
        assert np.array_equal(times, moments)


@given(spellings)
@settings(max_examples=500)
@example("0.0001")
@example("0.00001")
@example("1000.0")
@example("-0.0")
@example("123456789012345.6")
@example("0.1234567890123456")
def test_numbers_without_a_type_are_spelled_as_they_always_were(number):
    line = b'{"at":%s}' % number.encode()
    try:
        value = msgspec.json.decode(line, type=dict[str, str | int | float | bool | None])["at"]
    except msgspec.MsgspecError:
        value = None
    columns = {"at": Column("time")}
    said, written = FlatRecords(columns).read([line]), FlatRecords(columns, {"at": "written"}).read([line])
    if said is not None:
        assert said.item() == text_of(value)
    if written is not None:
        assert written.item() == msgspec.json.encode(value).decode()
    plain = number.lstrip("-").replace(".", "")
    ordinary = len(plain) <= 15 and plain.isdigit() and number == repr(value) and value != 0
    if ordinary:  # the fast road is taken where it can be
        assert said is not None
        assert written is not None


@example([b"{}\n{}", b""])
@example([b"{}\n"])
@given(batches)
@settings(max_examples=100)
def test_what_is_read_fast_was_plain(values):
    """Every record of such a batch is one that the decoder takes, with as many lines as records."""
    columns = {n: c for n, c in POLICY.schema.columns.items() if n != "else"}
    frame = FlatRecords(columns).read(values)
    if frame is not None:
        assert frame.height == len(values)
        for value in values:
            assert isinstance(msgspec.json.decode(value), dict)
            assert not set(value) & set(b"\\\n")


def test_few_records_dates_and_parts_of_objects_are_left_to_a_decoder(monkeypatch):
    value = [b'{"a":1,"born":"2020-01-01"}']
    assert FlatRecords({"a": Column("plain", type="int")}).read(value) is not None
    for odd in (
        {"born": Column("plain", type="date")},
        {"a.b": Column("plain")},
        {"a": Column("plain", type="date", format="%Y")},
    ):
        assert FlatRecords({**odd, "a": odd.get("a", Column("plain"))}).read(value) is None
    monkeypatch.setattr(flat_records, "LEAST", 2)
    assert FlatRecords({"a": Column("plain", type="int")}).read(value) is None
