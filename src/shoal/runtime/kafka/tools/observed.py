"""What a reader of a topic sees of a record beside its columns: its timestamp, key, partition, and commit.

Whoever knows when a person's record came may look for it by any of them, so a promise must hold over groups that these
tell apart, too. Commits are seen by the offsets that their marks take: records without a gap between them belong
together. The commits of several workers may interleave on a partition; a mark then falls into the midst of another's
records, so what a class lacks in one stretch is counted in the next one of the same partition and timestamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

COLUMNS = ("(timestamp)", "(key)", "(partition)", "(commit)")  # no path of a policy is spelled so
TIMESTAMP, KEY, PARTITION, COMMIT = COLUMNS


class Observed:
    """Gathers what is beside the columns, record by record, in the order of each partition."""

    def __init__(self) -> None:
        self._held: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self._last: dict[int, int] = {}
        self._stretch: dict[int, int] = {}
        self._cut: set[int] = set()

    def begin(self, partition: int, first: int) -> None:
        """A partition is read from this offset on; what was before it may have been of the same commit."""
        if first > 0:
            self._cut.add(partition)

    def take(self, message: Any) -> None:
        """One record that is judged."""
        partition, offset = message.partition(), message.offset()
        self.pass_by(partition, offset)
        key = message.key()
        seen = (message.timestamp()[1], None if key is None else key.hex(), partition, self._stretch[partition])
        for held, value in zip(self._held.values(), seen, strict=True):
            held.append(value)

    def pass_by(self, partition: int, offset: int) -> None:
        """A record was there, judged or not."""
        if self._last.get(partition) not in (offset - 1, offset):
            self._stretch[partition] = self._stretch.get(partition, -1) + 1
        self._last[partition] = offset

    @property
    def cut(self) -> bool:
        """Whether the log of a partition begins in the midst of what was published."""
        return bool(self._cut)

    def beside(self, columns: pl.DataFrame) -> pl.DataFrame:
        """The columns of the judged records with what was beside them; without commits of which only a part is left."""
        types = {TIMESTAMP: pl.Int64, KEY: pl.String, PARTITION: pl.Int64, COMMIT: pl.Int64}
        whole = columns.with_columns(pl.Series(name, held, types[name]) for name, held in self._held.items())
        return whole.filter(~(pl.col(PARTITION).is_in(list(self._cut)) & (pl.col(COMMIT) == 0)))


def joined(frame: pl.DataFrame, quasi: Sequence[str], least: int) -> pl.DataFrame:
    """The frame with one commit where stretches of offsets may be one: a class below ``least`` looks at its neighbours.

    >>> row = {"age": "20s", TIMESTAMP: 60_000, KEY: None, PARTITION: 0}
    >>> frame = pl.DataFrame([{**row, COMMIT: c} for c in (0, 1, 5)], schema_overrides={KEY: pl.String})
    >>> joined(frame, ["age"], 2)[COMMIT].to_list()
    [0, 0, 1]
    """
    classes = [*quasi, TIMESTAMP, KEY, PARTITION]
    sizes = frame.group_by([*classes, COMMIT]).len().sort([*classes, COMMIT])
    other = pl.any_horizontal(~pl.col(name).eq_missing(pl.col(name).shift(1)) for name in classes)
    apart = pl.col(COMMIT) != pl.col(COMMIT).shift(1) + 1
    whole = (pl.col("len") >= least) & (pl.col("len").shift(1) >= least)
    begins = (other | apart | whole).fill_null(value=True).cast(pl.Int64).cum_sum() - 1
    table = sizes.with_columns(begins.alias("joined")).drop("len")
    found = frame.join(table, on=[*classes, COMMIT], how="left", nulls_equal=True, maintain_order="left")
    return found.with_columns(pl.col("joined").alias(COMMIT)).drop("joined")
