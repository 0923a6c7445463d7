"""Blocks: what one commit brings to one region of one view, in one sealed record of the internal topic.

A block carries the records whole, as the source had them, so nobody without the key reads one; and *marks*: how far
each partition of the source was read, in offsets and in event time. A block that comes a second time is known by its
offsets, and one that was put into another partition by the region it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np

from shoal.connect.kafka import UnboundError
from shoal.core.errors import ShoalError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.lines import Lines, Numbers
from shoal.core.sealed_state import is_anew, opened, seal_anew, unseal, unseal_anew
from shoal.runtime.kafka.serve.source_records import Record, Records, whole

KIND = "a region"
FULL = 800_000  # bytes of records in a block; one that is larger goes alone
UNTIMED = -1  # the time of a record whose time cannot be read


class Entry(Record, frozen=True, array_like=True, gc=False):
    """One record of the source, and the event time its partition had reached with it."""

    at: int


class Entries(Records):
    """:class:`Entry` after entry, as columns.

    >>> Entries.of([Entry(0, 7, None, b"{}", 0, 5)]).ats.tolist()
    [5]
    """

    __slots__ = ("ats",)

    def __init__(self, records: Records, ats: Numbers, values: Lines | None = None) -> None:
        super().__init__(
            values if values is not None else records.values,
            records.partitions,
            records.offsets,
            records.timestamps,
            records.keys,
        )
        self.ats = ats

    @classmethod
    def of(cls, records: Sequence[Record]) -> Entries:
        """See :meth:`Records.of`."""
        if isinstance(records, Entries):
            return records
        return cls(Records.of(records), whole(e.at for e in cast(Sequence[Entry], records)))

    @classmethod
    def joined(cls, parts: Sequence[Entries]) -> Entries:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        keys: list[bytes | None] | None = None
        if any(part.keys is not None for part in parts):
            keys = [key for part in parts for key in part.keys or [None] * len(part)]
        values = Lines.joined([part.values for part in parts])
        columns = (
            np.concatenate([NOTHING, *(getattr(part, name) for part in parts)])
            for name in ("partitions", "offsets", "timestamps", "ats")
        )
        partitions, offsets, timestamps, ats = columns
        return cls(Records(values, partitions, offsets, timestamps, keys), ats)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self.take(at)
        r = super().__getitem__(at)
        return Entry(r.partition, r.offset, r.key, r.value, r.timestamp, int(self.ats[at]))

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.each())

    def each(self) -> list[Entry]:
        """One by one."""
        return list(map(Entry, *self._columns(), self.ats.tolist()))

    def take(self, at: slice | Numbers) -> Entries:
        """See :meth:`Records.take`."""
        return Entries(self.plain().take(at), self.ats[at])

    def packed(self) -> Entries:
        """In memory of their own."""
        return Entries(self, self.ats, self.values.packed())

    def plain(self) -> Records:
        """Without the time."""
        return Records(self.values, self.partitions, self.offsets, self.timestamps, self.keys)


class Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a partition of the source was read: all before ``next``, up to event time ``at``.

    ``ended``: it has nothing more for now, and nobody must wait for it. ``begun``: when its reader began to read it,
    so that a new reader, who does not know yet whether there is more, is told from an older word that comes again.
    """

    partition: int
    next: int
    at: int
    ended: bool
    begun: int = 0


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Records of a region of a view (by the name of its state); the source has ``of`` partitions."""

    view: str
    region: int
    of: int
    marks: list[Mark]
    entries: list[Entry]


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """A block as its topic carries it: columns cost a tenth of what records one by one do."""

    view: str
    region: int
    of: int
    marks: list[Mark]
    numbers: memoryview  # partitions, offsets, timestamps, event times and lengths of values
    keys: list[bytes | None] | None
    values: memoryview  # with a line end behind each

    @classmethod
    def of_entries(cls, view: str, region: int, of: int, marks: list[Mark], entries: Entries) -> Packed:
        """A block of these records."""
        lines = entries.values.packed()
        columns = (entries.partitions, entries.offsets, entries.timestamps, entries.ats, lines.lengths)
        numbers = np.concatenate(columns).astype("<i8", copy=False)
        return cls(view, region, of, marks, numbers.data.cast("B"), entries.keys, lines.data.data)

    def entries(self) -> Entries:
        """The records."""
        columns = np.frombuffer(self.numbers, "<i8").reshape(5, -1).astype(np.int64, copy=False)
        partitions, offsets, timestamps, ats, lengths = columns
        lines = Lines.parted(np.frombuffer(self.values, np.uint8), lengths)
        return Entries(Records(lines, partitions, offsets, timestamps, self.keys), ats)


class Opened(NamedTuple):
    """A block, opened."""

    view: str
    region: int
    of: int
    marks: list[Mark]
    entries: Entries


class SealedError(UnboundError):
    """A block cannot be opened: another key, or someone else's writing."""


class BlockSeal:
    """Seals blocks, and opens them where a region reads them.

    >>> seal = BlockSeal(KeyRing({"default": {1: bytes(32)}}))
    >>> block = Block("visits.market@1", 3, 16, [], [])
    >>> seal.unsealed(seal.sealed(block)) == msgspec.msgpack.encode(block)
    True
    """

    def __init__(self, keys: KeyRing) -> None:
        self._key, *self._older = keys.every(DEFAULT, "regions")

    def sealed(self, block: Block | Packed) -> bytes:
        """A block as its topic carries it."""
        return seal_anew(msgspec.msgpack.encode(block), KIND, self._key)

    def unsealed(self, value: bytes) -> bytes:
        """What :func:`block_of` reads."""
        try:
            how = unseal_anew if is_anew(value) else unseal  # as former versions sealed them
            return opened(lambda key: how(value, KIND, key, where="regions"), [self._key, *self._older])
        except ShoalError as error:
            hint = "who else may write to it? `shoal serve status` says what is refused"
            raise SealedError(error.message, where="the topic of regions", hint=hint) from None


def block_of(value: bytes | None) -> Opened:
    """An opened block; those of former versions have their records one by one.

    >>> block_of(msgspec.msgpack.encode(Block("visits.market@1", 3, 16, [], []))).region
    3
    """
    try:
        try:
            packed = _PACKED.decode(value or b"")
        except msgspec.ValidationError:
            block = msgspec.msgpack.decode(value or b"", type=Block)
            return Opened(block.view, block.region, block.of, block.marks, Entries.of(block.entries))
        return Opened(packed.view, packed.region, packed.of, packed.marks, packed.entries())
    except (msgspec.MsgspecError, ValueError):
        raise SealedError("a record is no block", where="the topic of regions") from None


NOTHING = np.zeros(0, np.int64)
_PACKED = msgspec.msgpack.Decoder(Packed)
