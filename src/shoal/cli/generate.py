"""``shoal generate``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cyclopts import Parameter

from shoal.cli.options import Flag, only_with
from shoal.cli.terminal import MaybeWhole, Output, Whole, say
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OnKafka:
    """A Kafka topic as the target.

    Parameters
    ----------
    topic
        A Kafka topic instead; records are keyed by the person.
    properties
        With a topic: a file of client properties.
    brokers
        With a topic: where the brokers are, if the properties do not say it.
    """

    topic: str | None = None
    properties: str | None = None
    brokers: str | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Pace:
    """When records are sent.

    Parameters
    ----------
    rate
        How many a second; without it, as fast as they are taken.
    sent
        Add a column of this name with the time of sending in milliseconds: `shoal consume --sent` measures by it.
    clock
        For event streams: the time column is the time of sending instead of the generated one.
    forever
        Until stopped.
    """

    rate: float | None = None
    sent: str | None = None
    clock: Flag = False
    forever: Flag = False


def generate(
    name: str,
    *,
    output: Output = None,
    kafka: OnKafka = OnKafka(),
    rows: MaybeWhole = None,
    pace: Pace = Pace(),
    seed: Whole = 0,
    scale: float | None = None,
    visits: float | None = None,
) -> None:
    """Generate invented data, at a rate if asked, into a file, standard output or a Kafka topic.

    Examples: `shoal generate hospital --rows 200000 -o patients.ndjson`;
    `shoal generate hospital --forever --rate 500 --topic patients --properties admin.properties`.

    Parameters
    ----------
    name
        Which data: hospital, ecommerce, domains, positions.
    output
        A file, NDJSON or CSV by its name; `-` (the default) is standard output.
    rows
        How many; 1000 if not given.
    seed
        The same seed gives the same rows.
    scale
        For event streams: the share of the published number of events that one round has; 0.01 if not given.
    visits
        For hospital: how often a patient comes back, on average; once if not given.
    """
    from shoal.datasets.rounds import rounds, subject_of
    from shoal.runtime.pace import paced

    if kafka.topic is not None and output is not None:
        raise UsageError("a topic or a file, not both", where="--topic")
    only_with(kafka.topic is not None, "--topic", properties=kafka.properties, brokers=kafka.brokers)
    only_with(not pace.forever, "an end: leave out --forever", rows=rows)
    only_with(name == "hospital", "hospital records", visits=visits)
    only_with(name != "hospital", "a stream of events: these records have no time", clock=pace.clock, scale=scale)
    given = {"scale": scale, "visits": visits}
    frames = rounds(name, seed=seed, **{n: v for n, v in given.items() if v is not None})
    count_asked = None if pace.forever else 1000 if rows is None else rows
    slices = _timed(paced(frames, rate=pace.rate, rows=count_asked), pace.sent, pace.clock)
    if kafka.topic is not None:
        count = _to_topic(slices, kafka.topic, kafka.properties, kafka.brokers, subject_of(name))
    else:
        count = _to_file(slices, output or "-")
    say(f"{count:,} {name} records, seed {seed}")


def _timed(slices: Iterator[pl.DataFrame], sent: str | None, clock: bool) -> Iterator[pl.DataFrame]:
    import time

    import polars as pl

    for part in slices:
        if clock:
            part = part.with_columns(time=pl.lit(time.time()))
        if sent is not None:
            part = part.with_columns(pl.lit(time.time_ns() // 1_000_000).alias(sent))
        yield part


def _to_topic(
    slices: Iterator[pl.DataFrame], topic: str, properties: str | None, brokers: str | None, subject: str
) -> int:
    from shoal.cli.clients import client
    from shoal.runtime.kafka.tools.send import TopicWriter, lines

    writer = TopicWriter(client(properties, brokers), topic)

    def send(part: pl.DataFrame) -> None:
        writer.send(lines(part), [str(v).encode() for v in part[subject]])

    try:
        _each(slices, send)
    finally:
        writer.close()
    return writer.sent


def _to_file(slices: Iterator[pl.DataFrame], output: str) -> int:
    from shoal.connect.sink import Sink

    sink = Sink(output)
    try:
        return _each(slices, sink.write)
    finally:
        sink.close()


def _each(slices: Iterator[pl.DataFrame], take: Callable[[pl.DataFrame], None]) -> int:
    """Hand on slices until they end or someone stops us: that is how a generator without end ends."""
    import signal

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    count = 0
    try:
        for part in slices:
            take(part)
            count += part.height
    except KeyboardInterrupt:
        pass
    return count
