"""``shoal stream --metrics``: the pages of a Kafka worker, under the same names, for a stream of files and pipes."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from shoal.runtime.kafka.serve.counters import Counters
from shoal.streams.base import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shoal.connect.events import Events
    from shoal.release.checkpoints import Checkpoints
    from shoal.release.stream import LocalRunner

EVERY = 0.2  # seconds: who asks is told how it stood so long ago at most
STREAM = "stream"  # the view of a stream without a policy


class StreamMetrics:
    """Counters of a running stream, and the address where they are asked for; everything counts from this start.

    The page answers from a thread of its own, so it never asks the method: it reads what :meth:`look` wrote down.
    """

    def __init__(
        self,
        runners: Mapping[str, LocalRunner],
        source: Events,
        saved: Checkpoints | None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._source, self._saved, self._clock = source, saved, clock
        self._runners = {_view(view, runner): runner for view, runner in runners.items()}
        self._given = dict(zip(self._runners, runners, strict=True))
        self._began = {view: dict(runner.method.counters) for view, runner in self._runners.items()}
        self._first = runners[""].first
        self._written = 0 if saved is None else saved.written
        self._next = 0.0
        self.counters = Counters.of(list(self._runners))
        self.counters.restoring = False
        for runner in runners.values():
            if runner.beside is not None:
                self.counters.verify = runner.beside.share
        self.look()

    def look(self) -> None:
        """Write down how it stands, a few times a second at most."""
        now = self._clock()
        self.counters.beat = now
        if now >= self._next:
            self._next = now + EVERY
            self.tell()

    def tell(self) -> None:
        """Write down how it stands."""
        told = self.counters
        told.read = next(iter(self._runners.values())).first - self._first
        told.dead = self._source.bad
        if self._saved is not None:
            told.snapshots = self._saved.written - self._written
        for view, runner in self._runners.items():
            told.written[view], told.withheld[view] = runner.released, runner.withheld
            told.held[view] = runner.method.held
            counters, before = runner.method.counters, self._began[view]
            for reason in Reason:
                name = reason.name.lower()
                count = int(counters.get(name, 0)) - int(before.get(name, 0))
                if count:
                    told.reasons[view, name] = count
            found = runner.method.figures()
            smallest = found.get("smallest_group") or found.get("least_real")
            if smallest:
                told.smallest[view] = int(smallest)
            if self._saved is not None:
                told.state_bytes[view] = self._saved.sizes.get(self._given[view], 0)
            if runner.beside is not None:
                told.judged[view], told.unjudged[view] = runner.beside.checked, runner.beside.unjudged


def _view(view: str, runner: LocalRunner) -> str:
    """The name of a view in labels: its role."""
    resolved = runner.job.view
    return view or (STREAM if resolved is None else resolved.role)
