"""What jobs from options and jobs from a policy share: seeds, keys, waivers, earlier releases."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from shoal.connect.files import read_released
from shoal.core.frames import from_any
from shoal.core.keys import KeyRing
from shoal.core.schema import Schema
from shoal.policy.document import WAIVERS
from shoal.promises.base import Promise
from shoal.release.wishes import Wishes
from shoal.report.model import ending
from shoal.views.role_view import RoleView

OF_STREAMS = "a stream leaves in the order of its decisions"
OF_CHUNKS = "a growing table is not compared with other releases"
OF_CURVES = "curves leave by their groups"


class Common(NamedTuple):
    """What every job has, whatever it makes.

    >>> Common.of(Wishes({"seed": 3}), "release").seed
    3
    """

    title: str
    keys: KeyRing
    seed: int | None
    keep_order: bool
    waived: tuple[str, ...]

    @classmethod
    def of(cls, wishes: Wishes, title: str, waived: tuple[str, ...] = ()) -> Common:
        """Take it from the wishes; ``waived`` are the risks that a policy accepts."""
        # read from the environment only if nobody handed one in: a caller's ring must not be mixed with the machine's
        ring = wishes.take("keys")
        # what a policy accepts and what the caller accepts add up
        names = (*waived, *wishes.take("waive", ()))
        unknown = [n for n in names if n not in WAIVERS]
        if unknown:
            wishes.refuse("waive", f"there is no risk called {unknown[0]!r}", f"one of: {', '.join(WAIVERS)}")
        return cls(
            str(wishes.take("title", title)),
            KeyRing.load() if ring is None else ring,
            wishes.take("seed"),
            # `waive: [order]` and `keep_order` are one wish in two spellings
            bool(wishes.take("keep_order", False)) or "order" in names,
            tuple(dict.fromkeys(names)),
        )


def reported(wishes: Wishes, more: dict[str, Any]) -> dict[str, Any]:
    """The job has a report; the name of its file must say which kind.

    >>> reported(Wishes({"report": "r.html"}), {"title": "release"})
    {'title': 'release'}
    """
    ending(wishes.take("report"))
    return more


def earlier_releases(wishes: Wishes, schema: Schema) -> tuple[tuple[str, pl.DataFrame], ...]:
    """Earlier releases of the same people: files or frames, one or several."""
    given = wishes.take("previous", ())
    many = list(given) if isinstance(given, list | tuple) else [given]
    found = []
    for number, one in enumerate(many, 1):
        # by the name of the file alone: its folder would stand in the report
        if isinstance(one, str | os.PathLike):
            found.append((Path(one).name, read_released(str(one), schema.quasi)))
        else:
            found.append((f"earlier release {number}", from_any(one)[0]))
    return tuple(found)


def saved_model(
    wishes: Wishes, schema: Schema, promises: Sequence[Promise], view: RoleView | None = None
) -> Path | None:
    """Where the model of the release is to be kept, if new rows can be read as it reads them."""
    path = wishes.take("save_model")
    if path is None:
        return None
    # the model would show what a mask hides
    if (view is not None and view.masks) or any(column.derive is not None for column in schema.columns.values()):
        wishes.refuse(
            "save_model", "a model takes rows as they come, without masks and derived columns", "leave it out"
        )
    refuse_later_rows(wishes, "save_model", promises)
    if Path(path).exists():  # told now: afterwards the release would be there without its model
        hint = "take another name, or delete it together with its counter"
        wishes.refuse("save_model", "there is a model of this name, whose release stands", hint)
    return Path(path)


def refuse_later_rows(wishes: Wishes, name: str, promises: Sequence[Promise]) -> None:
    """Refuse what takes in rows later where a promise follows people through all of theirs."""
    if any(p.follows_people for p in promises):
        why = "later rows would change what the rows of their people tell together"
        wishes.refuse(name, why, "leave it out, and release the whole table again")


def nothing_to_waive(
    wishes: Wishes, more: dict[str, Any], why: str, *, order: bool = False, but: Sequence[str] = ()
) -> None:
    """Refuse waivers that would change nothing; with ``order``, keeping the order of the input is one that does.

    ``but`` are those that change something here.
    """
    if more["keep_order"] and not order:
        wishes.refuse("keep_order", why, "leave it out")
    # `order` is another spelling of `keep_order`, judged above
    if [name for name in more["waived"] if name not in ("order", *but)]:
        wishes.refuse("waive", f"has no effect: {why}", "leave it out")
