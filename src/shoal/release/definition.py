"""What a stream's state was made under: a state goes on only under what says the same.

Held records and counted people stand in a snapshot as values, codes and fingerprints of the hierarchies, masks and
promises that it was made under. Under others they would be judged as what they are not: a box of the former tree would
be given to people whom it does not hide. So every snapshot carries a fingerprint of each thing that decides what is
counted or published, by its place in the policy, and nothing of it is read before all of them are found equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.core.errors import InputError, UsageError
from shoal.core.said import fingerprint, meant, said

if TYPE_CHECKING:
    from shoal.release.stream import StreamJob

FORM = "shoal-stream"
VERSION = 1
LISTED = 3  # places that an error names
Definition = dict[str, str]
AGAIN = "go back to what it was made with, or start anew without the snapshot: what is held in it is then withheld"


class Saved(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A snapshot of a stream: how many events it has seen, under what, and the state of its method."""

    form: str
    version: int
    first: int
    definition: Definition
    state: bytes


def definition_of(job: StreamJob) -> Definition:
    """A fingerprint of all that decides what a job counts and publishes, by place.

    Who may read a view, what is waived, reports and checkpoints are not among it.

    >>> from shoal.release.job import job_of
    >>> from shoal.release.wishes import Wishes
    >>> one, two = (definition_of(job_of(Wishes({"z": z, "window": "1h"}))) for z in (2, 3))
    >>> [place for place in one if one[place] != two[place]]
    ['promises']
    """
    view = job.view
    schema = job.schema if view is None else view.schema  # a value that is of no declared type withholds its event
    told: dict[str, Any] = {"columns": list(schema.columns)}
    for name, column in schema.columns.items():
        plain = meant(column)
        told[f"columns.{name}.hierarchy"] = plain.pop("hierarchy", None)
        told[f"columns.{name}"] = plain
    if view is not None:
        told["show"] = [view.shown, sorted(view.masks), view.hidden]
        told |= {f"masks.{name}": said(mask, view.folder) for name, mask in view.masks.items()}
    told["promises"] = sorted(msgspec.json.encode(said(promise), order="sorted").decode() for promise in job.promises)
    told["method"] = said(job.method)
    told["seed"] = job.seed or 0
    return {place: fingerprint(value) for place, value in told.items()}


def saved(first: int, definition: Definition, state: bytes) -> bytes:
    """A snapshot as bytes.

    >>> resumed(saved(7, {"method": "1f"}, b"state"), {"method": "1f"})
    (7, b'state')
    """
    return msgspec.msgpack.encode(Saved(FORM, VERSION, first, definition, state))


def resumed(snapshot: bytes, definition: Definition, *, where: str = "snapshot") -> tuple[int, bytes]:
    """How many events a snapshot has seen, and its state; an error if it was made under another definition."""
    try:
        found = msgspec.msgpack.decode(snapshot, type=Saved)
    except (msgspec.MsgspecError, ValueError):
        found = None
    if found is None or found.form != FORM or found.version != VERSION:
        raise InputError(
            "this is no snapshot of a stream that says what it was made with",
            where=where,
            hint="continue with the program that wrote it, or start anew without it: what it holds is then withheld",
        )
    if other := differing(found.definition, definition):
        more = f" and {len(other) - LISTED:,} more" if len(other) > LISTED else ""
        raise UsageError(
            f"the snapshot was made with something else declared: {', '.join(other[:LISTED])}{more}",
            where=where,
            hint=AGAIN,
        )
    return found.first, found.state


def adopted(snapshot: bytes, definition: Definition) -> bytes:
    """A snapshot that was written before snapshots said what they were made with, by who knows that it was this.

    >>> resumed(adopted((7).to_bytes(8, "little") + b"state", {"method": "1f"}), {"method": "1f"})
    (7, b'state')
    """
    # a number of events in eight bytes, never so large that the last of them is used; the new form begins with a list
    if len(snapshot) < 8 or snapshot[7]:
        return snapshot
    return saved(int.from_bytes(snapshot[:8], "little"), definition, snapshot[8:])


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The places where two definitions are not the same.

    >>> differing({"method": "1f", "masks.zip": "2a"}, {"method": "30"})
    ['masks.zip', 'method']
    """
    return sorted(place for place in {*before, *now} if before.get(place) != now.get(place))
