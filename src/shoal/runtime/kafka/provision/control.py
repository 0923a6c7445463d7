"""Orders to all workers of a source: pause, resume, reload. They stand on a topic only the service may write.

The topic is compacted and its newest records are the whole truth, so that a worker that starts later obeys, too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from shoal.connect.kafka import READ_NOW, TIMEOUT, KafkaError, internal, kind_of, library, missing, told, topics_of
from shoal.runtime.kafka.serve.membership import LONGEST_SESSION, group_of

Word = Literal["pause", "resume", "reload"]
LOOK = 0.5  # seconds between two looks at the topic


class Order(msgspec.Struct, frozen=True):
    """What was asked for last: whether to stand still, and how often to read the policy anew."""

    paused: bool = False
    reloads: int = 0


class Control:
    """Follows the control topic."""

    def __init__(self, properties: Mapping[str, Any], source: str) -> None:
        self._kafka = library()
        self._topic = internal(source, "control")
        settings = {"group.id": f"shoal-{source}", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        failed: list[Any] = []
        self._consumer = self._kafka.Consumer(
            {**properties, **settings, "enable.partition.eof": True, "error_cb": failed.append}
        )
        if self._topic not in topics_of(self._consumer, failed, "asking for orders"):
            raise missing(self._topic)
        self._consumer.assign([self._kafka.TopicPartition(self._topic, 0, self._kafka.OFFSET_BEGINNING)])
        self._looked = 0.0
        self.order = Order()
        self._to_the_end()

    def look(self) -> Order:
        """The order in force; asks the topic now and then."""
        if time.monotonic() - self._looked >= LOOK:
            self._looked = time.monotonic()
            for message in self._consumer.consume(100, 0.0):
                self._hear(message)
        return self.order

    def close(self) -> None:
        """Stop following."""
        self._consumer.close()

    def _to_the_end(self) -> None:
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            for message in self._consumer.consume(100, 0.1):
                if self._hear(message):
                    return
        raise KafkaError("the control topic cannot be read", where=self._topic)

    def _hear(self, message: Any) -> bool:
        """Take one message; whether it was the end."""
        kind = kind_of(message, "reading orders")
        if kind != "record":
            return kind == "end"
        word = msgspec.json.decode(message.value(), type=dict[str, Any]).get("do")
        if word in ("pause", "resume"):
            self.order = msgspec.structs.replace(self.order, paused=word == "pause")
        elif word == "reload":
            # counted by its offset: how many older ones compaction left must not matter
            self.order = msgspec.structs.replace(self.order, reloads=message.offset() + 1)
        return False


def order_now(properties: Mapping[str, Any], source: str) -> Order:
    """The order in force; none was given where there is no control topic yet."""
    try:
        control = Control({**properties, **READ_NOW, "log_level": 0}, source)
    except KafkaError as error:
        if error.name == "missing":
            return Order()
        raise
    control.close()
    return control.order


def send(properties: Mapping[str, Any], source: str, word: Word) -> None:
    """Give an order to all workers of a source."""
    kafka, topic = library(), internal(source, "control")
    failed: list[Any] = []
    writer = kafka.Producer({**properties, "acks": "all", "log_level": 0})
    entry = {"do": word, "at": int(time.time()), "by": properties.get("sasl.username")}
    key = b"reload" if word == "reload" else b"state"
    writer.produce(topic, msgspec.json.encode(entry), key, 0, on_delivery=lambda e, _: failed.append(e))
    if writer.flush(TIMEOUT):
        raise KafkaError("the broker did not take the order", where=topic)
    if failed[0] is not None:
        raise told(failed[0], f"ordering {word}")


def wait_for_rest(properties: Mapping[str, Any], group: str, seconds: float = 1.5 * LONGEST_SESSION) -> None:
    """Wait until no worker of a group is at work: all have committed and left."""
    kafka = library()
    admin = kafka.admin.AdminClient({**properties, "log_level": 0})
    end = time.monotonic() + seconds
    # both stages: the second one, where there is one, goes after the first
    for stage in (group, group_of(group, of_regions=True)):
        while members_of(admin, stage):
            if time.monotonic() > end:
                raise KafkaError(f"workers are still at work after {seconds:.0f} s", where=stage)
            time.sleep(0.3)


def members_of(admin: Any, group: str) -> list[Any]:
    """The members of a group, as the client describes them; none if there never was one."""
    kafka, end = library(), time.monotonic() + TIMEOUT
    while True:
        try:
            return list(admin.describe_consumer_groups([group])[group].result(TIMEOUT).members)
        except kafka.KafkaException as error:
            word = error.args[0].name()
            if word == "GROUP_ID_NOT_FOUND":
                return []  # nobody ever worked
            # a group whose broker was lost has another coordinator a moment later
            if "COORDINATOR" not in word or time.monotonic() > end:
                raise told(error.args[0], "asking for workers") from None
            time.sleep(0.3)
