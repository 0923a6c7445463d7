"""Filling a new view, or a new version of one, from the log: up to where the workers stand, who go on from there."""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from shoal.connect.kafka import TIMEOUT, Source, committed, ends_of, internal, library, told
from shoal.core.errors import PolicyError, UsageError
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy, View
from shoal.runtime.kafka.formats.codec import Codec
from shoal.runtime.kafka.provision.control import send, wait_for_rest
from shoal.runtime.kafka.provision.served import Fill, Served
from shoal.runtime.kafka.regions.wish import regions_of
from shoal.runtime.kafka.serve.binding import SOURCE
from shoal.runtime.kafka.serve.membership import Membership, group_of
from shoal.runtime.kafka.serve.transactions import LostError
from shoal.runtime.kafka.serve.worker import Worker
from shoal.runtime.kafka.state.changelog import Changelog, Reader

NEAR = 5_000  # records that may be left for the moment when the workers stand still
STARTS, REST = 5, 1.0  # workers that may be lost one after another while they fill, and seconds between two
PASSES = 5  # a source that grows as fast as it is read again is not followed forever


class Log:
    """Offsets of the source: its ends, the first record of a time, and where a group stands."""

    def __init__(self, properties: Mapping[str, Any], topic: str, partitions: int, group: str) -> None:
        self._kafka, self._properties = library(), properties
        self._topic, self._partitions, self._changelog = topic, list(range(partitions)), internal(topic, "changelog")
        self._consumer = self._kafka.Consumer(
            {**properties, "group.id": group, "enable.auto.commit": False, "log_level": 0}
        )

    @classmethod
    def of(cls, source: Source) -> Log:
        """The log of a source, with the group of its workers."""
        return cls.on(source, source.topic)

    @classmethod
    def on(cls, source: Source, topic: str, group: str | None = None) -> Log:
        """The log of a topic that belongs to a source."""
        made = cls(source.properties, topic, 0, group or source.group)
        listed = made._asked(lambda: made._consumer.list_topics(topic, timeout=TIMEOUT)).topics[topic]
        if listed.error is not None:
            raise told(listed.error, f"asking for {topic}")
        made._partitions = list(listed.partitions)
        return made

    def close(self) -> None:
        """Leave."""
        self._consumer.close()

    def ends(self) -> dict[int, int]:
        """The offset after the last record of each partition."""
        return {p: end for p, (_, end) in self._watermarks().items()}

    def settled(self, seconds: float = 2 * TIMEOUT) -> dict[int, int]:
        """:meth:`ends`, once no transaction is open: one is marked on its partitions a moment after it has happened."""
        places = [self._kafka.TopicPartition(self._topic, p) for p in self._partitions]
        end = time.monotonic() + seconds
        while True:
            ends = self.ends()
            written = {p.partition: self._consumer.get_watermark_offsets(p, timeout=TIMEOUT)[1] for p in places}
            if ends == written or time.monotonic() > end:
                return ends
            time.sleep(0.1)

    def since(self, milliseconds: int) -> dict[int, int]:
        """The first record of each partition that is not older."""
        wanted = [self._kafka.TopicPartition(self._topic, p, milliseconds) for p in self._partitions]
        found = self._asked(lambda: self._consumer.offsets_for_times(wanted, timeout=TIMEOUT))
        ends = self.ends()
        return {place.partition: place.offset if place.offset >= 0 else ends[place.partition] for place in found}

    def unread(self) -> dict[int, int]:
        """How many offsets the group has before it, by partition."""
        reached = self.committed()
        return {p: end - reached.get(p, low) for p, (low, end) in self._watermarks().items()}

    def committed(self) -> dict[int, int]:
        """Where the group stands in each partition it has ever read."""
        wanted = [self._kafka.TopicPartition(self._topic, p) for p in self._partitions]
        found = committed(self._consumer, wanted, "asking where the workers stand")
        return {place.partition: place.offset for place in found if place.offset >= 0}

    def gone(self, reached: Mapping[int, int]) -> list[int]:
        """Partitions that views were published from, and of which the group does not say how far."""
        lacking = [p for p in self._partitions if p not in reached]
        with Reader(self._properties, self._changelog) as reader:
            written = reader.ends([p for p in reader.partitions() if p in lacking])
        return [p for p, (_, high) in written.items() if high]

    def standing(self, keys: KeyRing | None, source: str) -> dict[int, int]:
        """Where the workers stand: by their group, or by the changelog where its offset is gone (expired, deleted).

        The changelog is sealed with ``keys``; ``source`` is the id of the topic.
        """
        reached = self.committed()
        gone = self.gone(reached)
        if not gone:
            return reached
        if keys is None:
            raise UsageError(
                f"the group's offset of partition {gone[0]} is gone: where views stand says the changelog, which needs "
                "the keys",
                where="serve apply",
            )
        found = Changelog(self._properties, self._changelog, keys).read(dict.fromkeys(gone, ""), [SOURCE])
        known = {p: said[SOURCE].position for p, said in found.items()}
        return reached | {p: at.next for p, at in known.items() if at is not None and at.source == source}

    def _watermarks(self) -> dict[int, tuple[int, int]]:
        return ends_of(self._consumer, self._topic, self._partitions)

    def _asked(self, question: Callable[[], Any]) -> Any:
        end = time.monotonic() + TIMEOUT
        while True:
            try:
                return question()
            except self._kafka.KafkaException as error:
                cause = error.args[0]
                if time.monotonic() > end or not (cause.retriable() or "COORDINATOR" in cause.name()):
                    raise told(cause, "asking for offsets") from None
                time.sleep(0.3)  # a group's coordinator is found, and loads, on asking


def start_of(view: View) -> str | int:
    """Where a view begins: ``earliest``, ``latest``, or a moment in milliseconds."""
    said, where = view.service.get("start", "earliest"), f"views.{view.name}.service.start"
    if said in ("earliest", "latest"):
        return str(said)
    try:
        moment = said if isinstance(said, datetime.datetime) else datetime.datetime.fromisoformat(str(said))
    except ValueError:
        raise PolicyError(
            "expected earliest, latest or a time", where=where, hint="for example 2026-03-01T00:00:00+00:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp() * 1000)


def started(view: View, served: Served, log: Log) -> Served:
    """The view with the offsets at which it begins, as the log stands now."""
    start = start_of(view)
    if start == "earliest":
        return served
    starts = log.ends() if start == "latest" else log.since(int(start))
    return msgspec.structs.replace(served, starts=starts)


def backfill_group(topic: str, name: str | None = None) -> str:
    """A group of its own for one apply; the beginning of all their names, if ``name`` is empty.

    >>> backfill_group("patients", "")
    'shoal-patients-backfill-'
    """
    return f"shoal-{topic}-backfill-{uuid.uuid4().hex[:12] if name is None else name}"


def fill_beside(fill: Callable[[], int], *, near: int = NEAR, most: int = PASSES) -> int:
    """Fill while the workers are at work, again and again until little is left to do once they stand still.

    >>> left = iter([90_000, 20_000, 300])
    >>> fill_beside(lambda: next(left)), list(left)
    (3, [])
    """
    for times in range(1, most + 1):
        if fill() <= near:
            return times
    return most


def backfill(
    policy: Policy,
    keys: KeyRing,
    served: Mapping[str, Served],
    log: Log,
    *,
    source: str,
    group: str,
    codec: Codec | None = None,
    commit_every: float = 0.5,
) -> int:
    """Fill these views from the log, up to where the workers stand now. Answers how many records.

    The workers may be at work: then another call, in the same ``group``, goes on from there. Only after one that found
    them at rest the views stand where they do.
    """
    upto = log.standing(keys, source)
    parted = {role: one for role, one in served.items() if regions_of(policy.views[role])}
    topic = internal(str(policy.source["topic"]), "regions")
    regions = Log.on(Source(policy.source, policy.path), topic) if parted else None
    begins = regions.ends() if regions is not None else {}
    make = partial(Worker, policy, keys, codec=codec, commit_every=commit_every)
    read = _filled(partial(make, fill=Fill(served, group, upto)))
    if regions is not None:  # what the first stage has written is read by the second, in a group of its own, too
        begun = {role: msgspec.structs.replace(one, starts=begins) for role, one in parted.items()}
        second = Fill(begun, group_of(group, of_regions=True), regions.settled())
        _filled(partial(make, fill=second, membership=Membership(of_regions=True)))
        regions.close()
    return read


def _filled(make: Callable[[], Worker]) -> int:
    """Let a worker fill its views. One that lost its group or its broker is followed by another, which goes on where
    the last commit was; answers how many records they read."""
    read = 0
    for left in reversed(range(STARTS)):
        worker = make()
        try:
            read += worker.run().read
        except LostError:
            if not left:
                raise
            read += worker.counters.read
            time.sleep(REST)
        else:
            worker.wait_until_shown()
            break
    return read


class Rest:
    """All workers of a source stand still inside; afterwards they read their policy anew and go on.

    ``was_paused``: they had stood still before, by an order of someone else, and are left so.
    """

    def __init__(self, properties: Mapping[str, Any], topic: str, group: str, *, was_paused: bool) -> None:
        self._properties, self._topic, self._group = properties, topic, group
        self._was_paused = was_paused

    def __enter__(self) -> None:
        send(self._properties, self._topic, "pause")
        try:
            wait_for_rest(self._properties, self._group)
        except BaseException:
            self.release()
            raise

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let the workers go on."""
        send(self._properties, self._topic, "reload")
        if not self._was_paused:
            send(self._properties, self._topic, "resume")
