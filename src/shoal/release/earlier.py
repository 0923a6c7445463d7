"""What a release tells together with earlier ones of the same people: the composition attack.

Somebody whose quasi values are known stands in a group of the new release and fits some rows of an earlier one. If
their sensitive value is the same in both, it is among the values of both: the others of the new group are ruled out,
and who is left may be fewer people, or less diverse, than promised (Ganta, Kasiviswanathan and Smith 2008). Where both
releases show the same handle of a person (a pseudonym), their groups are intersected person by person. A value that
stands once in either, as a measurement, links the two rows that have it, whatever its role: the person of the new row
fits the cells of the earlier one, too. Plain columns are tried one by one, and all that both releases show together.

The promises are judged over who is left. The attacker is taken to know the quasi values of everyone, as for the
promises themselves, and the hierarchies; a label that cannot be resolved could be anyone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.errors import UsageError
from shoal.core.groups import Finding, Groups
from shoal.core.levels import Levels
from shoal.core.table import Table
from shoal.measures.attack import Nodes, fitting, members
from shoal.promises.base import Promise, those_about
from shoal.promises.rules import least_people
from shoal.verifier import group, intersection, withheld

CELLS = 200_000_000  # of register entries x values that are looked at


@dataclass(frozen=True)
class Known:
    """The new release and what its makers know of it: rows in the same order everywhere."""

    released: pl.DataFrame
    register: pl.DataFrame  # the quasi columns before they were generalized
    people: pl.Series | None
    handles: Sequence[str]  # shown columns that name people
    quasi: Sequence[str]
    sensitive: Sequence[str]
    levels: Mapping[str, Levels]
    nodes: Mapping[str, Nodes]


def nodes_of(table: Table) -> dict[str, Nodes]:
    """The labels of every quasi column, with the values under each."""
    return {name: members(levels) for name, levels in zip(table.names, table.levels, strict=True)}


def together(known: Known, earlier: pl.DataFrame, promises: Sequence[Promise], name: str) -> list[Finding]:
    """The promises, judged over who is left when an earlier release is compared with the new one.

    O(groups of the earlier release x rows + rows x values).
    """
    on = [c for c in known.quasi if c in earlier.columns]
    about = [c for c in known.sensitive if c in earlier.columns]
    handles = [c for c in known.handles if c in earlier.columns]
    apart = {*known.quasi, *about, *handles}
    plain = [c for c in known.released.columns if c in earlier.columns and c not in apart]
    if not on or not (about or handles or plain):
        raise UsageError(
            "the earlier release has no quasi column of this one, or nothing else in common with it",
            where=f"previous, {name}",
            hint="give a release of the same people with the same names of columns",
        )
    # a withheld row of the earlier release tells nothing about anybody
    shown = earlier.filter(pl.Series(~withheld(earlier, on)))
    findings = []

    def judged(groups: Groups, asked: Sequence[Promise], by: str) -> list[Finding]:
        found = [promise.judge(groups) for promise in asked]
        return [msgspec.structs.replace(f, promise=f"{f.promise} beside {name}, by {by}") for f in found]

    about_groups = those_about(promises, "groups")
    for column in about:
        # as they compare: 7 and 7.0 of two files are one value
        texts, value = distinct(comparable(known.released[column]).cast(pl.String))
        groups = _left(known, _fits(known, shown, on, column, texts), value)
        findings += judged(groups, [p for p in about_groups if p.sensitive in (None, column)], column)
    # each plain column alone, and all of them at once: some link rows only in combination
    for columns in [*([c] for c in plain), *([[*plain, *about]] if plain and len(plain) + len(about) > 1 else [])]:
        linked = _linked(known, shown, on, columns)
        if linked is not None:
            findings += judged(_left(known, *linked), about_groups, " and ".join(columns))
    k = least_people(promises)
    for column in handles:
        cut = intersection(
            shown, known.released, on, [shown[column].cast(pl.String), known.released[column].cast(pl.String)]
        )
        smallest = int(cut["smallest"])
        kept = not cut["people"] or smallest >= k
        title = f"{k}-anonymity beside {name}, by {column}"
        findings.append(Finding(title, kept, k, smallest, int(cut["people"]), int(cut["unique"]), "people"))
    return findings


def _left(known: Known, fits: NDArray[np.bool_], value: NDArray[np.int64]) -> Groups:
    """For everyone, those of their new group whose value also fits the earlier release, as groups of their own.

    ``fits`` says of every person which values their rows of the earlier release allow, ``value`` which one a row has.
    """
    labels = group(known.released, known.quasi)
    # who shares a group and the values that fit is left among the same others: judged once
    # packed, eight values a byte: a row per person may have thousands
    at = np.unique(np.column_stack([labels, np.packbits(fits, axis=1)]), axis=0, return_index=True)[1]
    order = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[order], np.arange(int(labels.max(initial=-1)) + 2))
    rows, where, number = [], [], 0
    for person in at:
        crowd = order[start[labels[person]] : start[labels[person] + 1]]
        left = crowd[fits[person, value[crowd]]]
        if len(left):  # none: the value changed, and the attacker learns nothing but that
            rows.append(left)
            where.append(np.full(len(left), number, np.int32))
            number += 1
    chosen = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    people = None if known.people is None else known.people.gather(chosen).rank("dense").fill_null(0).cast(pl.Int32)
    return Groups(
        np.concatenate(where) if where else np.zeros(0, np.int32),
        {name: known.released[name].gather(chosen) for name in known.sensitive},
        None if people is None else people.to_numpy(),
        known.levels,
    )


def distinct(texts: pl.Series) -> tuple[pl.Series, NDArray[np.int64]]:
    """The different texts, missing ones included, and which of them each row has."""
    rank = texts.rank("dense").fill_null(0).to_numpy()
    _, first, value = np.unique(rank, return_index=True, return_inverse=True)
    return texts.gather(first), value


def _fits(known: Known, earlier: pl.DataFrame, on: Sequence[str], column: str, texts: pl.Series) -> NDArray[np.bool_]:
    """Per row of the new release and value: whether a row of the earlier one with this value fits the person."""
    out = _room(known, len(texts), f"column {column!r} has {len(texts):,} values")
    place = {text: at for at, text in enumerate(texts.to_list())}
    had = earlier.with_columns(comparable(earlier[column]).cast(pl.String).alias(column))
    values = had.group_by(on, maintain_order=True).agg(pl.col(column).unique())
    for row, match in fitting(values.select(on), known.register, on, known.nodes):
        codes = [place[text] for text in values[column][row].to_list() if text in place]
        out[np.ix_(match, np.array(codes, np.int64))] = True
    return out


def _linked(
    known: Known, earlier: pl.DataFrame, on: Sequence[str], columns: Sequence[str]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]] | None:
    """Per person the earlier cells that fit them, and per new row the cells of the earlier row that it is linked to.

    A row that is linked to none is ruled out by nothing: it has a value of its own, which fits everyone.
    """
    new, old = (_once(frame, columns).with_row_index("at") for frame in (known.released, earlier))
    both = new.join(old, on="key", suffix="_before")
    if not both.height:
        return None
    cells, which = distinct_rows(earlier.select(on)[both["at_before"].to_numpy()])
    out = _room(known, cells.height + 1, f"{both.height:,} rows are linked by {', '.join(map(repr, columns))}")
    # the last column is the value of rows that are linked to none
    out[:, -1] = True
    for at, match in fitting(cells, known.register, on, known.nodes):
        out[match, at] = True
    value = np.full(known.released.height, cells.height, np.int64)
    value[both["at"].to_numpy()] = which
    return out, value


def _once(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The combined values of columns; none where they stand in several rows."""
    texts = [
        (
            pl.Series([repr(v) for v in frame[c].to_list()], dtype=pl.String)
            if frame[c].dtype.is_nested()
            else comparable(frame[c]).cast(pl.String)
        )
        .fill_null("\0")
        .alias(f"{at}")
        for at, c in enumerate(columns)
    ]
    # with a mark between them: ("a", "bc") and ("ab", "c") differ
    keys = pl.DataFrame(texts).select(pl.concat_str(pl.all(), separator="\1").alias("key"))
    # a value in several rows does not say which of them
    return keys.select(pl.when(pl.len().over("key") == 1).then("key"))


def distinct_rows(cells: pl.DataFrame) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """The different rows, and which of them each row is."""
    labels = group(cells, cells.columns)
    first = np.unique(labels, return_index=True)[1]
    return cells[first], labels.astype(np.int64)


def _room(known: Known, many: int, what: str) -> NDArray[np.bool_]:
    if known.register.height * max(1, many) > CELLS:
        raise UsageError(
            f"{what}: too many to compare with an earlier release",
            where="previous",
            hint="make it quasi, or leave it out",
        )
    return np.zeros((known.register.height, many), np.bool_)
