"""The tuples that wait for their outcome: arrays with room to grow, where nothing is moved while that can be avoided.

A method with delay holds up to 100,000 tuples and decides a few of them at a time. Were all copied whenever some come
or go, that would be the longest pause of a large window: so there is room for a whole delay from the start (memory that
nobody has written to costs nothing), a batch is written behind what is there, who has left keeps the place until a
quarter have or until all who came before have left, too (then the first row is another one, and nothing is moved), and
frames are joined so that there are few of them and each row is copied rarely.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.texts import written
from shoal.streams.coder import Coded

Ints = NDArray[np.int64]
COLUMNS = ("prints", "event", "arrived", "mark")
# rows are moved together when one of so many has left: a quarter where nothing else is to be done, else three quarters
IDLE, BUSY = 4, 4 / 3
FEW = 256  # so few are moved at once
BLOCK = 4096  # rows that are moved at a time
FRONT = 8  # rows move to the front, instead of growing, where one of so many places is free there
MOST_ROOM = 1 << 17  # rows for which room is made at the start


class Waiting:
    """Rows in the order of arrival. A row's number holds until the next :meth:`add` or :meth:`sweep`.

    >>> empty = Coded(*(np.zeros((0, 1)) for _ in range(2)), np.zeros((0, 1, 1), np.int64), np.zeros((0, 1, 1)),
    ...               np.zeros(0, np.uint8), np.zeros((0, 1), np.int32), 0)
    >>> waiting = Waiting(empty, 0)
    >>> waiting.left, waiting.rows.tolist()
    (0, [])
    """

    def __init__(self, empty: Coded, values: int, delay: int = 0) -> None:
        arrays: dict[str, NDArray[Any]] = dict(zip(Coded._fields[:-1], empty[:-1], strict=True))
        arrays |= {name: np.zeros(0, np.int64) for name in COLUMNS}
        arrays |= {"codes": np.zeros((0, values), np.int32), "gone": np.zeros(0, np.bool_)}
        room = min(delay + delay // (IDLE - 1), MOST_ROOM) + 2 * FEW
        self._arrays = {name: np.empty((room, *array.shape[1:]), array.dtype) for name, array in arrays.items()}
        self._epoch = empty.epoch
        self._frames: list[pl.DataFrame] = []
        self._first = 0  # where the first row stands
        self.size = 0  # rows that have a place, also those that have left
        self.left = 0  # rows that wait
        self.trimmed = 0  # rows that were let go of at the front, ever
        self.moves = 0  # how often rows were moved together

    def add(self, frame: pl.DataFrame, coded: Coded, codes: NDArray[np.int32], columns: dict[str, Ints]) -> None:
        """Further rows; ``codes`` are those of the sensitive values, a row per column. O(rows), on average."""
        new: dict[str, NDArray[Any]] = {name: getattr(coded, name) for name in Coded._fields[:-1]} | columns
        new |= {"codes": codes.T, "gone": np.zeros(frame.height, np.bool_)}
        size = self.size + frame.height
        self._make_room(size)
        for name, array in new.items():
            self._arrays[name][self._first + self.size : self._first + size] = array
        self._epoch = coded.epoch if not self.size or coded.epoch == self._epoch else -1
        self.size, self.left = size, self.left + frame.height
        self._frames.append(frame)
        # as in a binary counter: a frame is joined to one that is not much larger, so there are few, and few copies
        while len(self._frames) > 1 and self._frames[-2].height <= 2 * self._frames[-1].height:
            last = [self._frames.pop() for _ in range(2)]
            self._frames.append(_joined(last[::-1]).rechunk())

    def _make_room(self, size: int) -> None:
        """Room for so many rows: those there are move to the front where that is worth it, else there is more."""
        room, here = len(self._arrays["gone"]), slice(self._first, self._first + self.size)
        if self._first + size <= room:
            return
        front = size <= room and FRONT * self._first >= room
        for name, old in self._arrays.items():
            if front:
                for at in range(0, self.size, BLOCK):
                    stop = min(at + BLOCK, self.size)
                    old[at:stop] = old[self._first + at : self._first + stop]
            else:
                grown = np.empty((max(size, 2 * room), *old.shape[1:]), old.dtype)
                grown[: self.size] = old[here]
                self._arrays[name] = grown
        self._first = 0

    @staticmethod
    def _move(array: NDArray[Any], places: Ints) -> None:
        """Rows move to the front: what a block is written over has been read, by it or by one before."""
        for at in range(0, len(places), BLOCK):
            some = places[at : at + BLOCK]
            array[at : at + len(some)] = array[some]

    def _of(self, name: str) -> NDArray[Any]:
        return self._arrays[name][self._first : self._first + self.size]

    def column(self, name: str) -> Ints:
        """One of :data:`COLUMNS`, a place per row; what is written there stays."""
        return self._of(name)

    @property
    def gone(self) -> NDArray[np.bool_]:
        """Who has left."""
        return self._of("gone")

    @property
    def rows(self) -> Ints:
        """The rows that wait."""
        return np.arange(self.size) if self.left == self.size else np.flatnonzero(~self.gone)

    @property
    def coded(self) -> Coded:
        """All rows as numbers and paths, also those that have left."""
        number, scaled, node, cost, reason, at = (self._of(name) for name in Coded._fields[:-1])
        return Coded(number, scaled, node, cost, reason, at, self._epoch)

    def codes(self, rows: Ints) -> NDArray[np.int32]:
        """The sensitive values of rows, a row per column of them."""
        return np.ascontiguousarray(self._of("codes")[rows].T)

    def frame(self, rows: Ints | None = None) -> pl.DataFrame:
        """What rows would publish; all that have a place, if none are named."""
        whole = _joined(self._frames) if self._frames else pl.DataFrame()
        return whole if rows is None else whole[rows]

    def leave(self, rows: Ints) -> None:
        """These rows have left."""
        self.gone[rows] = True
        self.left -= len(rows)

    def sweep(self, *, share: float) -> None:
        """Move the rows that wait together if one of ``share`` has left; 0: if any has. O(rows).

        Those who left before the first that waits need not be moved for.
        """
        self._trim()
        away = self.size - self.left
        if not away or (share and away < max(FEW, self.size // share)):
            return
        rows = self.rows
        self._frames = [self.frame(rows)] if len(rows) else []
        for array in self._arrays.values():
            self._move(array, self._first + rows)
        self._first, self.size = 0, len(rows)
        self.moves += 1

    def _trim(self) -> None:
        """Let go of the rows before the first that waits."""
        away = int(np.argmin(self.gone)) if self.left else self.size
        self._first, self.size = self._first + away if self.left else 0, self.size - away
        self.trimmed += away
        while away and self._frames[0].height <= away:
            away -= self._frames.pop(0).height
        if away:
            self._frames[0] = self._frames[0][away:]


def _joined(frames: list[pl.DataFrame]) -> pl.DataFrame:
    if len(frames) == 1:
        return frames[0]
    if all(frame.schema == frames[0].schema for frame in frames):  # then nothing is copied
        return pl.concat(frames)
    # what came before a column became one of JSON values is published as it came, too
    mixed = {name for frame in frames for name, dtype in frame.schema.items() if dtype == pl.Binary}
    alike = [frame.with_columns(written(frame[n]) for n in mixed if n in frame.columns) for frame in frames]
    return pl.concat(alike, how="diagonal_relaxed")
