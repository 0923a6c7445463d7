"""Which records of a view are one person's, by what the view itself shows: pseudonyms, tokens, a number in clear."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from shoal.release.descriptions import free_texts, tied_by_words
from shoal.release.linking import Codes, codes, combined, people_per_key

ALMOST_ALL = 0.95  # of a column's records lie under a value that is one person's alone
STABLE = 0.5  # of the people with several records have one value in them all: a column that describes people


def trajectories(data: pl.DataFrame, columns: Iterable[str], people: Codes) -> tuple[list[str], Codes]:
    """The columns that tie records of one person together, and a number per record (-1: tied to nothing).

    A value that several people share (a short pseudonym, an invented name) ties nothing. Where columns describe people
    (zip, sex, year of birth), whoever is alone with them is tied by them as by a pseudonym; so do free texts, by the
    words that those of one person have in common.

    >>> data = pl.DataFrame({"who": ["x", "x", "y"], "sex": ["f", "f", "f"]})
    >>> names, ties = trajectories(data, data.columns, np.array([1, 1, 2]))
    >>> names, ties.tolist()
    (['who'], [0, 0, 2])
    """
    names: list[str] = []
    label = np.arange(len(people))
    tied = np.zeros(len(people), np.bool_)
    for name in columns:
        values = data[name]
        # a value that never comes again ties nothing together
        if values.dtype.is_nested() or values.n_unique() == len(values):
            continue
        value = codes(values)
        frame = pl.DataFrame({"value": value, "who": people, "known": values.is_not_null()})
        owned = frame.select((pl.col("who").n_unique().over("value") == 1) & pl.col("known")).to_series().to_numpy()
        known = int(frame["known"].sum())
        repeated = known > values.drop_nulls().n_unique()
        if known and repeated and owned.sum() >= ALMOST_ALL * known:
            names.append(name)
            label = _joined(label, value, owned)
            tied |= owned
    loose = ~tied  # what a pseudonym ties stays as it is: more records in one cell may tell less of each
    if not loose.any():
        return names, label
    for name in free_texts(data, [c for c in columns if c not in names]):
        value = tied_by_words(data[name], people)
        if (value >= 0).any():
            names.append(name)
        label = _joined(label, value, (value >= 0) & loose)
        tied |= (value >= 0) & loose
    stable = _stable(data, [c for c in columns if c not in names], people)
    described = list(stable.values())
    for value in [*described, combined(described, len(people))] if described else []:
        owned = _owned(value, people) & loose
        if owned.any():
            names += [c for c in stable if c not in names]
        label = _joined(label, value, owned)
        tied |= owned
    return names, np.where(tied, label, -1)


def _stable(data: pl.DataFrame, columns: Iterable[str], people: Codes) -> dict[str, Codes]:
    """Columns that say the same of a person in all records of theirs, for most of those who have several."""
    order = np.argsort(people, kind="stable")
    _, first, size = np.unique(people[order], return_index=True, return_counts=True)
    if not (size > 1).any():
        return {}
    out = {}
    for name in columns:
        if data[name].dtype.is_nested():
            continue
        value = codes(data[name])
        same = np.logical_and.reduceat(value[order] == np.repeat(value[order][first], size), first)
        if value.max() > 0 and same[size > 1].mean() >= STABLE:
            out[name] = value
    return out


def _owned(value: Codes, people: Codes) -> np.ndarray:
    return np.asarray(people_per_key(value, people) == 1)


def _joined(label: Codes, value: Codes, owned: np.ndarray) -> Codes:
    """Labels of records that share a value become one: the least of them."""
    out = label.copy()
    while True:
        least = np.full(int(value.max(initial=0)) + 1, len(label))
        np.minimum.at(least, value[owned], out[owned])
        fresh = out.copy()
        fresh[owned] = least[value[owned]]
        by_label = np.arange(len(label))  # whoever had the old label gets the new one
        np.minimum.at(by_label, out, fresh)
        fresh = by_label[out]
        if np.array_equal(fresh, out):
            return out
        out = fresh
