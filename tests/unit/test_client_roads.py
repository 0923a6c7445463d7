"""What the two roads of the Kafka client rely on, without a broker."""

from __future__ import annotations

import ctypes

import msgspec
import numpy as np
import pytest

pytest.importorskip("confluent_kafka")

from shoal.runtime.kafka.client import inbox
from shoal.runtime.kafka.client.library import Native, native
from shoal.runtime.kafka.regions.blocks import Entries, Entry, Mark, Packed
from shoal.runtime.kafka.regions.merging import State


class Silent:
    """A consumer to which nothing comes."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def consume(self, limit: int, timeout: float) -> list[object]:
        self.waited.append(timeout)
        return []


def test_without_partitions_a_worker_waits_to_hear_of_some(monkeypatch):
    """On the road through the client's Python, too: it asked as often as it could."""
    monkeypatch.setattr(inbox, "native", lambda: None)
    consumer = Silent()
    box = inbox.Inbox(consumer, None)
    assert not box.read(100, 0.0)
    assert not box.hear(100, 0.2)
    assert max(consumer.waited) == 0.2
    consumer.waited.clear()
    assert not box.read(100, 0.2)
    assert not box.hear(100, 0.0)
    assert consumer.waited == [0.2]


@pytest.mark.parametrize("word", ["nothing of ours", "no address"])
def test_a_client_that_begins_with_something_else_is_left_to_its_python(monkeypatch, word):
    assert native() is not None
    other = ctypes.create_string_buffer(4096)  # some memory that is no client
    found = ctypes.addressof(other) // 8 * 8 + 8 if word == "nothing of ours" else 7
    monkeypatch.setattr(Native, "handle_of", lambda self, client: found)
    assert native.__wrapped__() is None


def test_what_waits_in_a_region_is_refused_by_workers_that_cannot_read_it():
    """A former worker that took no notice of it would lose those records without a word."""

    class Former(msgspec.Struct, frozen=True, array_like=True):
        inner: bytes
        waiting: list[Entry]
        marks: list[Mark]
        passed: int
        quiet: int
        refused: list[Entry]

    entries = Entries.of([Entry(0, 5, None, b"{}", 0, 9), Entry(1, 2, b"k", b"[]", 0, 11)])
    packed = msgspec.msgpack.encode(Packed.of_entries("view@1", 3, 0, [], entries))
    now = msgspec.msgpack.encode(State(b"", packed, [], 9, 0, []))
    assert list(msgspec.msgpack.decode(now, type=State).entries()) == list(entries)
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(now, type=Former)
    before = msgspec.msgpack.encode(Former(b"", list(entries), [], 9, 0, []))
    assert list(msgspec.msgpack.decode(before, type=State).entries()) == list(entries)
    assert np.array_equal(msgspec.msgpack.decode(before, type=State).entries().ats, entries.ats)
