"""Role views of a table, ready to hand out: masks, then the method if promises are made; and their pooling."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import polars as pl

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import ShoalError
from shoal.core.frames import from_any
from shoal.core.groups import Finding
from shoal.core.keys import KeyRing
from shoal.core.known import known_of
from shoal.core.order import publication_order
from shoal.core.release import Release, cleaned
from shoal.policy.document import Policy
from shoal.promises.base import those_about
from shoal.release.base import Job
from shoal.release.collusion import Pool, Seen, collusion
from shoal.release.wishes import Wishes
from shoal.tables.base import Progress, silent
from shoal.views.frames import FrameGate
from shoal.views.role_view import RoleView


class MasksReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a view without promises gave.

    >>> MasksReport(title="ward", rows=2, released=2, withheld={}).text()
    'ward: 2 of 2 rows; nothing is promised'
    """

    title: str
    rows: int
    released: int
    withheld: dict[str, int]
    findings: list[Finding] = []
    verified: bool = False
    notes: list[str] = []

    def json(self) -> str:
        """All figures, for machines."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def text(self) -> str:
        """A line for the terminal, and one for everything that could not be done as it was asked."""
        first = f"{self.title}: {self.released:,} of {self.rows:,} rows; nothing is promised"
        gone = [f"Withheld: {count:,} rows ({reason})" for reason, count in self.withheld.items()]
        return "\n".join([first, *gone, *(f"Note: {note}" for note in self.notes)])


@dataclass(frozen=True, kw_only=True)
class MasksJob(Job):
    """A view that promises nothing: every value passes the gate, and rows leave in an order that tells nothing.

    >>> from shoal.policy.load import parse
    >>> from shoal.release.job import job_of
    >>> policy = parse("{columns: {name: identifier, diag: sensitive}, views: {ward: {show: [diag]}}}")
    >>> job = job_of(Wishes({"policy": policy, "view": "ward", "seed": 0}))
    >>> job.run(pl.DataFrame({"name": ["F. Ott"], "diag": ["E10"]})).data.rows()
    [('*', 'E10')]
    """

    def run(self, data: Any, *, progress: Progress = silent) -> Release:
        """See :class:`Job`. O(rows x columns)."""
        assert self.view is not None
        frame = from_any(data)[0]
        gate = FrameGate(self.view, frame.schema, self.keys)
        viewed = gate.apply(frame)
        notes = [*self.notes, *gate.notes(frame)]
        order = self._order(viewed.data)
        counted = {"window too small for its mask": viewed.withheld, "not in the sample": viewed.unsampled}
        withheld = {reason: count for reason, count in counted.items() if count}
        report = MasksReport(
            title=self.title,
            rows=frame.height,
            released=viewed.data.height,
            withheld=withheld,
            notes=notes,
        )
        rows = viewed.rows.to_numpy()[order]
        # without a byte of withheld rows in its memory
        return Release(data=cleaned(viewed.data[order]), withheld=withheld, report=report, positions=rows, notes=notes)

    def _order(self, data: pl.DataFrame) -> np.ndarray[Any, np.dtype[np.int64]]:
        """By contents, then shuffled by the seed, or by chance: nothing of the input's order is left."""
        if self.keep_order:
            return np.arange(data.height)
        if self.seed is None:
            # drawn by chance, it needs no sort by contents first
            return np.random.default_rng(secrets.randbits(128)).permutation(data.height)
        assert self.view is not None
        return publication_order(data, self.seed, self.view.role)


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
    progress: Progress = silent,
    **wishes: Any,
) -> RoleRelease:
    """One role's view of a table, as the policy says. A view with promises is verified before it is returned.

    >>> from shoal.policy.load import parse
    >>> policy = parse("{columns: {name: identifier, diag: sensitive}, views: {ward: {show: [diag]}}}")
    >>> view(pl.DataFrame({"name": ["F. Ott"], "diag": ["E10"]}), policy, "ward", keys=KeyRing()).data.rows()
    [('*', 'E10')]
    """
    from shoal.release.job import job_of

    job = job_of(Wishes({"policy": policy, "view": role, "keys": keys, **wishes}))
    made = job.run(frame, progress=progress)
    assert made.positions is not None
    return RoleRelease(
        role,
        made.data,
        pl.Series(made.positions),
        sum(made.withheld.values()),
        tuple(made.notes),
        # a view without promises has a report, and no verdict that could be read as one
        made if job.promises else None,
    )


def seen(release: RoleRelease, policy: Policy, frame: pl.DataFrame) -> Seen:
    """What colluders may use of a role's release of ``frame``.

    >>> from shoal.policy.load import parse
    >>> policy = parse("{columns: {name: identifier, diag: sensitive}, views: {ward: {show: [diag]}}}")
    >>> frame = pl.DataFrame({"name": ["F. Ott"], "diag": ["E10"]})
    >>> seen(view(frame, policy, "ward", keys=KeyRing()), policy, frame).columns
    ['diag']
    """
    resolved = RoleView.of(policy, release.role)
    generalized = set(policy.schema.quasi) if release.release is not None else set()
    mixed = [c for c, m in resolved.masks.items() if m.partly_keyed]
    return Seen(
        release.role,
        release.data.with_columns(_told_apart(release, c, frame) for c in mixed if c in frame.columns),
        release.rows,
        # with `linkable` all roles have one key, so that the forms can be compared
        keyed=frozenset(c for c, m in resolved.masks.items() if m.keyed and not getattr(m, "linkable", False)),
        # what a method generalizes is not clear, though no mask is on it
        clear=frozenset(set(resolved.shown) - generalized),
        hidden=frozenset(resolved.hides),
        reads={c: m.reads for c, m in resolved.masks.items()},
    )


class Uncompared(msgspec.Struct, frozen=True):
    """Why a view is in no pool: it could not be made of the sample, or it was ``made`` and cannot be compared.

    >>> Uncompared("the table has 3 rows, and 5 must be alike", made=False).made
    False
    """

    reason: str
    made: bool


def _told_apart(release: RoleRelease, column: str, frame: pl.DataFrame) -> pl.Series:
    """A column that is masked by a key only on a condition: of a masked value, only that it is masked."""
    shown, was = release.data[column].cast(pl.String), frame[column].gather(release.rows).cast(pl.String)
    return pl.DataFrame({"is": shown, "was": was}).select(
        pl.when(pl.col("is").eq_missing(pl.col("was"))).then(pl.col("is")).otherwise(pl.lit(SUPPRESSED)).alias(column)
    )[column]


def pools(
    frame: pl.DataFrame,
    policy: Policy,
    *,
    keys: KeyRing | None = None,
    roles: Sequence[str] | None = None,
    most: int = 2,
    seed: int = 0,
) -> tuple[list[Pool], dict[str, Uncompared]]:
    """What roles learn together over a sample, and the roles whose view could not be compared, with the reason.

    >>> from shoal.policy.load import parse
    >>> policy = parse('''
    ... columns: {pid: subject, zip: quasi, diag: sensitive}
    ... views: {ward: {show: [zip, diag]}, office: {show: [pid, zip]}}''')
    >>> frame = pl.DataFrame({"pid": ["a", "b"], "zip": ["10115", "20095"], "diag": ["E10", "E11"]})
    >>> found, failed = pools(frame, policy, keys=KeyRing())
    >>> found[0].roles, found[0].linked, failed
    (['ward', 'office'], 2, {})
    """
    views: list[Seen] = []
    failed: dict[str, Uncompared] = {}
    for role in roles or list(policy.views):
        try:
            made = view(frame, policy, role, keys=keys, seed=seed)
        except ShoalError as error:
            failed[role] = Uncompared(error.message, made=False)
            continue
        if those_about(policy.view(role).promises, "curves"):
            failed[role] = Uncompared("envelopes of curves are not compared with other views", made=True)
        elif bool((made.rows < 0).any()):
            failed[role] = Uncompared("invented events are not compared with other views", made=True)
        else:
            views.append(seen(made, policy, frame))
    subject = policy.schema.subject
    people = frame[subject] if subject is not None and subject in frame.columns else None
    found = collusion(views, policy.schema, subjects=people, most=most, records=frame.height, originals=frame)
    return found, failed


def notes(frame: pl.DataFrame, policy: Policy, *, keys: KeyRing | None = None) -> list[str]:
    """What the masks of each role could not do as they were asked, over a sample: counts, never values.

    >>> from shoal.policy.load import parse
    >>> policy = parse("{columns: {diag: sensitive}, views: {ward: {show: [diag]}}}")
    >>> notes(pl.DataFrame({"diag": ["E10"]}), policy, keys=KeyRing())
    []
    """
    ring = KeyRing.load() if keys is None else keys
    out: list[str] = []
    for role in policy.views:
        try:
            found = FrameGate(RoleView.of(policy, role), frame.schema, ring).notes(frame)
        except ShoalError:  # told already: this view cannot be made from the sample
            continue
        out += [f"views.{role}.masks.{note}" for note in found]
    return out


def known(frame: pl.DataFrame, policy: Policy, *, keys: KeyRing | None = None) -> dict[str, tuple[int, int]]:
    """Per column with a hierarchy that some view uses: how many values of a sample it knows, and how many are there."""
    ring = KeyRing.load() if keys is None else keys
    out: dict[str, tuple[int, int]] = {}
    for role, chosen in policy.views.items():
        try:
            gate = FrameGate(RoleView.of(policy, role), frame.schema, ring)
            # a value of another type is not known to the hierarchy; it must not end the count
            fitted = gate.fit(frame, null_rows=True)
        except ShoalError:  # told already: this view cannot be made from the sample
            continue
        for name, column in policy.schema.columns.items():
            used = chosen.promises or any(m.use == "generalize" for m in chosen.masks.get(name, ()))
            if column.hierarchy is None or name in out or name not in fitted.columns or not used:
                continue
            if chosen.shows(name):
                out[name] = known_of(column.hierarchy, fitted[name])
    return out
