"""Ticks of a stream's clock: written down before they are acted on, so that a replay decides alike."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from shoal.core.errors import InputError, OutputError


class Tick(NamedTuple):
    """The clock said ``now`` (microseconds of event time) when ``events`` events had come."""

    events: int
    now: int


class TickLog:
    """A file of ticks, one line each, flushed to the disk before anyone acts on it.

    A run that dies leaves its ticks; the next one finds them in ``again``, in order, and repeats each where it stood.
    Ticks older than the snapshot (``since`` events) are in its state already.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "state.ticks"
    >>> TickLog(file, 0).write(Tick(3, 1_000_000))
    >>> TickLog(file, 0).again, TickLog(file, 4).again
    ([Tick(events=3, now=1000000)], [])
    """

    def __init__(self, file: Path, since: int) -> None:
        self._file = file
        self.again = [tick for tick in _read(file) if tick.events >= since]

    def write(self, tick: Tick) -> None:
        """Write a tick down; when this returns, it is on the disk."""
        try:
            with self._file.open("a") as out:
                out.write(f"{tick.events} {tick.now}\n")
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise OutputError(f"a tick cannot be written ({error.strerror})", where=str(self._file)) from None

    def clear(self) -> None:
        """Forget all ticks: a snapshot knows what they did."""
        self._file.unlink(missing_ok=True)


def _read(file: Path) -> list[Tick]:
    if not file.exists():
        return []
    lines = file.read_text().splitlines(keepends=True)
    try:
        # the last line may be torn: nobody acted on it
        ticks = [Tick(*(int(part) for part in line.split())) for line in lines if line.endswith("\n")]
    except (ValueError, TypeError):
        raise InputError(
            "this is not a log of ticks", where=str(file), hint="was it written by another program?"
        ) from None
    return ticks
