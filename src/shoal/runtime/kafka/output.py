"""What a view's records look like on their topic: nothing that joins them with another view of the same records.

Two views of one source can be joined by anything they share: offset, partition, key, header, timestamp. So keys are
pseudonyms of the role's own or dropped, the partition is drawn by the role's own key, timestamps are coarse, headers
are dropped, and the records of one commit are shuffled. What is left is which commit a record belongs to: larger
commits hide more.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import NamedTuple

from shoal.core.errors import PolicyError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.policy.document import View

COARSE = 60_000  # milliseconds


class Record(NamedTuple):
    """One record of the source: where it stood, and what it carried."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class Outgoing(NamedTuple):
    """One record for a view topic."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class Disguise:
    """How one role's records are keyed, placed, timed and ordered; the same record always alike (replays)."""

    def __init__(self, view: View, source: str, partitions: int, keys: KeyRing) -> None:
        self._kind = view.service.get("key", "drop")
        if self._kind not in ("drop", "pseudonym", "pass"):
            raise PolicyError(
                f"expected drop, pseudonym or pass, found {self._kind!r}", where=f"views.{view.name}.service.key"
            )
        self._partitions = partitions
        self._source = source.encode()
        self._secret = keys.derive(DEFAULT, "view records", role=view.name, domain=source)

    @property
    def keeps_keys(self) -> bool:
        """Whether anything of a record's key is seen."""
        return bool(self._kind != "drop")

    def dress(self, record: Record, value: bytes | None, *, invented: bool = False) -> Outgoing | None:
        """The outgoing record; none for a tombstone whose key the role does not see.

        An invented record must not share the place of the real one it stands by: its own content places it.
        """
        key = self._key(record.key)
        if value is None and key is None:
            return None
        placed = key if key is not None else b"%d:%d" % (record.partition, record.offset)
        if invented and value is not None:
            placed = value
        partition = int.from_bytes(self._hash(b"place", placed), "big") % self._partitions
        return Outgoing(partition, key, value, record.timestamp // COARSE * COARSE)

    def shuffle(self, outgoing: Sequence[Outgoing], commit: bytes) -> list[Outgoing]:
        """The records of one commit in an order of the role's own."""
        mixed = list(outgoing)
        random.Random(self._hash(b"order", commit)).shuffle(mixed)
        return mixed

    def _key(self, key: bytes | None) -> bytes | None:
        if key is None or self._kind == "drop":
            return None
        return key if self._kind == "pass" else self._hash(b"key", key).hex().encode()

    def _hash(self, purpose: bytes, data: bytes) -> bytes:
        return hashlib.blake2b(data, digest_size=16, key=self._secret, person=purpose.ljust(16, b"\0")).digest()
