"""Role views of a table, ready to hand out: masks, then the method if promises are made; and their pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.core.errors import ShoalError
from shoal.core.keys import KeyRing
from shoal.core.release import Release, cleaned
from shoal.policy.document import Policy
from shoal.release.collusion import Pool, Seen, collusion
from shoal.release.table import anonymize
from shoal.tables import TableMethod
from shoal.tables.base import Progress, silent
from shoal.views.frames import FrameView
from shoal.views.role_view import RoleView
from shoal.views.table import table_view


@dataclass(frozen=True)
class RoleRelease:
    """What a role gets of a table: the rows, which rows of the input they are, and how many were withheld."""

    role: str
    data: pl.DataFrame
    rows: pl.Series
    withheld: int
    notes: tuple[str, ...] = ()
    release: Release | None = None


def view(
    frame: pl.DataFrame,
    policy: Policy,
    role: str,
    *,
    keys: KeyRing | None = None,
    method: TableMethod | str | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> RoleRelease:
    """One role's view of a table. A view with promises is verified before it is returned.

    A stream method in the policy cannot work on a table that is already whole: the default table method takes its
    place, under the same promises, and a note says so.
    """
    chosen = policy.view(role)
    keys = KeyRing.load() if keys is None else keys
    if not chosen.promises:
        gate = FrameView(RoleView.of(policy, role), frame.schema, keys)
        viewed = gate.apply(frame)
        return RoleRelease(role, cleaned(viewed.data), viewed.rows, viewed.withheld, tuple(gate.notes(frame)))
    notes: list[str] = []
    using = method or chosen.method
    if using is not None and not isinstance(using, (str, TableMethod)):
        notes.append(f"{using.use} is a method for streams: a table method keeps the promises here")
        using = None
    masked = table_view(policy, role, frame, keys)
    notes += masked.notes
    release = anonymize(
        masked.frame,
        schema=masked.schema,
        promises=chosen.promises,
        method=using,
        seed=seed,
        title=f"{policy.dataset}, {role}",
        progress=progress,
    )
    kept = masked.rows.gather(np.flatnonzero(release.groups >= 0))
    data = masked.finish(release.data)
    return RoleRelease(role, data, kept, frame.height - len(kept), tuple(notes), release)


def seen(release: RoleRelease, policy: Policy) -> Seen:
    """What colluders may use of a role's release."""
    resolved = RoleView.of(policy, release.role)
    generalized = set(policy.schema.quasi) if release.release is not None else set()
    keyed = {c for c, m in resolved.masks.items() if m.keyed and not getattr(m, "linkable", False)}
    return Seen(
        release.role,
        release.data,
        release.rows,
        keyed=frozenset(keyed),
        clear=frozenset(set(resolved.shown) - generalized),
        hidden=frozenset(resolved.hides),
    )


def pools(
    frame: pl.DataFrame,
    policy: Policy,
    *,
    keys: KeyRing | None = None,
    roles: Sequence[str] | None = None,
    most: int = 2,
    seed: int = 0,
) -> tuple[list[Pool], dict[str, str]]:
    """What roles learn together over a sample, and the roles whose view could not be made, with the reason."""
    views: list[Seen] = []
    failed: dict[str, str] = {}
    for role in roles or list(policy.views):
        try:
            views.append(seen(view(frame, policy, role, keys=keys, seed=seed), policy))
        except ShoalError as error:
            failed[role] = error.message
    subject = policy.schema.subject
    people = frame[subject] if subject is not None and subject in frame.columns else None
    return collusion(views, policy.schema, subjects=people, most=most), failed


def notes(frame: pl.DataFrame, policy: Policy, *, keys: KeyRing | None = None) -> list[str]:
    """What the masks of each role could not do as they were asked, over a sample: counts, never values."""
    ring = KeyRing.load() if keys is None else keys
    out: list[str] = []
    for role in policy.views:
        try:
            found = FrameView(RoleView.of(policy, role), frame.schema, ring).notes(frame)
        except ShoalError:  # told already: this view cannot be made from the sample
            continue
        out += [f"views.{role}.masks.{note}" for note in found]
    return out
