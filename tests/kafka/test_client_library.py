"""Records read and written past the client's Python: the same as through it, on a real broker."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import numpy as np
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from stage import WARD, drain

from shoal.connect.kafka import KafkaError
from shoal.core.lines import Lines
from shoal.runtime.kafka.client import inbox, outbox
from shoal.runtime.kafka.client.inbox import Inbox
from shoal.runtime.kafka.client.library import native
from shoal.runtime.kafka.client.outbox import Outbox
from shoal.runtime.kafka.serve import worker as worker_module
from shoal.runtime.kafka.serve.dressed import Dressed, Outgoing
from shoal.runtime.kafka.serve.source_records import LARGEST, Record

pytestmark = pytest.mark.system
ROADS = ["by the library", "by Python"]
MINUTE = 60_000
ODD = [
    (b'{"a": 1}', None), (b"", b""), (None, b"gone"), (b"two\nlines\n", b"k\n"), (None, None), (b"\xff\x00", b"\x00"),
    (b"x" * (LARGEST + 1), b"large"), (b"y" * LARGEST, b"y"),
]  # fmt: skip
NUMBER = itertools.count()


@pytest.fixture(params=ROADS)
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The compiled loops, and the road of whoever cannot use them."""
    assert native() is not None, "this client is not known: its version, or the layout of its objects, has changed"
    if request.param == ROADS[1]:
        for module in (inbox, outbox):
            monkeypatch.setattr(module, "native", lambda: None)
    return str(request.param)


def reading(here, box: Inbox, consumer: Consumer, starts: dict[int, int]) -> Iterator[inbox.Received]:
    """What a consumer is given from these offsets on, piece by piece."""
    box.attach(here.topic, starts)
    consumer.assign([TopicPartition(here.topic, p, at) for p, at in starts.items()])
    end = time.monotonic() + 60
    while time.monotonic() < end:
        yield box.read(100, 0.2)
        yield box.hear(100, 0.0)


def consumer_of(here, **more: object) -> Consumer:
    settings = {"group.id": "client", "enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0}
    return Consumer({**here.cluster.login(), **settings, "auto.offset.reset": "error", **more})


def read_all(here, starts: dict[int, int], **how: bool) -> tuple[list[Record], dict[int, int]]:
    consumer = consumer_of(here)
    box = Inbox(consumer, None, **how)
    out: list[Record] = []
    ends: dict[int, int] = {}
    for some in reading(here, box, consumer, starts):
        assert some.records.follow({r.partition: r.offset + 1 for r in out})
        out += list(some.records)
        ends |= some.ends
        if len(ends) == len(starts):
            break
    box.close()
    consumer.close()
    return out, ends


def test_records_are_those_that_were_sent(stage, road):
    here = stage(WARD, partitions=2)
    here.send([(*ODD[at % len(ODD)], at % 2) for at in range(300)])
    expected = [(m.partition(), m.offset(), m.key(), m.value(), m.timestamp()[1]) for m in here.drain(here.topic)]
    found, ends = read_all(here, {0: 0, 1: 17})
    # what is too large for a view is empty: none can read it
    small = [(p, o, k, b"" if v is not None and len(v) > LARGEST else v, t) for p, o, k, v, t in expected]
    wanted = [Record(*row) for row in small if row[0] == 0 or row[1] >= 17]
    assert sorted(found, key=lambda r: (r.partition, r.offset)) == sorted(wanted, key=lambda r: (r.partition, r.offset))
    assert ends == {0: 150, 1: 150}


def test_keys_that_nobody_asks_for_are_left_behind(stage):
    here = stage(WARD, partitions=1)
    here.send([(b"{}", b"secret")] * 5)
    assert {r.key for r in read_all(here, {0: 0}, keyed=False)[0]} == {None}


def test_an_offset_that_is_not_there_is_an_error(stage, road):
    here = stage(WARD, partitions=1)
    here.send([(b"{}", None)] * 3)
    consumer = consumer_of(here)
    box = Inbox(consumer, None)
    with pytest.raises(KafkaError, match="OFFSET_RESET"):
        list(reading(here, box, consumer, {0: 4711}))
    box.close()
    consumer.close()


def test_a_source_that_is_deleted_ends_the_reading_and_not_the_process(stage):
    """The library tells it to the error callback of the client's Python, which must not be called from our loop."""
    here = stage(WARD, partitions=2)
    here.send([(b"{}", None)] * 30)
    seldom = {"topic.metadata.refresh.interval.ms": 100, "topic.metadata.propagation.max.ms": 500}
    consumer = consumer_of(here, **seldom)
    box = Inbox(consumer, None)
    found, read = reading(here, box, consumer, {0: 0, 1: 0}), 0
    while read < 30:
        read += len(next(found).records)
    here.delete(here.topic)
    with pytest.raises(KafkaError, match="UNKNOWN"):
        list(found)
    box.close()
    consumer.close()


def test_a_partition_that_was_taken_away_is_silent(stage, road):
    """What still lies in the queue is another's now."""
    here = stage(WARD, partitions=2)
    here.send([(b"{}", None, at % 2) for at in range(2000)])
    consumer = consumer_of(here)
    box = Inbox(consumer, None)
    for some in reading(here, box, consumer, {0: 0, 1: 0}):
        if len(some.records):
            break
    consumer.incremental_unassign([TopicPartition(here.topic, 0)])
    left = [box.read(100, 0.1) for _ in range(30)] + [box.hear(100, 0.1)]
    assert {p for some in left for p in some.records.partitions.tolist()} == {1}
    box.attach(here.topic, [0])
    consumer.incremental_assign([TopicPartition(here.topic, 0, 900)])  # and comes back, further on
    again: list[Record] = []
    end = time.monotonic() + 60
    while len(again) < 100 and time.monotonic() < end:
        again += [r for some in (box.read(100, 0.1), box.hear(100, 0.0)) for r in some.records if r.partition == 0]
    assert [r.offset for r in again] == [*range(900, 1000)]
    box.close()
    consumer.close()


def written(here, some: Dressed, settings: dict[str, object]) -> list[tuple[object, ...]]:
    topic = f"{here.topic}.out{next(NUMBER)}"
    here.make(topic)
    producer = Producer({**here.cluster.login(), **settings, "log_level": 0})
    box = Outbox(producer)
    box.give(topic, some)
    box.give(topic, Dressed())
    assert producer.flush(60) == 0
    box.close()
    return [(m.key(), m.value(), m.timestamp()[1]) for m in drain(here.cluster, topic)]


@pytest.mark.parametrize("room", [100_000, 7], ids=["room for all", "a full queue"])
def test_records_arrive_as_they_were_given(stage, road, room):
    here = stage(WARD, partitions=1)
    now = int(time.time() * 1000) // MINUTE * MINUTE
    small = [(v, k) for v, k in ODD if v is None or len(v) < 100]
    each = [Outgoing(0, small[at % len(small)][1], small[at % len(small)][0], now - at * MINUTE) for at in range(60)]
    settings = {"queue.buffering.max.messages": room, "linger.ms": 1}
    assert written(here, Dressed.of(each), settings) == [(r.key, r.value, r.timestamp) for r in each]
    # from the middle of a buffer, in another order, without keys
    values = Lines.of([r.value or b"" for r in each])
    order = np.array([5, 3, 3, 59, 0])
    some = Dressed(values, None, np.full(60, now)).ordered(order)
    assert written(here, some, settings) == [(None, each[at].value or b"", now) for at in order.tolist()]


def test_a_record_that_the_client_refuses_is_an_error(stage, road):
    here = stage(WARD, partitions=1)
    with pytest.raises(KafkaException):
        written(here, Dressed([b"x" * 100_000]), {"message.max.bytes": 1000})


def test_records_that_come_again_end_the_worker(stage, monkeypatch):
    """Whatever the cause: published a second time they would stand there for good."""
    here = stage(WARD, partitions=1)
    here.send([(b'{"number": 1}', None)] * 50)
    real = Inbox.read
    seen: list[inbox.Received] = []

    def again(self: Inbox, limit: int, wait: float) -> inbox.Received:
        found = real(self, limit, wait)
        seen.extend([found] if len(found.records) else [])
        return seen[0] if len(seen) > 0 and not len(found.records) else found

    monkeypatch.setattr(worker_module.Inbox, "read", again)
    with pytest.raises(worker_module.LostError, match="came twice"):
        here.serve(commit_every=60.0)
    monkeypatch.undo()
    here.serve()
    assert len(here.drain(f"{here.topic}.ward")) == 50


def test_records_of_a_partition_that_is_not_ours_end_the_worker(stage, monkeypatch):
    here = stage(WARD, partitions=1)
    here.send([(b'{"number": 1}', None)] * 5)
    real = Inbox.read

    def other(self: Inbox, limit: int, wait: float) -> inbox.Received:
        found = real(self, limit, wait)
        found.records.partitions[:] = 3
        return found

    monkeypatch.setattr(worker_module.Inbox, "read", other)
    with pytest.raises(worker_module.LostError, match="not ours"):
        here.serve()
    monkeypatch.undo()
    here.serve()
    assert len(here.drain(f"{here.topic}.ward")) == 5
