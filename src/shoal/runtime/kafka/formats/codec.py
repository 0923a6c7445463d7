"""The seam of record formats: inside the worker every record is JSON; a codec stands at both ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Codec(Protocol):
    """Turns records of the source into JSON, and a role's JSON into what its topic carries.

    ``InputError`` on a value it cannot read: the record becomes a pointer in the dead-letter topic. Without a codec
    records are JSON already.
    """

    def decode(self, value: bytes) -> bytes:
        """The record as JSON."""

    def encode(self, role: str, record: bytes) -> bytes:
        """A role's record as its topic carries it."""

    def register(self, topics: Mapping[str, str]) -> object:
        """Make known how these topics are written, by role, before anything is."""
