"""The first attack: join a release with a register on the columns both have (Garai 2019, section 1.4.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED, read
from shoal.core.levels import Levels
from shoal.core.notebook import Shown

Nodes = Mapping[str, frozenset[str]]
MOST_CELLS = 200_000_000  # of one answer per register entry that are remembered


class Attack(Shown, msgspec.Struct, frozen=True):
    """What joining with a register finds.

    ``unique`` released rows match exactly one entry of the register, ``none`` match nobody; ``expected`` is how many
    of the released rows an attacker who guesses evenly among the matches names rightly.

    >>> Attack(rows=3, unique=1, none=0, expected=2.0, smallest=1)
    <Attack on 3 rows: 1 match one person, 2.0 named rightly>
    """

    rows: int
    unique: int
    none: int
    expected: float
    smallest: int  # fewest matches of a row that has any

    def __str__(self) -> str:
        return (
            f"{self.unique:,} of {self.rows:,} released rows match exactly one person of the register; "
            f"{self.none:,} match nobody\n"
            f"guessing evenly, an attacker names {self.expected:,.1f} of them rightly; "
            f"the fewest matches of a row: {self.smallest:,}"
        )

    def __repr__(self) -> str:
        return f"<Attack on {self.rows:,} rows: {self.unique:,} match one person, {self.expected:,.1f} named rightly>"


def join(
    released: pl.DataFrame, register: pl.DataFrame, on: Sequence[str], nodes: Mapping[str, Nodes] | None = None
) -> Attack:
    """Match released rows with register entries. O(different released rows x register).

    ``nodes`` gives, per column, the values under each label of its hierarchy; a label that cannot be resolved could
    be anyone.

    >>> join(pl.DataFrame({"age": ["[20, 29]", "31"]}), pl.DataFrame({"age": [21, 25, 31]}), ["age"]).unique
    1
    """
    # rows that read alike match the same people: each kind is looked for once
    cells = released.select(on).group_by(on, maintain_order=True).len()
    counts = np.zeros(cells.height, np.int64)
    for at, match in fitting(cells.select(on), register, on, nodes):
        counts[at] = int(match.sum())
    weight = cells["len"].to_numpy().astype(np.float64)
    found = counts > 0
    return Attack(
        rows=released.height,
        unique=int(weight[counts == 1].sum()),
        none=int(weight[~found].sum()),
        expected=float((weight[found] / counts[found]).sum()),
        smallest=int(counts[found].min()) if found.any() else 0,
    )


def fitting(
    cells: pl.DataFrame,
    register: pl.DataFrame,
    on: Sequence[str],
    nodes: Mapping[str, Nodes] | None = None,
    *,
    unknown: bool = True,
) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """For each row of cells, which register entries it may stand for: an ``unknown`` label for anyone, or for nobody.

    >>> cells, register = pl.DataFrame({"age": ["[20, 29]"]}), pl.DataFrame({"age": [21, 31]})
    >>> [(at, match.tolist()) for at, match in fitting(cells, register, ["age"])]
    [(0, [True, False])]
    """
    columns = {name: _register(register[name]) for name in on}
    cache: dict[tuple[str, str | None], NDArray[np.bool_]] = {}
    for at, row in enumerate(cells.select(on).iter_rows()):
        match = np.ones(register.height, np.bool_)
        for name, value in zip(on, row, strict=True):
            text = None if value is None else str(value)
            key = (name, text)
            if key not in cache:
                # most cells repeat; cleared whole where a column has too many of its own
                if len(cache) * register.height > MOST_CELLS:
                    cache.clear()
                cache[key] = _matches(columns[name], text, (nodes or {}).get(name, {}), unknown)
            match &= cache[key]
        yield at, match


def _register(column: pl.Series) -> tuple[pl.Series, NDArray[np.float64] | None]:
    numbers = column.cast(pl.Float64).to_numpy() if column.dtype.is_numeric() else None
    return column.cast(pl.String), numbers


def _matches(
    column: tuple[pl.Series, NDArray[np.float64] | None], text: str | None, nodes: Nodes, unknown: bool
) -> NDArray[np.bool_]:
    """Which register entries a released cell may stand for."""
    texts, numbers = column
    if text is None:
        # a missing value is published as one, and stands for those who lack it too
        return texts.is_null().to_numpy()
    if text == SUPPRESSED:
        return np.ones(len(texts), np.bool_)
    cell = read(text)
    # a value of the column may read like a set itself: the hierarchy's own labels go first
    if cell.kind == "set" and text not in nodes:
        found = [_matches(column, member, nodes, unknown=False) for member in cell.members]
        return np.asarray(np.any(found, axis=0))
    if cell.kind == "interval" and numbers is not None:
        with np.errstate(invalid="ignore"):
            upper = numbers <= cell.high if cell.closed else numbers < cell.high
            return np.asarray((numbers >= cell.low) & upper)
    if cell.kind == "exact" and numbers is not None and text not in nodes:
        try:  # a number is the same number however its column writes it
            return np.asarray(numbers == float(text))
        except ValueError:
            pass
    if text in nodes:
        return texts.is_in(sorted(nodes[text])).fill_null(False).to_numpy()
    exact = (texts == text).fill_null(False).to_numpy()
    if exact.any():
        return exact
    # a prefix says itself what it covers, also to who has no hierarchy
    if text.endswith(SUPPRESSED):
        return texts.str.starts_with(text.rstrip(SUPPRESSED)).fill_null(False).to_numpy()
    return np.full(len(texts), unknown)


def members(levels: Levels) -> dict[str, frozenset[str]]:
    """The values under each label of a hierarchy, for an attacker who has it too.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> sorted(members(Prefix(length=2).compile(pl.Series(["ab", "ac"]))[0])["a*"])
    ['ab', 'ac']
    """
    texts = levels.values.cast(pl.String).to_list()
    out: dict[str, set[str]] = {}
    # level 0 is the values themselves
    for level in range(1, levels.depth):
        labels = levels.labels(level).gather(levels.codes[:, level]).to_list()
        for label, value in zip(labels, texts, strict=True):
            if value is not None:
                out.setdefault(label, set()).add(value)
    return {label: frozenset(values) for label, values in out.items()}
