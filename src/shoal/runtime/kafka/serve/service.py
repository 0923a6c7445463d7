"""Keeps a worker at work: after a loss it starts another with clean state, a little later each time; it obeys orders.

What a new start cannot mend (a wrong password, a missing right, a topic that is gone, a policy that is wrong) ends it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from shoal.connect.kafka import KafkaError, Source
from shoal.policy.document import Policy
from shoal.policy.load import load
from shoal.runtime.kafka.provision.backfill import Log
from shoal.runtime.kafka.provision.control import Control, Order
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.journal import Trouble

FIRST, LONGEST = 1.0, 30.0  # seconds before a new start
WELL = 60.0  # seconds of work after which an earlier loss is forgotten
UNREAD = 5.0  # seconds between two looks at what remains unread while it stands still
HOPELESS = {
    "_AUTHENTICATION",
    "SASL_AUTHENTICATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "UNKNOWN_TOPIC_OR_PART",
    "_UNKNOWN_TOPIC",
    "_UNKNOWN_PARTITION",
    "MSG_SIZE_TOO_LARGE",
    "missing",
    "taken",
    "unbound",
    "stuck",
}


class Serving(Protocol):
    """A worker, in one stage or two."""

    def run(self, stop: Callable[[], bool] = lambda: False) -> Counters:
        """Serve until asked to stop."""


class Service:
    """Runs the views of a policy file until asked to stop."""

    def __init__(
        self,
        path: str | Path,
        make: Callable[[Policy], Serving],
        *,
        counters: Counters | None = None,
        say: Callable[[str], None] = lambda text: None,
        failed: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path, self._make, self._say, self._sleep = path, make, say, sleep
        self._failed = failed
        self._counters = counters or Counters()
        self._control: Control | None = None
        self.starts = 0

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Serve until ``stop`` says so. Raises only what a new start cannot mend."""
        pause = 0.0
        while not stop():
            began = time.monotonic()
            try:
                self._serve(stop)
            except KafkaError as error:
                if error.name in HOPELESS:
                    raise
                worked = time.monotonic() - began > WELL
                pause = FIRST if worked or not pause else min(LONGEST, pause * 2)
                hint = f" ({error.hint})" if error.hint else ""
                words = Trouble(f"{error.message}{hint}; a new start in {pause:g} s")
                self._say(words)
                self._failed(words)
                self._rest(pause, stop)
        if self._control is not None:
            self._control.close()

    def _serve(self, stop: Callable[[], bool]) -> None:
        policy = load(self._path)
        if self._control is None:
            self._control = self._follow(policy)
        order = self._control.look()
        if order.paused:
            self._stand_still(policy, order, stop)
            return
        self.starts += 1
        worker = self._make(policy)
        self._foresee(policy)
        self._say("starting: keys, source and positions are checked, then the group is joined")
        worker.run(lambda: stop() or self._look() != order)
        if not stop():
            self._say("paused" if self._look().paused else "reading the policy anew")

    def _foresee(self, policy: Policy) -> None:
        """What is unread while the worker joins its group and reads its state; of all partitions: who knows whose."""
        with suppress(KafkaError):  # the worker finds the same, and says it
            log = Log.of(Source(policy.source, policy.path))
            try:
                self._counters.lag = log.unread()
            finally:
                log.close()

    def _stand_still(self, policy: Policy, order: Order, stop: Callable[[], bool]) -> None:
        """Do nothing, and tell the truth about it: not ready, and how much remains unread meanwhile."""
        self._say(Trouble("paused: `shoal serve resume` goes on"))
        self._counters.paused = True
        log, looked = Log.of(Source(policy.source, policy.path)), float("-inf")
        try:
            while not stop() and self._look() == order:
                if time.monotonic() - looked > UNREAD:
                    looked, self._counters.lag = time.monotonic(), log.unread()
                self._sleep(0.2)
        finally:
            log.close()
            self._counters.paused = False

    def _look(self) -> Order:
        assert self._control is not None
        return self._control.look()

    def _rest(self, seconds: float, stop: Callable[[], bool]) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not stop():
            self._sleep(0.1)

    @staticmethod
    def _follow(policy: Policy) -> Control:
        source = Source(policy.source, policy.path)
        return Control(source.properties, source.topic)
