"""One at a time: two applies beside each other would fill the same topic twice, and both would call it done.

Who has the turn is a member of a group of its own. That needs no clean-up: a member that was killed is forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from shoal.connect.kafka import TIMEOUT, KafkaError, kind_of, library
from shoal.runtime.kafka.provision.control import members_of
from shoal.runtime.kafka.serve.membership import SESSION

PATIENCE = 2 * SESSION  # seconds to wait for a turn: one who was killed is forgotten after half of it
DAY = 86_400_000  # milliseconds


def turn_group(topic: str) -> str:
    """The group of whoever is changing the service of a source.

    >>> turn_group("patients")
    'shoal-patients-apply'
    """
    return f"shoal-{topic}-apply"


class Turn:
    """Nobody else applies or destroys inside; whoever comes meanwhile is refused.

    A member subscribes to topics that ``exist``; where there are none, there is nothing to take turns about.
    """

    def __init__(self, properties: Mapping[str, Any], topic: str, exist: list[str]) -> None:
        self._properties, self._topic, self._exist = {**properties, "log_level": 0}, topic, exist
        self._group = turn_group(topic)
        self._consumer: Any = None

    def __enter__(self) -> None:
        if not self._exist:
            return
        end = time.monotonic() + PATIENCE
        admin = library().admin.AdminClient(self._properties)
        while members_of(admin, self._group):
            self._refuse_after(end)
            time.sleep(0.3)
        self._consumer = self._member()
        try:
            self._join(self._consumer, time.monotonic() + TIMEOUT)
            # of those who came at the same moment all but one go
            mine = self._consumer.memberid()
            if mine != min((m.member_id for m in members_of(admin, self._group)), default=mine):
                self._refuse_after(0.0)
        except BaseException:
            self._leave()
            raise

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _member(self) -> Any:
        settings = {
            "group.id": self._group,
            "session.timeout.ms": int(SESSION * 1000),
            "heartbeat.interval.ms": 500,
            # who is a member polls no more: whoever comes beside it gets no partition, and goes
            "max.poll.interval.ms": DAY,
            "enable.auto.commit": False,
        }
        return library().Consumer({**self._properties, **settings})

    def _join(self, consumer: Any, end: float) -> None:
        joined: list[bool] = []

        def assigned(client: Any, _: list[Any]) -> None:
            client.assign([])  # nothing is read
            joined.append(True)

        consumer.subscribe(self._exist, on_assign=assigned)
        while not joined:
            if (message := consumer.poll(0.1)) is not None:
                kind_of(message, "taking a turn")
            self._refuse_after(end)

    def _leave(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _refuse_after(self, end: float) -> None:
        if time.monotonic() > end:
            raise KafkaError(
                "another apply or destroy is at work",
                where=self._topic,
                hint="`shoal serve status` says how far it is; nothing was changed",
            )
