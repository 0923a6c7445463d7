"""Where a worker begins to read the partitions it is given, and what it says of those it cannot serve as asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.connect.kafka import ends_of, library
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.journal import Trouble


def with_room(
    consumer: Any, topic: str, partitions: list[Any], room: int, counters: Counters, say: Callable[[str], None]
) -> list[Any]:
    """The partitions that can be served. The source may have grown: what has no place for its state waits."""
    new = sorted(place.partition for place in partitions if place.partition >= room)
    if new:
        ends = ends_of(consumer, topic, new)
        counters.lag |= {p: end - low for p, (low, end) in ends.items()}
        waits = f"{sum(end - low for low, end in ends.values()):,} records wait there"
        more = f"the source has {len(new)} partitions more than were applied"
        say(Trouble(f"{more}: {waits}; `shoal serve apply`"))
    return [place for place in partitions if place.partition < room]


def begin(
    partition: int,
    ends: tuple[int, int],
    at: int | None,
    start: int,
    counters: Counters,
    say: Callable[[str], None],
) -> int:
    """The offset to read from: where the group stands (``at``), or where the first view starts.

    Says so if the source has forgotten records that nobody read.

    >>> counters = Counters()
    >>> begin(0, (10, 50), 7, 0, counters, lambda text: None), counters.lost
    (10, 3)
    """
    low, high = ends
    # retention may have deleted what the group was about to read
    first = max(low, start if at is None else at)
    if at is not None and low > at:
        counters.lost += low - at
        gone = f"partition {partition}: the source has forgotten {low - at:,} records unread"
        say(Trouble(f"{gone} (retention); no view will have them"))
    counters.lag[partition] = max(0, high - first)
    return int(first)


def unread(consumer: Any, topic: str, partition: int, at: int) -> int | None:
    """How many offsets the end has before a position, as the client saw it last; asks nobody."""
    _, end = consumer.get_watermark_offsets(library().TopicPartition(topic, partition), cached=True)
    return max(0, end - at) if end >= 0 else None
