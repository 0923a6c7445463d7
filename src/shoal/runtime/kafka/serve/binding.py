"""What a group's offsets mean: positions in *this* source, next to what the changelog says was published.

A topic that was deleted and made again has the old name and other records; offsets of a group expire, and can be moved
by hand. Any of it would lose records or publish them twice without a word. So every commit also writes its offset and
the id of the source into the changelog, and a worker that gets a partition compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from shoal.connect.kafka import UnboundError
from shoal.runtime.kafka.serve.journal import Trouble
from shoal.runtime.kafka.state.changelog import FAR, Position, Seal, Stand, key_of

SOURCE = "@source"  # the name of the source's own position beside those of the views


class Binding:
    """Binds the offsets of one group to the id of its source and to the changelog."""

    def __init__(self, topic: str, source: str, seal: Seal) -> None:
        self._topic, self._source, self._seal = topic, source, seal

    def check(self, applied: Mapping[str, Any] | None, source: str) -> None:
        """The source is the one the views were applied to, and has not changed since we began."""
        known = (applied or {}).get("source")
        if known not in (None, source) or source != self._source:
            raise UnboundError(
                f"the source {self._topic!r} was deleted and made again: positions and state are of the former one",
                where="kafka",
                hint="`shoal serve apply` begins every view anew with it, in a new version",
            )

    def settle(
        self, partition: int, committed: int | None, known: Position | None, say: Callable[[str], None]
    ) -> int | None:
        """Where to read on: the group's offset, if the changelog agrees; the changelog's, if the group's is gone."""
        place = f"{self._topic}, partition {partition}"
        if known is not None and known.source != self._source:
            known = None
            if committed is not None:
                raise UnboundError(
                    "the group's offset is older than the source: it was deleted and made again",
                    where=place,
                    hint="stop the workers, delete the group's offsets (kafka-consumer-groups), and start again",
                )
        if committed is None and known is not None:
            gone = f"{place}: the group's offset is gone (expired or deleted)"
            say(Trouble(f"{gone}; going on at {known.next:,} by the changelog"))
            return known.next
        if committed is not None and known is not None and known.next != committed:
            raise UnboundError(
                f"the group stands at {committed:,}, but views are published up to {known.next:,}: someone moved it",
                where=place,
                hint=f"set it back to {known.next}, or publish anew: `shoal serve destroy`, then `apply`",
            )
        return committed

    def record(self, partition: int, offset: int) -> tuple[bytes, bytes]:
        """The changelog record of a commit."""
        key = key_of(SOURCE, "position")
        value = msgspec.msgpack.encode(Position(offset, 0, FAR, self._source))
        return key, self._seal.close(value, key, partition)

    @staticmethod
    def stand(offset: int) -> Stand:
        """What the note of a commit says of it."""
        return Stand(offset, 0, 0)
