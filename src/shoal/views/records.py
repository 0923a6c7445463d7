"""Views on JSON records: bytes in, bytes out. One compiled function for all roles; the record is parsed once.

What nobody sees is skipped. The rest is decoded to its declared type, what a role sees in clear, too: an object in a
column of numbers, or a list in a column without a type, would carry fields nobody declared. A record that does not fit
is refused as a whole (and withheld by the runner). What leaves is written again, so that spelling (``1.10e0``,
``"\\u004b"``) tells nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from shoal.core.errors import InputError, UsageError
from shoal.core.keys import KeyRing
from shoal.core.lines import Lines
from shoal.views.record_cells import record_cells
from shoal.views.record_writer import RecordWriter
from shoal.views.role_view import RoleView
from shoal.views.sampling import refuse_sample

# all that a record can do to its decoder: one of them must not end the run for the others
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError)
FEWEST = 64  # records for which the fast road is worth while: it is compiled, and asks numpy for arrays
MOST_ODD = 8  # records of a batch that the fast road leaves out; if there are more, it is not the road for them


@dataclass
class Batch:
    """The views of a batch: per role the masked records, and which records were refused, and why.

    >>> Batch([[b'{"age":30}']], [(1, "Expected `int`")]).refused
    [(1, 'Expected `int`')]
    """

    views: list[Sequence[bytes]]
    refused: list[tuple[int, str]] = field(default_factory=list)


class RecordGate:
    """All roles' views of a JSON record.

    >>> from shoal.core.schema import Column, Schema
    >>> schema = Schema({"pid": Column("subject"), "name": Column("identifier"), "diag": Column("sensitive")})
    >>> views = RecordGate([RoleView.resolve("ward", schema, ["diag"])])
    >>> views(b'{"pid": 7, "name": "F. Ott", "diag": "E10", "iban": "DE02"}')
    (b'{"pid":"*","name":"*","diag":"E10"}',)
    """

    def __init__(self, views: Sequence[RoleView], keys: KeyRing | None = None) -> None:
        if not views:
            raise UsageError("there is no view")
        for view in views:
            refuse_sample(view)
            if view.windows:
                raise UsageError(
                    "this view masks windows of records, not single ones",
                    where=f"views.{view.role}",
                    hint="run it as a stream (shoal.views.windows) or on a file",
                )
        self.roles = [view.role for view in views]
        self._masks = [view.start(keys or KeyRing()) for view in views]
        self._call, self._many = RecordWriter(views, self._masks).functions()
        self._cells = record_cells(views, self._masks)

    def __call__(self, record: bytes) -> tuple[bytes, ...]:
        """Each role's record. ``InputError`` names the place and what was expected, never a value."""
        try:
            out = self._call(record)
        # the message of a decoder names the place and the type, never the value
        except UNREADABLE as error:
            raise InputError(_reason(error), where="record") from None
        self.settle()
        return out

    def many(self, records: Sequence[bytes]) -> Batch:
        """Each role's records, in order; records that do not fit are refused and the others go on."""
        views: list[Sequence[bytes]] = []
        refused: list[tuple[int, Exception]] = []
        at, odd = 0, 0
        while at < len(records) or not views:
            left = records[at:] if at else records
            fast = self._cells if odd <= MOST_ODD and len(left) >= FEWEST else None
            made: list[Sequence[bytes]] = self._fast(left) if fast is not None else [[] for _ in self.roles]
            done = len(made[0])
            if done < len(left) or fast is None:
                # the fast road ends before a record that it cannot read: that one goes the slow road, or all of them do
                rest = left[done : done + 1] if fast is not None else left
                told: list[tuple[int, Exception]] = []
                made = _joined(made, [*self._many(rest, UNREADABLE, told.append)])
                refused += [(at + done + place, error) for place, error in told]
                done, odd = done + len(rest), odd + 1
            views = _joined(views, made)
            at += done
        self.settle()
        return Batch(views, [(place, _reason(error)) for place, error in refused])

    def _fast(self, records: Sequence[bytes]) -> list[Sequence[bytes]]:
        """The first so many by the fast road; none of them if a mask cannot take one of their values."""
        assert self._cells is not None
        try:
            return [*self._cells.many(records)]
        except UNREADABLE:  # the other road tells whose it is
            return [[] for _ in self.roles]

    def settle(self) -> None:
        """Make durable what the masks stored, before anyone reads their tokens."""
        for masks in self._masks:
            for mask in masks.values():
                mask.settle()


def _joined(some: list[Sequence[bytes]], more: list[Sequence[bytes]]) -> list[Sequence[bytes]]:
    """The records of all roles, one batch behind the other."""
    if not some or not len(some[0]):
        return more
    return [Lines.joined([Lines.of(a), Lines.of(b)]) for a, b in zip(some, more, strict=True)]


def _reason(error: Exception) -> str:
    if isinstance(error, msgspec.MsgspecError):
        return str(error)
    if isinstance(error, OverflowError):
        return "a moment that UTC has no year for"
    return "the text is not UTF-8" if isinstance(error, UnicodeDecodeError) else "nested too deeply"
