"""Records of the source as columns, values in one buffer, blocks of them: each beside its slow twin of objects."""

from __future__ import annotations

import hashlib
import struct

import msgspec
import numpy as np
import polars as pl
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import lines as lines_module
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.lines import Lines
from shoal.core.time import SOME, micros, scale
from shoal.policy.document import View
from shoal.runtime.kafka.regions.blocks import Block, Entries, Entry, Mark, Packed, SealedError, block_of
from shoal.runtime.kafka.regions.glance import Pace, near
from shoal.runtime.kafka.serve.output import BLOCK, Disguise, coarse_times
from shoal.runtime.kafka.serve.source_records import Record, Records

KEYS = KeyRing({"default": {1: bytes(range(32))}})
values = st.one_of(st.binary(max_size=6), st.sampled_from([b"", b"\n", b"a\n\nb", b"ab"]))
numbers = st.integers(0, 2**40)
keys = st.one_of(st.none(), st.binary(max_size=3))
records = st.lists(st.builds(Record, st.integers(0, 3), numbers, keys, st.one_of(st.none(), values), numbers))
entries = st.lists(st.builds(Entry, st.integers(0, 3), numbers, keys, values, numbers, st.integers(-1, 9)))


@pytest.fixture(autouse=True, params=[0, 1000], ids=["compiled", "one by one"])
def few(request, monkeypatch):
    """Few values are copied one by one, many by a compiled loop."""
    monkeypatch.setattr(lines_module, "FEW", request.param)


class Message:
    """A message of the client, as far as records read it."""

    def __init__(self, partition: int, offset: int, key: bytes | None, timestamp: int) -> None:
        self._said = partition, offset, key, timestamp

    def partition(self) -> int:
        return self._said[0]

    def offset(self) -> int:
        return self._said[1]

    def key(self) -> bytes | None:
        return self._said[2]

    def timestamp(self) -> tuple[int, int]:
        return 1, self._said[3]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 1, 1, 2, 7]), keys, numbers)))
def test_messages_are_read_as_they_say_whatever_gaps_a_partition_has(steps):
    stands = {0: 10, 1: 500, 2: 0}
    messages = []
    for partition, step, key, timestamp in steps:
        stands[partition] += step
        messages.append(Message(partition, stands[partition], key, timestamp))
    made = Records.read(messages, [b"{}"] * len(messages))
    told = [Record(m.partition(), m.offset(), m.key(), b"{}", m.timestamp()[1]) for m in messages]
    assert list(made) == told
    untimed, first = Records.read(messages, [b"{}"] * len(messages), timed=False), None
    for at, record in enumerate(told):
        first = record if first is None or first.partition != record.partition else first
        assert untimed[at] == msgspec.structs.replace(record, timestamp=first.timestamp)


@given(records, st.data())
def test_columns_are_the_records_they_were_made_of(some, data):
    made = Records.of(some)
    assert list(made) == some
    assert [made[at] for at in range(len(some))] == some
    assert list(made.full()) == [r for r in some if r.value is not None]
    assert list(made[1:3]) == some[1:3]
    assert made.reached() == {r.partition: r.offset + 1 for r in some}
    at = data.draw(st.lists(st.integers(0, len(some) - 1))) if some else []
    assert list(made.take(np.array(at, np.int64))) == [some[a] for a in at]
    parts = {p: [r for r in some if r.partition == p] for p in dict.fromkeys(r.partition for r in some)}
    assert [(p, list(part)) for p, part in made.by_partition()] == list(parts.items())
    assert coarse_times(made).tolist() == [r.timestamp // 60_000 * 60_000 for r in some]


@given(st.lists(st.one_of(st.none(), values)), st.data())
def test_values_in_a_buffer_are_those_values(some, data):
    made = Lines.of(some)
    at = data.draw(st.lists(st.integers(0, len(some) - 1))) if some else []
    taken, expected = made.take(np.array(at, np.int64)), [some[a] for a in at]
    for found, wanted in ((made, some), (taken, expected), (taken.packed(), expected), (made[1:], some[1:])):
        assert list(found) == wanted
        assert [found[place] for place in range(len(wanted))] == wanted
        assert found == wanted
        assert found.longest == max((len(v) for v in wanted if v is not None), default=0)
        assert found.full.tolist() == [v is not None for v in wanted]
    assert taken.packed().data.tobytes() == b"".join(v + b"\n" for v in expected if v is not None)
    assert list(Lines.joined([made, taken, made])) == [*some, *expected, *some]


@given(st.lists(entries, max_size=4), st.data())
def test_blocks_carry_their_records_in_either_form(parts, data):
    whole = [entry for part in parts for entry in part]
    made = Entries.joined([Entries.of(part) for part in parts])
    assert list(made) == whole
    at = data.draw(st.lists(st.integers(0, len(whole) - 1))) if whole else []
    assert list(made.take(np.array(at, np.int64)).packed()) == [whole[a] for a in at]
    marks = [Mark(0, 7, 5, False, 3)]
    packed = msgspec.msgpack.encode(Packed.of_entries("v", 2, 4, marks, made))
    former = msgspec.msgpack.encode(Block("v", 2, 4, marks, whole))
    for value in (packed, former):
        found = block_of(value)
        assert (found.view, found.region, found.of, found.marks, list(found.entries)) == ("v", 2, 4, marks, whole)


@pytest.mark.parametrize("lengths", [[1], [1, 1, 1], [2, 0], [-1, 3], [0, 2]])
def test_a_block_whose_lengths_do_not_fit_is_none(lengths):
    made = Packed("v", 0, 1, [], np.array([[0] * len(lengths)] * 4 + [lengths], "<i8").tobytes(), None, b"a\nb\n")
    with pytest.raises(SealedError):
        block_of(msgspec.msgpack.encode(made))


def test_a_block_whose_numbers_are_cut_off_is_none():
    with pytest.raises(SealedError):
        block_of(msgspec.msgpack.encode(Packed("v", 0, 1, [], b"\0" * 41, None, b"a\n")))


@given(st.lists(st.tuples(st.integers(0, 70_000), st.integers(0, 2**39)), max_size=40), st.integers(2, 9))
@settings(max_examples=60)
def test_partitions_are_drawn_by_a_key_from_where_records_stood(places, count):
    disguise = Disguise(View("ward", show=()), "patients", count, KEYS)
    secret = KEYS.derive(DEFAULT, "view records", role="ward", domain="patients")
    key = hashlib.blake2b(b"", digest_size=32, key=secret, person=b"places".ljust(16, b"\0")).digest()

    def slow(partition: int, offset: int) -> int:
        """One cell of AES by itself holds four neighbours."""
        block, at = divmod(offset, BLOCK)
        cell = struct.pack(">IQI", partition, block, at // 4)
        drawn = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(cell)
        return int.from_bytes(drawn[4 * (at % 4) :][:4], "big") % count

    columns = [np.array(column, np.int64) for column in zip(*places, strict=True)] or [np.zeros(0, np.int64)] * 2
    for _ in range(2):  # drawn, and remembered
        assert disguise.partitions_at(*columns).tolist() == [slow(*place) for place in places]
    assert [disguise.partition_at(*place) for place in places[:3]] == [slow(*place) for place in places[:3]]


times = st.one_of(st.integers(-1, 40), st.integers(1000, 1040), st.just(-1))


@given(st.lists(times, min_size=1, max_size=20), st.integers(1, 20))
def test_a_partition_moves_alike_at_once_and_record_by_record(moments, cut):
    column = np.array(moments, np.int64)
    sure = near(column, 10)
    one, many = Pace(10), Pace(10)
    slow = [one._one(time, agreed) for time, agreed in zip(column.tolist(), sure.tolist(), strict=True)]
    found = [many.of(column[:cut], sure[:cut]), many.of(column[cut:], sure[cut:])]
    assert np.concatenate(found).tolist() == slow
    assert (many.now, many._far) == (one.now, one._far)


spelled = st.one_of(
    st.from_regex(r"\A[0-9]{1,17}(\.[0-9]{1,9})?\Z"),
    st.floats(0, 1e12).map(repr),
    st.sampled_from(["", ".5", "5.", "1e3", "-1", "+1", " 7", "7 ", "2024-05-01", "2020-09-13T12:26:40.5Z", "9" * 19]),
)


@given(st.lists(st.one_of(st.none(), spelled), min_size=1, max_size=5), st.sampled_from(["s", "ms", "us", "ns"]))
@settings(max_examples=200)
def test_many_times_as_texts_are_read_as_one_by_one(texts, unit):
    many = pl.Series(texts * SOME, dtype=pl.String)
    assert micros(many, unit).tolist() == [scale(unit)(text) for text in texts] * SOME
