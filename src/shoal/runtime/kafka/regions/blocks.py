"""Blocks: what one commit brings to one region of one view, in one sealed record of the internal topic.

A block carries the records whole, as the source had them, so nobody without the key reads one; and *marks*: how far
each partition of the source was read, in offsets and in event time. A block that comes a second time is known by its
offsets, and one that was put into another partition by the region it names.
"""

from __future__ import annotations

import msgspec

from shoal.connect.kafka import KafkaError
from shoal.core.errors import ShoalError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.sealed_state import opened, seal, unseal
from shoal.runtime.kafka.formats.codec import Codec
from shoal.runtime.kafka.serve.output import Record

KIND = "a region"
LARGEST = 400_000  # bytes of records in a block; one that is larger goes alone
UNTIMED = -1  # the time of a record whose time cannot be read


class Entry(Record, frozen=True, array_like=True, gc=False):
    """One record of the source, and the event time its partition had reached with it."""

    at: int


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


class SealedError(KafkaError):
    """A block cannot be opened: another key, or someone else's writing. A new start cannot mend it."""

    name = "unbound"


class BlockCodec:
    """Seals blocks, and opens them where a worker reads them as it reads a source; ``outer`` is the views' codec.

    >>> codec = BlockCodec(KeyRing({"default": {1: bytes(32)}}))
    >>> block = Block("visits.market@1", 3, 16, [], [])
    >>> codec.decode(codec.sealed(block)) == msgspec.msgpack.encode(block)
    True
    """

    def __init__(self, keys: KeyRing, outer: Codec | None = None) -> None:
        self._key, *self._older = keys.every(DEFAULT, "regions")
        self._outer = outer

    def sealed(self, block: Block) -> bytes:
        """A block as its topic carries it."""
        return seal(msgspec.msgpack.encode(block), KIND, self._key)

    def decode(self, value: bytes) -> bytes:
        """See :class:`~shoal.runtime.kafka.formats.codec.Codec`."""
        try:
            return opened(lambda key: unseal(value, KIND, key, where="regions"), [self._key, *self._older])
        except ShoalError as error:
            hint = "who else may write to it? `shoal serve status` says what is refused"
            raise SealedError(error.message, where="the topic of regions", hint=hint) from None

    def encode(self, role: str, record: bytes) -> bytes:
        """See :class:`~shoal.runtime.kafka.formats.codec.Codec`."""
        return record if self._outer is None else self._outer.encode(role, record)


def block_of(value: bytes | None) -> Block:
    """An opened block.

    >>> block_of(msgspec.msgpack.encode(Block("visits.market@1", 3, 16, [], []))).region
    3
    """
    try:
        return msgspec.msgpack.decode(value or b"", type=Block)
    except (msgspec.MsgspecError, ValueError):
        raise SealedError("a record is no block", where="the topic of regions") from None
