"""JSON lines about a worker's life on standard error: what happened and how often; never a value."""

from __future__ import annotations

import sys
import time
from typing import IO, Any

import msgspec

from shoal.core.errors import ShoalError
from shoal.runtime.kafka.serve.counters import Counters


class Trouble(str):
    """Words of a worker that somebody should look into; all others are news."""

    __slots__ = ()


class Journal:
    """Writes one JSON object per line: time, level, event, and counts."""

    def __init__(self, out: IO[str] | None = None, *, every: float = 60.0, **always: Any) -> None:
        self._out = out or sys.stderr
        self._every, self._last = every, time.monotonic()
        self._always = always

    def write(self, event: str, level: str = "info", **more: Any) -> None:
        """One line."""
        line = {"time": round(time.time(), 3), "level": level, "event": event, **self._always, **more}
        self._out.write(msgspec.json.encode(line).decode() + "\n")
        self._out.flush()

    def say(self, text: str) -> None:
        """What the worker tells a person: places and counts."""
        self.write("note", "warn" if isinstance(text, Trouble) else "info", text=str(text))

    def counted(self, event: str, now: Counters) -> None:
        """A line with the counters."""
        self.write(
            event,
            read=now.read,
            written=now.written,
            withheld=now.withheld,
            held=now.held,
            dead=now.dead,
            lost=now.lost,
            commits=now.commits,
            lag=sum(now.lag.values()),
        )

    def turn(self, now: Counters) -> None:
        """Called at every turn of the loop: a line with the counters now and then."""
        if time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            self.counted("serving", now)

    def failed(self, error: Exception) -> None:
        """An error: ours say what they found without a value; of others only the kind is told."""
        told = {} if not isinstance(error, ShoalError) else {"where": error.where, "hint": error.hint}
        text = error.message if isinstance(error, ShoalError) else None
        self.write("failed", "error", kind=type(error).__name__, text=text, **told)
