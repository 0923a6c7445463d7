"""The protocol of all stream methods: events in, by the batch; outcomes out, at once or later.

A spec (:class:`StreamMethod`) starts a :class:`Running` method. The runner (``runtime.local``, later the Kafka
worker) feeds it and obeys four rules:

1. Events are numbered 0, 1, 2 … as they arrive; ``batch.first`` is the number of a batch's first event. A batch of
   one is a batch.
2. **Every event gets exactly one outcome**, in the same call or a later one (``push``, ``tick``, ``flush``): its
   number stands once in ``outcomes.events`` (released), once in ``outcomes.joined`` (released, in the row of another
   event: one row may tell several of one person) or once in ``outcomes.withheld`` (with a reason). Rows whose number
   is -1 tell no event; only the operator's side channel may see these numbers.
3. ``tick(now)`` is input like any event: the runner logs it before it acts on it, so that a replay decides alike.
   A zero-delay method answers it with nothing.
4. ``snapshot()`` is bytes (versioned MessagePack, never pickle); ``spec.start(…, snapshot=bytes)`` continues as if
   nothing had happened. A method is a function of (input order, snapshot, key, seed).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.core.spec import Spec

if TYPE_CHECKING:
    import polars as pl

    from shoal.core.schema import Schema
    from shoal.promises.base import Promise

Numbers = NDArray[np.int64]


class Reason(IntEnum):
    """Why an event was withheld.

    >>> Reason(1).name
    'RARE'
    """

    RARE = 1  # too few people, at every level
    LATE = 2  # within the bound, but too few people are certain at its time
    TOO_LATE = 3  # older than the bound on lateness
    FUTURE = 4  # further ahead of the stream's clock than allowed
    BAD = 5  # no subject, no time, an unusable value
    UNKNOWN = 6  # a value its hierarchy does not know
    FULL = 7  # the memory ceiling is reached
    DUE = 8  # its delay ran out before the promise could be met
    STICKY = 9  # an earlier decision of the same session stands
    END = 10  # the stream ended before the promise could be met
    GAPS = 11  # its curve lacks instants of the window


@dataclass(frozen=True)
class Batch:
    """Events in the order of arrival.

    ``frame`` is what the view may publish: masks are already applied, quasi columns still hold their exact values
    (the method generalizes them). ``subjects`` is the unmasked subject beside it, counted and never published: text,
    null where missing; ``None`` if the schema has no subject column (every row is then a person of its own).
    ``times`` is event time in whole microseconds, negative where unusable; without a time column the event number.
    ``unreadable`` events are rows of nulls: nobody is counted for them, and they are withheld as bad.

    >>> import polars as pl
    >>> Batch(pl.DataFrame({"age": [21, 64]}), np.arange(2)).first
    0
    """

    frame: pl.DataFrame
    times: Numbers
    subjects: pl.Series | None = None
    first: int = 0
    unreadable: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return self.frame.height


@dataclass(frozen=True)
class Outcomes:
    """What became of events: ``released`` rows (the columns of ``Batch.frame``) stand for the events ``events``.

    ``groups`` says which rows were released as one group, also with a box given before: the number of an event of the
    group it was made for, -1 where that is not known. Who verifies a stream as it goes judges these groups.

    >>> Outcomes().released is None, len(Outcomes().withheld)
    (True, 0)
    """

    released: pl.DataFrame | None = None
    events: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    withheld: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    reasons: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    joined: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))  # released in the row of another event
    groups: Numbers | None = None

    def __len__(self) -> int:
        return len(self.events) + len(self.withheld) + len(self.joined)


def together(told: list[Outcomes]) -> Outcomes:
    """One outcome after the other, as one.

    >>> len(together([Outcomes(), Outcomes(events=np.arange(2))]).events)
    2
    """
    import polars as pl

    if len(told) < 2:
        return told[0] if told else Outcomes()
    frames = [one.released for one in told if one.released is not None]
    groups = [one.groups for one in told if one.groups is not None]
    return Outcomes(
        pl.concat(frames, how="diagonal_relaxed") if frames else None,
        np.concatenate([one.events for one in told]),
        np.concatenate([one.withheld for one in told]),
        np.concatenate([one.reasons for one in told]),
        groups=np.concatenate(groups) if groups else None,
    )


class Running:
    """A method at work: the state between batches. Memory is bounded by what the window or the delay holds.

    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.promises.z_anonymity import ZAnonymity
    >>> from shoal.streams.z_anonymity import ZAnon
    >>> schema = Schema({"time": Column("time"), "who": Column("subject"), "site": Column("quasi")})
    >>> running = ZAnon().start(schema, [ZAnonymity(2, "1h")], key=bytes(32))
    >>> running.held, running.counters["events"]
    (0, 0)
    """

    def push(self, batch: Batch) -> Outcomes:
        """Take events; answer what is decided now, of these or of earlier ones."""
        raise NotImplementedError

    def tick(self, now: int) -> Outcomes:
        """The clock says ``now`` (microseconds of event time) though no event came: release what is due."""
        return Outcomes()

    def flush(self) -> Outcomes:
        """The stream has ended: decide everything that is still held."""
        return Outcomes()

    def snapshot(self) -> bytes:
        """The whole state; start the same spec with it to continue."""
        raise NotImplementedError

    @property
    def held(self) -> int:
        """How many events wait for their outcome."""
        return 0

    @property
    def now(self) -> int | None:
        """The stream's clock (microseconds), if its moving on would release something; else none."""
        return None

    @property
    def counters(self) -> Mapping[str, int]:
        """Totals since the start: ``events``, ``released``, ``withheld`` and one per reason."""
        raise NotImplementedError

    @property
    def known(self) -> Mapping[str, tuple[int, int]]:
        """Per quasi column how many values of this run its hierarchy knew, and how many there were."""
        return {}

    def figures(self) -> Mapping[str, Any]:
        """Live figures for people: rates, loss, smallest group, z, the tuner's decisions."""
        return {}


class StreamMethod(Spec, frozen=True):
    """Parameters of a stream method; ``start`` makes it run.

    Whoever serves a stream asks the method what it must know, and never which method it is: the properties below have
    the cautious answer, and a method that can promise more says so.

    >>> from shoal.streams.batches import Batches
    >>> method = Batches(delay=100)
    >>> method.groups, method.reuses, method.where_watched().reuses
    (True, True, False)
    """

    groups: ClassVar[bool] = True  # released records stand in groups of people; if not, each is decided by itself
    # whose events must meet in one state: those of a `value` and its branch, `neighbours` in quasi space, or everyone's
    meets: ClassVar[Literal["value", "neighbours", "everyone"]] = "everyone"

    @property
    def invents(self) -> bool:
        """Whether some released records are of nobody."""
        return False

    @property
    def reuses(self) -> bool:
        """Whether what was published once may be used again for a single record."""
        return False

    @property
    def replayable(self) -> bool:
        """Whether the events of one window, read again, give its whole state."""
        return False

    def waits_for(self, promises: Sequence[Promise]) -> tuple[int, int]:
        """Among whom a record may find its company: of how many events, and of how many microseconds; 0: no bound.

        (0, 0) where that cannot be said of single records.
        """
        return 0, 0

    def where_watched(self) -> StreamMethod:
        """This method where everyone sees when a record comes, as on a topic: stricter where nothing was chosen."""
        return self

    def published(self, schema: Schema, shown: Sequence[str]) -> tuple[str, ...] | None:
        """The columns of a release where they are others than those of the events; ``shown`` are the role's.

        An error if the role does not see what the method needs.
        """
        return None

    def judged(self, schema: Schema, shown: Sequence[str]) -> tuple[str, ...]:
        """The published columns that tell people apart, for who judges a release of this method.

        Raises ``UsageError`` if they could not be kept together with the others.
        """
        return tuple(name for name in schema.quasi if name in shown)

    def start(
        self,
        schema: Schema,
        promises: Sequence[Promise],
        *,
        key: bytes,
        seed: int = 0,
        snapshot: bytes | None = None,
    ) -> Running:
        """Begin, or continue from a snapshot.

        ``key`` (32 bytes, from the key ring) makes fingerprints and random choices; the snapshot never holds it.
        Promises the method cannot keep raise ``UsageError`` here, not later.
        """
        raise NotImplementedError
