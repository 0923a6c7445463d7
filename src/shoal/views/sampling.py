"""Random rows: a share of the people is shown, the others are not there."""

from __future__ import annotations

import polars as pl

from shoal.core.errors import PolicyError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.texts import texts_of
from shoal.masks.keyed import fingerprint
from shoal.views.role_view import RoleView

# Who is in the sample is drawn with the key from the person: asking again shows the same people, so that no number
# of releases shows everybody, and all rows of a person come or stay together. A row of nobody is drawn by its cells.
ENOUGH = 2.0**64


def sampled(frame: pl.DataFrame, view: RoleView, keys: KeyRing) -> pl.Series:
    """Which rows of a frame a view shows: all, unless it has a ``sample``.

    >>> from shoal.core.schema import Column, Schema
    >>> view = RoleView.resolve("lab", Schema({"pid": Column("subject")}), ["pid"], sample=0.5)
    >>> ring = KeyRing({"default": {1: bytes(32)}})
    >>> made = sampled(pl.DataFrame({"pid": [f"{n}" for n in range(1000)]}), view, ring)
    >>> 400 < made.sum() < 600
    True
    """
    if view.sample is None:
        return pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True)
    of, below = fingerprint(keys.derive(DEFAULT, "sample", role=view.role), 8), view.sample * ENOUGH
    subject = view.schema.subject
    declared = [c for c in view.schema.given if c in frame.columns]
    people = texts_of(frame[subject]).to_list() if subject in frame.columns else [None] * frame.height
    nobody = [at for at, who in enumerate(people) if who is None]
    rows = dict(zip(nobody, frame.select(declared)[nobody].rows(), strict=True)) if nobody else {}
    known: dict[str, bool] = {}
    kept = []
    for at, who in enumerate(people):
        if who is None:
            # "row" and "person" keep the two apart: a row without a person is not drawn as one who reads like it
            kept.append(int.from_bytes(of("row", *map(str, rows[at])), "big") < below)
            continue
        if who not in known:
            known[who] = int.from_bytes(of("person", who), "big") < below
        kept.append(known[who])
    return pl.Series("kept", kept, dtype=pl.Boolean)


def refuse_sample(view: RoleView) -> None:
    """For roads that publish records one by one: whoever sees a record missing there knows whose it is."""
    if view.sample is not None:
        raise PolicyError(
            "a sample is drawn of a whole table, not of a stream",
            where=f"views.{view.role}.sample",
            hint="use `shoal view` on a file, or leave `sample` out of this view",
        )
