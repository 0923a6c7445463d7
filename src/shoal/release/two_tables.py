"""Two tables of the same people, released together: patients and their visits, customers and their orders.

Joined by the person they are one table of people with many rows. It is released under a promise that follows people
through their rows (trajectory-anonymity), and parted again: all rows of a person lie in groups of the same people, so
what is said about the person reads alike in all of them. People without any row form groups of their own, or the other
table would tell of rows that never were.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import InputError, PolicyError, PromiseError, UsageError
from shoal.core.frames import from_any, require
from shoal.core.groups import Finding
from shoal.core.order import publication_order
from shoal.core.release import Release
from shoal.core.schema import Schema
from shoal.policy.document import Policy, View
from shoal.policy.load import load
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.rules import least_people
from shoal.release.job import job_of
from shoal.release.wishes import Wishes
from shoal.verifier import verify

# what else may be asked; cells of another form, and rows in their order, could not be parted again
ASKED = ("method", "effort", "seed", "keys", "k", "l", "t", "promises", "waive", "title")
FEW = "people without rows, too few for a group of their own"


@dataclass(frozen=True)
class TwoTables:
    """Two tables as they may be published, joined by the pseudonym that both show.

    ``people`` has a row per person, ``rows`` those of the other table. ``withheld`` counts rows of either, by reason;
    ``report`` is that of the joined table, ``alone`` that of the people without rows, if there are any; ``findings``
    are what the verifier says of the table of people as it would be published.
    """

    people: Any
    rows: Any
    withheld: Mapping[str, int]
    report: Any
    alone: Any = None
    findings: tuple[Finding, ...] = field(default=())


def anonymize_two(
    people: Any, rows: Any, *, policy: str | Path | Policy, view: str | None = None, **asked: Any
) -> TwoTables:
    """Two tables of the same people, released together and verified: patients and visits, customers and orders.

    ``people`` has a row per person, ``rows`` any number of them; both have the subject column of the ``policy``, and no
    other column is in both. The ``view`` shows the subject under a pseudonym and promises ``trajectory-anonymity``: so
    both tables may be joined by whoever reads them, and all that is known of a person's rows still fits k people.
    What else is ``asked`` (``method``, ``effort``, ``seed``, ``keys``, ``waive``, stronger promises) is as for
    :func:`shoal.anonymize`.

    Of people with more rows than k others have, rows are withheld; of people without rows, all if they are fewer than
    k. Does not protect against what trajectory-anonymity does not protect against. Cost: that of the joined table.

    >>> from shoal.core.keys import KeyRing
    >>> from shoal.policy.load import parse
    >>> policy = parse('''
    ... columns: {pid: subject, age: {role: quasi, type: int}, week: {role: quasi, type: int}}
    ... views:
    ...   research:
    ...     show: [pid, age, week]
    ...     masks: {pid: pseudonym}
    ...     promises: [{use: trajectory-anonymity, k: 2}]''')
    >>> patients = pl.DataFrame({"pid": [1, 2, 3, 4], "age": [30, 31, 50, 52]})
    >>> visits = pl.DataFrame({"pid": [1, 1, 2, 2], "week": [3, 9, 3, 8]})
    >>> keys = KeyRing({"default": {1: bytes(32)}})
    >>> made = anonymize_two(patients, visits, policy=policy, keys=keys, seed=1)
    >>> sorted(made.people["age"]), sorted(made.rows["week"])
    (['[30, 31]', '[30, 31]', '[50, 52]', '[50, 52]'], ['3', '3', '[8, 9]', '[8, 9]'])
    """
    first, back_of_people = from_any(people)
    second, back_of_rows = from_any(rows)
    document = policy if isinstance(policy, Policy) else load(policy)
    chosen = document.view(view)
    _refuse_ignored(chosen, asked)
    subject = _checked(document, chosen, first, second)
    whole = second.join(first, on=subject, how="inner", maintain_order="left")
    if whole.height < second.height:
        strangers = second.height - whole.height
        raise InputError(
            f"{strangers:,} rows belong to nobody in the table of people",
            where="rows",
            hint="add them, or leave them out",
        )
    job = job_of(Wishes({**asked, "policy": document, "view": chosen.name}))
    joined = job.run(whole)
    own = [name for name in joined.data.columns if name in first.columns]
    shown = joined.data.select(own).unique(maintain_order=True)
    # promises as they were asked for: an option may have made the policy's stronger
    chosen = msgspec.structs.replace(chosen, promises=job.promises)
    plain = {name: value for name, value in asked.items() if name not in ("k", "l", "t", "promises")}
    alone, few = _alone(first.join(second, on=subject, how="anti"), document, chosen, plain)
    withheld = dict(joined.withheld) | ({FEW: few} if few else {})
    if alone is not None:
        shown = pl.concat([shown, alone.data.select(own)])
        for reason, count in alone.withheld.items():
            withheld[reason] = withheld.get(reason, 0) + count
    quasi = [name for name in own if document.schema[name].role == "quasi" and chosen.shows(name)]
    verdict = verify(shown, quasi, [KAnonymity(least_people(chosen.promises))], people=shown[subject], every_row=True)
    # one row per person, or their own columns would tell their rows apart
    if not verdict.kept or shown[subject].n_unique() < shown.height:
        raise PromiseError("the table of people breaks its promise when it is parted", where="verify")
    seed = asked.get("seed")
    seed = secrets.randbits(63) if seed is None else seed
    others = joined.data.select(subject, *(name for name in joined.data.columns if name not in own))
    return TwoTables(
        back_of_people(*_ordered(shown, seed, "people")),
        back_of_rows(*_ordered(others, seed, "rows")),
        withheld,
        joined.report,
        None if alone is None else alone.report,
        verdict.findings,
    )


def _refuse_ignored(view: View, asked: Mapping[str, Any]) -> None:
    """Refuse what could not be kept of two tables, rather than ignore it."""
    for name in asked:
        if name not in ASKED:
            raise UsageError("has no effect on two tables", where=name, hint=f"one of: {', '.join(ASKED)}")
    waived = asked.get("waive") or ()
    if "order" in (*view.waive, *([waived] if isinstance(waived, str) else waived)):
        raise UsageError("rows of two tables leave in an order of their own", where="waive", hint="leave out `order`")


def _checked(policy: Policy, view: View, people: pl.DataFrame, rows: pl.DataFrame) -> str:
    """The column that joins both tables, if tables and view go together."""
    where, subject = f"views.{view.name}", policy.schema.subject
    if subject is None:
        raise PolicyError("two tables are joined by the person, and no column is the subject", where="columns")
    if not any(p.follows_people for p in view.promises):
        raise PolicyError(
            "what is known of all rows of a person must fit others, too",
            where=f"{where}.promises",
            hint="promise trajectory-anonymity",
        )
    if subject not in view.masks or not view.shows(subject):
        raise PolicyError("nothing would join the two tables", where=where, hint=f"show {subject!r} under a pseudonym")
    for name, frame in (("people", people), ("rows", rows)):
        require(frame, [subject], name)
        if frame[subject].null_count():
            raise InputError(f"{frame[subject].null_count():,} rows say not whose they are", where=name)
    if people[subject].n_unique() < people.height:
        twice = people.height - people[subject].n_unique()
        raise InputError(
            f"{twice:,} rows are of people who have one already", where="people", hint="one row per person"
        )
    both = sorted((set(people.columns) & set(rows.columns)) - {subject})
    if both:
        raise InputError(f"the column {both[0]!r} is in both tables", where="rows", hint="leave it out of one of them")
    return subject


def _alone(frame: pl.DataFrame, policy: Policy, view: View, asked: Mapping[str, Any]) -> tuple[Release | None, int]:
    """The people without rows, as a table of their own; or how many they are, if they are too few for a group."""
    if frame.height < least_people(view.promises):
        return None, frame.height
    there = set(frame.columns)
    narrow = msgspec.structs.replace(
        view,
        show=tuple(name for name in policy.schema.columns if name in there and view.shows(name)),
        masks={name: masks for name, masks in view.masks.items() if name in there},
        promises=tuple(p for p in view.promises if p.sensitive is None or p.sensitive in there),
    )
    schema = Schema({name: column for name, column in policy.schema.columns.items() if name in there})
    document = msgspec.structs.replace(policy, schema=schema, views={view.name: narrow})
    return job_of(Wishes({**asked, "policy": document, "view": view.name})).run(frame), 0


def _ordered(frame: pl.DataFrame, seed: int, name: str) -> tuple[pl.DataFrame, NDArray[np.int64], tuple[str, ...]]:
    """In an order that tells nothing; of no cell it is said which one of the input it was."""
    return frame[publication_order(frame, seed, name)], np.zeros(frame.height, np.int64), ()
