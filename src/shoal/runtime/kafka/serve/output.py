"""What a view's records look like on their topic: nothing that joins them with another view of the same records.

Two views of one source can be joined by anything they share: offset, partition, key, header, timestamp. So keys are
pseudonyms of the role's own or dropped, the partition is drawn by the role's own key, timestamps are coarse, headers
are dropped, and the records of one commit are shuffled. What is left is which commit a record belongs to: larger
commits hide more.

A group hides nobody whose record stands out beside its columns. So the records of a view that remembers carry the time
of their commit instead of their own, and those of one group share a partition, drawn from what the group shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import PolicyError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.lines import Numbers
from shoal.policy.document import View
from shoal.runtime.kafka.serve.dressed import Dressed, Outgoing
from shoal.runtime.kafka.serve.source_records import Record, Records

COARSE = 60_000  # milliseconds
ROOM = (
    950_000  # bytes of a value: masks may make it longer, and clients and brokers take a million unless told otherwise
)
BLOCK = 4096  # neighbours in the source whose partitions are drawn together: to begin costs as much as so many
KNOWN = 512  # blocks whose draws are kept: records of a region come from many partitions in turns
SHIFT = 60 - 20  # a block's number is its partition's, moved up by so many bits, and its own
DRAW = np.dtype(">u4")


UNTIMED = 0  # a record that gets the time of its commit


def coarse_times(records: Sequence[Record]) -> Numbers:
    """The whole minutes of records: all that any role may see of when they were sent."""
    times: Numbers = Records.of(records).timestamps // COARSE * COARSE
    return times


def keeps_keys(view: View) -> bool:
    """Whether a view shows anything of a record's key.

    >>> keeps_keys(View("ward", show=())), keeps_keys(View("ward", show=(), service={"key": "pass"}))
    (False, True)
    """
    return bool(view.service.get("key", "drop") != "drop")


class Disguise:
    """How one role's records are keyed, placed, timed and ordered; the same record always alike (replays)."""

    def __init__(self, view: View, source: str, partitions: int, keys: KeyRing) -> None:
        self._kind = view.service.get("key", "drop")
        self.keeps_keys = keeps_keys(view)
        if self._kind not in ("drop", "pseudonym", "pass"):
            raise PolicyError(
                f"expected drop, pseudonym or pass, found {self._kind!r}", where=f"views.{view.name}.service.key"
            )
        self._partitions = partitions
        self._drawn: dict[int, NDArray[np.uint32]] = {}  # of the blocks that were asked for last
        self._secret = keys.derive(DEFAULT, "view records", role=view.name, domain=source)
        self._places = self._hash(b"places", b"", 32)

    @property
    def alone(self) -> bool:
        """Whether the view has one partition, which all records go to."""
        return self._partitions == 1

    def dress(self, record: Record, value: bytes | None, *, by: bytes | None = None) -> Outgoing | None:
        """The outgoing record; none for a tombstone whose key the role does not see.

        ``by`` is what draws its partition instead of its key or where it stood: an invented record must not share the
        place of the real one it stands by, nor may a partition tell the members of a group apart.
        """
        key = self.key_of(record.key)
        if value is None and key is None:
            return None
        placed = by if by is not None else key
        partition = self.partition_at(record.partition, record.offset) if placed is None else self.partition_by(placed)
        return Outgoing(partition, key, value, record.timestamp // COARSE * COARSE)

    def dress_many(self, records: Sequence[Record], values: Sequence[bytes], times: Numbers | None) -> Dressed:
        """:meth:`dress` for many records with a value; most roles see no keys, and that goes fast.

        ``times`` are theirs, coarse (:func:`coarse_times`); without, they get the time of their commit.
        """
        if self._kind != "drop":
            pairs = zip(records, values, strict=True)
            made = Dressed.of(d for r, v in pairs if (d := self.dress(r, v)) is not None)
            return made if times is not None else made.untimed()
        stood = Records.of(records)
        partitions = self.partitions_at(stood.partitions, stood.offsets) if not self.alone else None
        return Dressed(values, partitions, times)

    def partition_by(self, by: bytes) -> int:
        """The partition drawn by the role's own key from something that must share one: a key, a group."""
        return 0 if self.alone else int.from_bytes(self._hash(b"place", by), "big") % self._partitions

    def partition_at(self, partition: int, offset: int) -> int:
        """Where a record without a key goes: drawn by the role's own key from where it stood."""
        return int(self.partitions_at(np.array([partition]), np.array([offset]))[0])

    def partitions_at(self, partitions: Numbers, offsets: Numbers) -> Numbers:
        """:meth:`partition_at` of many records."""
        blocks = (partitions << SHIFT) | (offsets // BLOCK)
        # records of one partition mostly come in stretches: blocks are looked up where another begins
        new = np.ones(len(blocks), np.bool_)
        new[1:] = blocks[1:] != blocks[:-1]
        found, which = np.unique(blocks[new], return_inverse=True)
        if len(found) > KNOWN:  # from far apart: in halves, so that memory is bounded
            half = len(partitions) // 2
            parts = (slice(half), slice(half, None))
            return np.concatenate([self.partitions_at(partitions[part], offsets[part]) for part in parts])
        if len(self._drawn) + len(found) > KNOWN:
            self._drawn.clear()
        draws = np.stack([self._draws(block) for block in found.tolist()] or [np.zeros(BLOCK, DRAW)])
        rows = which[np.cumsum(new) - 1]
        out: Numbers = draws[rows, offsets % BLOCK].astype(np.int64) % self._partitions
        return out

    def _draws(self, block: int) -> NDArray[np.uint32]:
        """What a block's records draw by: a stream of AES, of which a few thousand bytes cost as much as one hash."""
        drawn = self._drawn.get(block)
        if drawn is None:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

            partition, number = divmod(block, 1 << SHIFT)
            begin = partition.to_bytes(4, "big") + number.to_bytes(8, "big") + bytes(4)  # behind it the stream counts
            cipher = Cipher(algorithms.AES(self._places), modes.CTR(begin)).encryptor()
            drawn = self._drawn[block] = np.frombuffer(cipher.update(bytes(DRAW.itemsize * BLOCK)), DRAW)
        return drawn

    def shuffle(self, outgoing: Dressed, commit: bytes) -> Dressed:
        """The records of one commit in an order of the role's own."""
        seed = int.from_bytes(self._hash(b"order", commit), "big")
        order = np.random.Generator(np.random.PCG64(seed)).permutation(len(outgoing))
        return outgoing.ordered(order)

    def key_of(self, key: bytes | None) -> bytes | None:
        """What the role sees of a record's key."""
        if key is None or self._kind == "drop":
            return None
        return key if self._kind == "pass" else self._hash(b"key", key).hex().encode()

    def _hash(self, purpose: bytes, data: bytes, size: int = 16) -> bytes:
        return hashlib.blake2b(data, digest_size=size, key=self._secret, person=purpose.ljust(16, b"\0")).digest()
