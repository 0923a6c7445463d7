"""Ticks of a stream's clock: written down before they are acted on, so that a replay decides alike."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from shoal.core.errors import InputError, OutputError
from shoal.core.sealed_state import seal, unseal

KIND = "tick"


class Tick(msgspec.Struct, frozen=True, array_like=True):
    """The clock said ``now`` (microseconds of event time) when ``events`` events had come.

    >>> Tick(events=12, now=3_000_000).now
    3000000
    """

    events: int
    now: int


class TickLog:
    """A file of ticks, one sealed line each, flushed to the disk before anyone acts on it.

    A run that dies leaves its ticks; the next one finds them in ``again``, in order, and repeats each where it stood.
    They belong to the state that was written last (its ``number``): ticks of an earlier one are in its state already.
    Each is sealed for its place in the log, so that none can be added, changed or taken out of the middle; that the
    newest are missing cannot be told.

    >>> import tempfile
    >>> file, key = Path(tempfile.mkdtemp()) / "state.ticks", bytes(32)
    >>> TickLog(file, key, number=1).write(Tick(3, 1_000_000))
    >>> TickLog(file, key, number=1).again, TickLog(file, key, number=2).again
    ([Tick(events=3, now=1000000)], [])
    """

    def __init__(self, file: Path, key: bytes, number: int) -> None:
        self._file, self._key, self._number = file, key, number
        self.again = self._read()
        self._next = len(self.again)

    def write(self, tick: Tick) -> None:
        """Write a tick down; when this returns, it is on the disk."""
        sealed = seal(msgspec.msgpack.encode(tick), KIND, self._key, context=self._context(self._next))
        line = f"{self._number} {sealed.hex()}\n".encode()
        try:
            # for its owner alone from its first byte on
            with os.fdopen(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as out:
                out.write(line)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise OutputError(f"a tick cannot be written ({error.strerror})", where=str(self._file)) from None
        self._next += 1

    def clear(self, number: int | None = None) -> None:
        """Forget all ticks: a snapshot, of this ``number``, knows what they did."""
        self._file.unlink(missing_ok=True)
        self._next = 0
        self._number = self._number if number is None else number

    def _context(self, at: int) -> str:
        return f"state {self._number}, tick {at}"

    def _read(self) -> list[Tick]:
        if not self._file.exists():
            return []
        whole = self._file.read_bytes()
        # the last line may be torn: nobody acted on it, and the next tick must not be written behind it
        if not whole.endswith(b"\n"):
            whole = whole[: whole.rfind(b"\n") + 1]
            os.truncate(self._file, len(whole))
        try:
            lines = [
                (int(number), bytes.fromhex(sealed)) for number, sealed in map(str.split, whole.decode().splitlines())
            ]
        except ValueError:
            raise InputError(
                "this is not a log of ticks", where=str(self._file), hint="was it written by another program?"
            ) from None
        # a crash between a snapshot and `clear` leaves ticks that are in the state already
        mine = [sealed for number, sealed in lines if number == self._number]
        return [
            msgspec.msgpack.decode(
                unseal(sealed, KIND, self._key, context=self._context(at), where=str(self._file)), type=Tick
            )
            for at, sealed in enumerate(mine)
        ]
