"""The writing end: everything between two commits in one transaction, offsets among it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from shoal.connect.kafka import TIMEOUT, KafkaError, committed, library, missing, produce, told, topics_of
from shoal.runtime.kafka.client.outbox import Outbox
from shoal.runtime.kafka.serve.dressed import Dressed
from shoal.runtime.kafka.state.changelog import owner_of

LINGER = 1000  # milliseconds
OPEN = 20.0  # seconds a transaction may stay open: then its coordinator aborts it


class LostError(KafkaError):
    """The partitions or the transaction are lost: stop, and start again with clean state."""


def lost(error: Any, what: str) -> LostError:
    """A client's error as a loss."""
    known = told(error, f"{what} failed")
    made = LostError(known.message, where=known.where, hint=known.hint)
    made.name = known.name
    return made


class Transactions:
    """A transactional producer. Starting one aborts what a former one of the same name left open."""

    def __init__(self, properties: Mapping[str, Any], topic: str, name: str) -> None:
        self._kafka = library()
        self._properties, self._topic, self.name = properties, topic, name
        self._failed: list[Any] = []
        self._producer: Any = self._kafka.Producer(
            {
                **properties,
                "transactional.id": name,
                # readers of committed records wait behind an open transaction: a killed worker may hold them up so long
                # at most
                "transaction.timeout.ms": int(OPEN * 1000),
                # a commit sends all at once, whatever this says; while records linger for milliseconds only, the client
                # asks again and again whether it is time, which costs as much as sending them
                "linger.ms": LINGER,
                # a commit of regions brings more than its default, and waits in steps for room
                "queue.buffering.max.messages": 1_000_000,
                "error_cb": self._failed.append,
            }
        )
        self._outbox = Outbox(self._producer)
        # a login that is refused is told at once by a question, and only at the end of its time by what follows
        topics_of(self._producer, self._failed, "starting transactions")
        try:
            self._producer.init_transactions(TIMEOUT)
        except self._kafka.KafkaException as error:
            raise told(error.args[0], "starting transactions") from None

    def close(self) -> None:
        """End the client. What is not committed is gone: the broker aborts it."""
        self._outbox.close()
        self._producer = None

    def partitions(self, topics: list[str]) -> Mapping[str, int]:
        """The partitions of topics that must exist."""
        listed = topics_of(self._producer, self._failed, "asking for topics")
        for name in topics:
            error = listed[name].error if name in listed else None
            if name not in listed or (error is not None and error.name() == "UNKNOWN_TOPIC_OR_PART"):
                raise missing(name)
            if error is not None:  # it is there, and cannot be used at the moment: a broker's disk is full, for example
                raise told(error, f"asking for {name}")
        return {name: len(listed[name].partitions) for name in topics}

    @contextmanager
    def transaction(self, consumer: Any, positions: Mapping[int, int], notes: Mapping[int, str]) -> Iterator[None]:
        """What is written inside commits with these offsets and what is noted beside them, or not at all."""
        place = self._kafka.TopicPartition
        try:
            self._producer.begin_transaction()
            yield
            # offsets last: if they were committed without the records before them, those would never be read again
            offsets = [place(self._topic, p, at, notes.get(p, "")) for p, at in positions.items()]
            members = consumer.consumer_group_metadata()
            _bounded(self._producer.send_offsets_to_transaction, offsets, members, TIMEOUT)
            _bounded(self._producer.commit_transaction, TIMEOUT)
        except self._kafka.KafkaException as error:
            self._abort()
            raise lost(error.args[0], "the commit") from None
        # also when stopped by hand: an open transaction would block the readers until it times out
        except BaseException:
            self._abort()
            raise

    def write(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int, timestamp: int = 0, **more: Any
    ) -> None:
        """One record into the open transaction; a slow broker is waited for."""
        produce(self._producer, topic, value, key, partition, timestamp=timestamp, **more)

    def write_all(self, topic: str, records: Dressed) -> None:
        """:meth:`write` for many."""
        self._outbox.give(topic, records)

    def keep(self, topic: str, groups: Sequence[tuple[int, list[tuple[bytes, bytes]]]]) -> list[int]:
        """Records that belong together, of a partition each; answers the offsets of the first ones.

        Once the broker has them all: to wait for each group by itself would take as often as long.
        """
        placed: list[list[int]] = [[] for _ in groups]

        def arrived(mine: list[int], error: Any, message: Any) -> None:
            if error is None:
                mine.append(message.offset())

        for (partition, records), mine in zip(groups, placed, strict=True):
            for key, value in records:
                self.write(topic, value, key, partition, on_delivery=partial(arrived, mine))
        # half a snapshot would be taken for a whole one at the next start
        if groups and (
            self._producer.flush(TIMEOUT) or any(len(m) != len(r) for m, (_, r) in zip(placed, groups, strict=True))
        ):
            raise LostError("the state could not be written", where="kafka")
        return [min(mine) for mine in placed]

    def end_others(self, group: str, partitions: list[Any], say: Callable[[str], None]) -> None:
        """A transaction about our partitions stays open: who wrote their last commit is dead or has lost them."""
        settings = {"group.id": group, "enable.auto.commit": False, "log_level": 0}
        reader = self._kafka.Consumer({**self._properties, **settings, "isolation.level": "read_uncommitted"})
        try:
            said = committed(reader, partitions, "asking who was here before")
        finally:
            reader.close()
        owners = {owner for place in said if (owner := owner_of(place.metadata or "")) not in (None, self.name)}
        say(f"ending the open transactions of {len(owners)} former owners")
        for owner in sorted(owner for owner in owners if owner):  # to begin under a name ends what it left open
            Transactions({**self._properties, "log_level": 0}, self._topic, owner)

    def _abort(self) -> None:
        try:
            _bounded(self._producer.abort_transaction, TIMEOUT)
        except (self._kafka.KafkaException, LostError):
            return  # fenced or unreachable: the broker aborts it by itself


def _bounded(call: Callable[..., None], *words: Any) -> None:
    """A call of the client that may never come back: it forgets its time-out where a group's coordinator was lost.

    (librdkafka, issues 5456 and 5511.) Whoever waited as long as a transaction may be open has lost it anyway, and
    begins anew. The call ends some time later, or with the process, and publishes nothing: what it was for is aborted.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call(*words)
        except BaseException as error:
            raised.append(error)

    waiting = threading.Thread(target=run, daemon=True)
    waiting.start()
    waiting.join(OPEN)
    if waiting.is_alive():
        raise LostError(f"the client does not answer after {OPEN:.0f} s", where="kafka")
    if raised:
        raise raised[0]
