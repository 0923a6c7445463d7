"""Records on their way out, by columns: the same as one by one, also where the client's queue is full."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.runtime.kafka.serve.dressed import Dressed, Outgoing

outgoing = st.lists(
    st.builds(
        Outgoing,
        partition=st.integers(0, 3),
        key=st.none() | st.binary(max_size=2),
        value=st.none() | st.binary(max_size=4),
        timestamp=st.integers(0, 2**41),
    ),
    max_size=30,
)


@given(outgoing, outgoing, st.randoms())
def test_columns_are_the_records(first, second, chance):
    both = Dressed.of(first)
    both += second
    assert list(both) == [*first, *second]
    assert len(both) == len(first) + len(second)
    assert both == Dressed.of(first) + Dressed.of(second)
    order = list(range(len(both)))
    chance.shuffle(order)
    assert list(both.ordered(np.array(order, np.int64))) == [[*first, *second][at] for at in order]
    now = 2**40
    assert [r.timestamp for r in both.not_later(now)] == [
        r.timestamp if 0 < r.timestamp <= now else now for r in [*first, *second]
    ]


class Queue:
    """A client that has room for so many records until it is waited for."""

    def __init__(self, room: int) -> None:
        self.room, self.taken, self.waits = room, [], 0

    def produce(self, topic, value, key, partition, callback=None, on_delivery=None, timestamp=0):
        if len(self.taken) >= self.room:
            raise BufferError
        self.taken.append(Outgoing(partition, key, value, timestamp))

    def wait(self, topic, value, key, partition, timestamp):
        self.room += 3
        self.waits += 1
        self.produce(topic, value, key, partition, timestamp=timestamp)


@given(outgoing, st.integers(0, 40))
def test_a_full_queue_loses_nothing_and_repeats_nothing(records, room):
    queue = Queue(room)
    Dressed.of(records).hand_over("view", queue.produce, queue.wait)
    assert queue.taken == records
    assert (queue.waits > 0) == (len(records) > room)
