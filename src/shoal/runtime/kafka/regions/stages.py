"""Both stages of a service in one process: one worker reads the source, a second one the topic of regions.

They share nothing but the brokers: each has its group, its transactions and its state, and each is exactly once by
itself. So they may run in as many processes as there are, and a loss of one is a loss of both, here only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from shoal.connect.kafka import KafkaError
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.runtime.kafka.regions.wish import routed
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.membership import Membership
from shoal.runtime.kafka.serve.worker import Worker

ENDING = 300.0  # seconds a stage may take to end after the other: its longest question to a broker takes half of it


class StuckError(KafkaError):
    """A stage does not end: what holds it is the client's, and only a new process is free of it."""

    name = "stuck"


def worker_of(policy: Policy, keys: KeyRing, **options: Any) -> Worker | Staged:
    """A worker for all views of a policy, in one stage or two, as its views ask for."""
    first = Worker(policy, keys, **options)
    if not routed(policy):
        return first
    how = options.get("membership", Membership())._replace(of_regions=True)
    more = {**options, "membership": how, "counters": first.counters.beside()}
    return Staged(first, Worker(policy, keys, **more))


class Staged:
    """Two workers that start and end together."""

    def __init__(self, first: Worker, second: Worker) -> None:
        self._first, self._second = first, second
        self.counters, self.regions = first.counters, second.counters

    def run(self, stop: Callable[[], bool] = lambda: False) -> Counters:
        """Serve until ``stop`` says so; raises what ended either of them."""
        ended, failed = threading.Event(), list[BaseException]()

        def serve() -> None:
            try:
                self._second.run(ended.is_set)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=serve, name="regions", daemon=True)
        thread.start()
        try:
            self._first.run(lambda: stop() or bool(failed))
        except Exception as error:
            failed.append(error)  # if the other failed before, that is why
        finally:
            ended.set()
            # what it has not committed is aborted: whoever takes its regions reads them again
            thread.join(ENDING)
        if thread.is_alive():
            raise StuckError(
                "the stage of regions does not end",
                where="kafka",
                hint="start the worker again: nothing is lost, another takes its regions",
            ) from (failed[0] if failed else None)
        if failed:
            raise failed[0]
        return self.counters
