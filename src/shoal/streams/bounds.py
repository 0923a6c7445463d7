"""How long tuples may be held, and how long a published box may be used again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import msgspec

from shoal.core.errors import UsageError
from shoal.core.schema import Schema
from shoal.core.time import duration
from shoal.promises.base import Promise
from shoal.streams.base import StreamMethod

FOREVER = 1 << 60
MOST_DELAY = 100_000
LEAST_BOXES = 800


@dataclass(frozen=True)
class Bounds:
    """``delay`` in events, ``delay_time`` in microseconds (0: none), ``reuse`` in tuples or microseconds.

    >>> bounds_of(100, "5m", 30, 50, "batches").timed
    True
    """

    delay: int
    delay_time: int
    reuse: int
    by_time: bool
    boxes: int
    asked: bool = True  # whether someone chose how long boxes are used again

    @property
    def timed(self) -> bool:
        """Whether the clock matters."""
        return self.delay_time > 0 or self.by_time

    def beside_time(self, column: str, where: str) -> Bounds:
        """The bounds where a time is published beside the groups: no box is used again.

        A time tells tuples apart as any quasi column does. All tuples of an emission get one time; a box that is
        given to someone later would stand there with a time that fewer than k people share.
        """
        if self.reuse and self.asked:
            raise UsageError(
                f"the time column {column!r} is shown, and boxes are used again: who gets one later would stand alone "
                "with that time",
                where=where,
                hint="`reuse: never`, or do not show the time",
            )
        return replace(self, reuse=0)

    def check(self, crowd: int, *, timed: bool, where: str) -> None:
        """Refuse what could never release anything."""
        # the tuple that is due counts, too
        if self.delay + 1 < crowd:
            raise UsageError(
                f"a delay of {self.delay} holds at most {self.delay + 1} tuples, but a group needs {crowd} people: "
                "nothing could ever be released",
                where=where,
                hint=f"a delay of at least {max(crowd - 1, 10 * crowd)}",
            )
        if self.timed and not timed:
            raise UsageError(
                "a bound by time needs a time column", where=where, hint="declare a column with `role: time`"
            )


def bounds_of(
    delay: int, delay_time: str | None, reuse: int | str | None, boxes: int, where: str, *, usual: int | None = None
) -> Bounds:
    """Checked bounds. ``reuse`` defaults to ``usual``, or ten times the delay; to never where a time is shown.

    >>> bounds_of(100, None, "never", 50, "batches").reuse
    0
    """
    if not 1 <= delay <= MOST_DELAY:
        raise UsageError(f"`delay` must lie between 1 and {MOST_DELAY:,}, found {delay}", where=where)
    if boxes < 1:
        raise UsageError("`boxes` must be at least 1", where=where)
    span = duration(delay_time, where=f"{where}: delay_time") if delay_time is not None else 0
    if delay_time is not None and span < 1:
        raise UsageError("`delay_time` must be positive", where=where)
    if reuse is None:
        return Bounds(delay, span, 10 * delay if usual is None else usual, False, boxes, asked=False)
    if reuse == "never":
        return Bounds(delay, span, 0, False, boxes)
    if reuse == "forever":
        return Bounds(delay, span, FOREVER, False, boxes)
    if isinstance(reuse, str):
        length = duration(reuse, where=f"{where}: reuse")
        if length < 1:
            raise UsageError("`reuse` must be positive", where=where, hint="or `never`")
        return Bounds(delay, span, length, True, boxes)
    if reuse < 1:
        raise UsageError(f"`reuse` must be positive, found {reuse}", where=where, hint="or `never`")
    return Bounds(delay, span, reuse, False, boxes)


class Delayed(StreamMethod, frozen=True):
    """A method that holds tuples and releases groups of them.

    >>> from shoal.streams.fads import Fads
    >>> Fads(delay=100, reuse="never").reuses
    False
    """

    meets: ClassVar[Literal["value", "neighbours", "everyone"]] = "neighbours"

    def bounds(self) -> Bounds:
        """The bounds, checked."""
        raise NotImplementedError

    def waits_for(self, promises: Sequence[Promise]) -> tuple[int, int]:
        """See :class:`StreamMethod`: the tuples that are held together."""
        bounds = self.bounds()
        return bounds.delay + 1, bounds.delay_time

    @property
    def reuses(self) -> bool:
        """See :class:`StreamMethod`."""
        return getattr(self, "reuse", "never") != "never"

    def where_watched(self) -> Self:
        """See :class:`StreamMethod`. To who sees when a record comes, a box used again for one is a group of one.

        >>> from shoal.streams.castle import Castle
        >>> Castle().where_watched().reuse, Castle(reuse="forever").where_watched().reuse
        ('never', 'forever')
        """
        chosen = getattr(self, "reuse", "never") is not None
        return self if chosen else msgspec.structs.replace(self, reuse="never")

    def judged(self, schema: Schema, shown: Sequence[str]) -> tuple[str, ...]:
        """See :class:`StreamMethod`. A published time is one of them: all tuples of an emission have the same.

        >>> from shoal.core.schema import Column
        >>> from shoal.streams.batches import Batches
        >>> schema = Schema({"at": Column("time"), "age": Column("quasi")})
        >>> Batches().judged(schema, ["age", "at"])
        ('age', 'at')
        """
        times = [name for name in schema.of("time") if name in shown]
        for name in times:
            self.bounds().beside_time(name, self.use)
        return (*super().judged(schema, shown), *times)
