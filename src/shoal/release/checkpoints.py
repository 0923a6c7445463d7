"""Checkpoints of a stream: its state, where it is in its input, and how far its outputs were written, as one.

A checkpoint is the snapshot file, replaced at once. Outputs are on the disk before it, and are cut back to it when the
stream goes on; so whenever a run dies, everything after the last checkpoint happens again, and stands there once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic

import msgspec
import polars as pl

from shoal.connect.sink import Lines, Mark
from shoal.core.sealed_state import StateFile
from shoal.release.position import Position
from shoal.release.stream import LocalRunner

EVERY = 30.0  # seconds
SHARE = 0.05  # of the time that writing checkpoints may take
LEAST, MOST = 1 << 12, 1 << 17  # events between two looks at the clock
SHORT, LONG = 0.05, 0.25  # seconds such a slice should take, so that a stop or a checkpoint waits for little


class Stopped(msgspec.Struct, frozen=True):
    """The content of a snapshot file: where the input was left, the state of the stream, how far outputs were written.

    >>> Stopped(Position(read=3), b"state").position.read
    3
    """

    position: Position = msgspec.field(name="place")  # its name in snapshots
    state: bytes
    outputs: dict[str, Mark] = {}
    others: dict[str, bytes] = {}  # states of further views that the same pass makes, by their names

    def of(self, view: str) -> bytes | None:
        """The state of a view; the empty name is the first one's."""
        return self.others.get(view) if view else self.state


def read(file: StateFile) -> Stopped | None:
    """What the newest checkpoint says; nothing if there is none."""
    content = file.read()
    return None if content is None else msgspec.msgpack.decode(content, type=Stopped)


class Checkpoints:
    """Where and when a stream's checkpoints are written. ``outputs`` are its files, by what they are for.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from shoal.release.job import job_of
    >>> from shoal.release.position import snapshot_file
    >>> from shoal.release.wishes import Wishes
    >>> folder, key = Path(tempfile.mkdtemp()), bytes(32)
    >>> runner = LocalRunner(job_of(Wishes({"z": 2, "window": "1h"})), key, print)
    >>> saved = Checkpoints(snapshot_file(folder / "state", key), key, Position(), {}, every=0.0)
    >>> saved.begin({"": runner})
    >>> saved.write()
    >>> read(snapshot_file(folder / "state", key)).position.read
    0
    """

    def __init__(
        self,
        file: StateFile,
        key: bytes,
        at: Position,
        outputs: Mapping[str, Lines],
        *,
        every: float = EVERY,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.file, self.at = file, at
        self._key, self._outputs, self._every, self._clock = key, outputs, every, clock
        self._runners: Mapping[str, LocalRunner] = {}
        self._begun = 0
        self.written = 0  # by this run
        self.sizes: dict[str, int] = {}  # bytes of the newest state, by view
        self._due = clock() + every

    def resume(self, stopped: Stopped) -> list[str]:
        """Cut the outputs back to the checkpoint; those that are not the ones of the checkpoint."""
        return [
            name
            for name, lines in self._outputs.items()
            if not lines.resume(stopped.outputs.get(name), self._key) and name in stopped.outputs
        ]

    def begin(self, runners: Mapping[str, LocalRunner]) -> None:
        """The stream begins: a runner per view, the first under the empty name."""
        self._runners, self._begun = runners, runners[""].first

    def look(self) -> None:
        """Write a checkpoint if it is time."""
        # not while ticks of the run before are to come: the state would lack what they decide
        if self._clock() >= self._due and all(runner.settled for runner in self._runners.values()):
            self.write()

    def write(self) -> None:
        """Write a checkpoint now. When this returns, it is on the disk."""
        begun = self._clock()
        marks = {name: mark for name, out in self._outputs.items() if (mark := out.mark(self._key)) is not None}
        self.at = self.at.grown(self._key)
        at = self.at.moved(self._runners[""].first - self._begun)
        state, *others = (runner.snapshot() for runner in self._runners.values())
        further = dict(zip(list(self._runners)[1:], others, strict=True))
        self.file.write(msgspec.msgpack.encode(Stopped(at, state, marks, further)))
        self.written += 1
        self.sizes = {"": len(state), **{view: len(one) for view, one in further.items()}}
        # ticks up to here are in the state; the log of them may begin anew
        for runner in self._runners.values():
            runner.forget_ticks(self.file.number)
        now = self._clock()
        self._due = now + max(self._every, (now - begun) / SHARE)


def sliced(frames: Iterable[pl.DataFrame], clock: Callable[[], float] = monotonic) -> Iterator[pl.DataFrame]:
    """The same events in slices that take a fraction of a second each, whatever the method; see :data:`SHORT`.

    >>> [part.height for part in sliced([pl.DataFrame({"a": range(10_000)})])]
    [4096, 5904]
    """
    size = LEAST
    for frame in frames:
        if not frame.height:
            yield frame
            continue
        start = 0
        while start < frame.height:
            begun = clock()
            part = frame[start : start + size]
            yield part
            start += part.height
            took = clock() - begun
            if took < SHORT and size < MOST:
                size *= 2
            elif took > LONG and size > LEAST:
                size //= 2
