"""Rows on disk by region or by bucket, and these worked on several at once, as far as there is room."""

from __future__ import annotations

import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import polars as pl

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Room:
    """What memory holds of a table that does not fit in it.

    >>> Room(most=250_000, at_once=2, held=10**8).at_once
    2
    """

    most: int  # rows of a region, or of a bucket
    at_once: int  # how many of these are worked on together
    held: int  # bytes of rows that wait to be written
    fits: int = 0  # rows of a region that cannot be made smaller and is worked on alone

    def together(self, largest: int) -> int:
        """How many are worked on together, if the largest has so many rows.

        >>> room = Room(most=250_000, at_once=4, held=10**8, fits=1_500_000)
        >>> room.together(300_000), room.together(501_000), room.together(1_500_000)
        (4, 1, 1)
        """
        if largest <= 2 * self.most or not self.fits:
            return self.at_once
        return max(1, min(self.at_once, self.fits // largest - 1))


@dataclass
class Scattered:
    """Rows in many files, by region or by bucket; they are kept until there are enough of them for larger files."""

    folder: Path
    room: int  # bytes of the rows that are kept
    _waiting: dict[int, list[pl.DataFrame]] = field(default_factory=dict)
    _held: int = 0
    rows: Counter[int] = field(default_factory=Counter)
    _files: int = 0

    def add(self, key: str, rows: pl.DataFrame) -> None:
        """Take rows; the column ``key`` says where each belongs."""
        for (number,), part in rows.partition_by(key, as_dict=True, include_key=False).items():
            self._waiting.setdefault(int(number), []).append(part)
            self.rows[int(number)] += part.height
        self._held += int(rows.estimated_size())
        if self._held >= self.room:
            self.flush()

    def flush(self) -> None:
        """Write what is kept."""
        for number, parts in self._waiting.items():
            place = self.folder / f"{number}"
            place.mkdir(parents=True, exist_ok=True)
            self._files += 1
            pl.concat(parts, how="vertical_relaxed").write_parquet(
                place / f"{self._files}.parquet", compression="lz4", statistics=False
            )
        self._waiting, self._held = {}, 0

    def height(self, numbers: Sequence[int]) -> int:
        """How many rows some regions or buckets have."""
        return sum(self.rows[number] for number in numbers)

    def files(self, numbers: Sequence[int]) -> list[Path]:
        """The files of some regions or buckets."""
        return [file for number in numbers for file in sorted((self.folder / f"{number}").glob("*.parquet"))]

    def scan(self, numbers: Sequence[int]) -> pl.LazyFrame:
        """Their rows."""
        return pl.scan_parquet(self.files(numbers))

    def take(self, numbers: Sequence[int]) -> pl.DataFrame:
        """Their rows, which are then gone from the disk."""
        found = self.scan(numbers).collect(engine="streaming")
        for number in numbers:
            shutil.rmtree(self.folder / f"{number}", ignore_errors=True)
        return found

    def batches(self, number: int, most: int) -> Iterator[pl.DataFrame]:
        """The rows of one, about ``most`` at a time, which are then gone from the disk."""
        yield from self.scan([number]).collect_batches(chunk_size=most, maintain_order=False, engine="streaming")
        shutil.rmtree(self.folder / f"{number}", ignore_errors=True)


def in_order(work: Callable[[int], _Made], count: int, at_once: int) -> Iterator[_Made]:
    """What ``work`` makes of 0, 1, 2 …, in this order, so many at once. The first is alone: it loads the kernels.

    >>> list(in_order(lambda number: number * number, 4, at_once=2))
    [0, 1, 4, 9]
    """
    if count:
        yield work(0)
    pool, waiting = ThreadPoolExecutor(at_once), deque[Future[_Made]]()
    try:
        for number in range(1, count):
            waiting.append(pool.submit(work, number))
            if len(waiting) > at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)  # after a failure nothing more is begun
