"""What a release tells beside its promises, said in its report: by its groups alone, and to who reruns the method."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.groups import Groups
from shoal.core.known import doubts, refuse_few
from shoal.core.levels import Levels
from shoal.core.scale import NARROW, ends_that_help, middle
from shoal.promises.base import Promise, unnamed
from shoal.promises.l_diversity import LDiversity
from shoal.tables.base import TableMethod, looks_at_values
from shoal.verifier import grouped

_SPACES = re.compile(r"[\s\u200b-\u200f\u2060\ufeff\u00ad]+")  # also those that nobody sees
NOTHING = "a rerun of the method tells nothing about sensitive values: groups were made without a look at them"
BOUNDED = (
    "groups were made blindly: who reruns the method multiplies the odds of a value by at most 4 in a group that "
    "unites two blind groups, and by 2m in one of m"
)
DRAWN = (
    "groups were chosen with a look at sensitive values: what a rerun of the method tells is not bounded, "
    "`--set blind=true` bounds it"
)
FIXED = (
    "the method draws nothing: who knows everyone's quasi values can run it again in every world that fits, and rule "
    "out those in which it would have chosen other levels; no bound holds"
)


def homogeneous(
    released: pl.DataFrame,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    promises: Sequence[Promise],
    people: pl.Series | None,
) -> list[str]:
    """A note for each sensitive column that nothing is promised about and that whole groups share. O(rows log rows).

    >>> shown = pl.DataFrame({"age": ["[20, 29]"] * 2, "diag": ["flu"] * 2})
    >>> homogeneous(shown, ["age"], ["diag"], [], None)[0][:55]
    "column 'diag': in 1 of 1 groups, with 2 rows, everyone "
    """
    # closeness bounds how far a group is from all, and may let it share what most people have
    asked = {p.sensitive for p in promises if p.sensitive is not None and not p.compares_with_all}
    about = [name for name in sensitive if name not in asked and name in released.columns]
    if not about or not released.height:
        return []
    groups = grouped(released, quasi, about, people)
    sizes = groups.sizes()
    return [note for name in about if (note := _shared(groups, sizes, name))]


def _shared(groups: Groups, sizes: np.ndarray, name: str) -> str:
    alike = LDiversity(2, name).measure(groups)[0] < 2
    if not alike.any():
        return ""
    people = f"{int(sizes[alike].sum()):,} {groups.unit}"
    return (
        f"column {name!r}: in {int(alike.sum()):,} of {groups.count:,} groups, with {people}, everyone has the same "
        "value, and who knows that someone is in such a group knows it; l-diversity prevents that"
    )


def spellings(people: pl.Series) -> list[str]:
    """A note if names that differ only in case, blanks or the form of their letters are counted as different people.

    >>> spellings(pl.Series(["Ada", "ada ", "Bob"]))[0][:45]
    '2 people are told apart by case, blanks or th'
    >>> spellings(pl.Series([1, 2]))
    []
    """
    if people.dtype != pl.String:
        return []
    names = people.drop_nulls().unique()
    alike = pl.Series([_SPACES.sub("", unicodedata.normalize("NFKC", name)).casefold() for name in names.to_list()])
    counts = alike.value_counts(name="n")
    # all of them, not pairs: so many names are in doubt
    many = int(counts.filter(pl.col("n") > 1)["n"].sum())
    if not many:
        return []
    told = f"{many:,} people are told apart by case, blanks or the form of letters only, and counted as different"
    return [f"{told}: write names alike if they are the same people"]


def outliers(columns: Mapping[str, tuple[Levels, NDArray[np.float64]]]) -> list[str]:
    """A note for each column of numbers with heavy tails: how little the width says, and the ends that would help.

    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.core.table import code
    >>> table = code(pl.DataFrame({"pay": [*range(1000), 9_000_000]}), Schema({"pay": Column("quasi")}))
    >>> outliers({"pay": (table.levels[0], np.ones(1001))})[0][-61:]
    'few rows take the rest; `top: 990` would code them as one end'
    """
    out = []
    for name, (levels, often) in columns.items():
        if levels.numbers is None:
            continue
        share = middle(levels.numbers, often)
        if share >= NARROW:
            continue
        ends = ends_that_help(levels.numbers, often, whole=levels.values.dtype.is_integer())
        help_ = " and ".join(f"`{end}: {value:g}`" for end, value in ends.items())
        told = f"column {name!r}: 98 % of its rows lie in {100 * share:.1f} % of its width, few rows take the rest"
        out.append(f"{told}; {help_} would code them as one end" if help_ else told)
    return out


def no_sets(method: str, columns: Mapping[str, Levels]) -> list[str]:
    """A note for each column that a method shows wholly or not at all, though sets were asked for.

    >>> from shoal.core.hierarchy.sets import Sets
    >>> no_sets("lattice", {"ward": Sets().compile(pl.Series(["eye", "skin"]))[0]})[0][:58]
    "column 'ward': `lattice` gives whole columns one level, so"
    """
    told = f"`{method}` gives whole columns one level, so `sets` shows its values or `*`, and never a set"
    help_ = "local, mondrian, topdown, forest or microaggregation would publish sets"
    return [f"column {name!r}: {told}; {help_}" for name, levels in columns.items() if levels.most]


def rerun(method: TableMethod, promises: Sequence[Promise]) -> str:
    """What who knows the register and the method learns by running it again.

    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.tables.mondrian import Mondrian
    >>> rerun(Mondrian(), [KAnonymity(5)]) == NOTHING
    True
    """
    if not looks_at_values(promises):
        return NOTHING
    if method.blind:
        return BOUNDED
    return DRAWN if method.local_recoding else FIXED


def unmet(
    known: Mapping[str, tuple[int, int]], promises: Sequence[Promise], values: Mapping[str, pl.Series]
) -> list[str]:
    """What a policy says about values that are not there: of hierarchies and of promises that name some.

    An error where a hierarchy knows no value at all, or nobody has a value that is named.

    >>> unmet({"zip": (6, 7)}, [], {})
    ["the hierarchy of column 'zip' knows 6 of 7 values: what it does not know is withheld"]
    """
    # a hierarchy that knows not one value would suppress its column: most likely it is another column's
    refuse_few(known, least=0)
    return [*doubts(known), *unnamed(promises, values)]
