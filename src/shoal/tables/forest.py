"""Forest: the graph approximation of Aggarwal et al. (2005), Garai 2019, chapter 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.table import Table
from shoal.kernels.shared.promises import Rules
from shoal.promises.base import Promise
from shoal.promises.rules import compile_rules
from shoal.tables.base import Grouping, Progress, silent, taken
from shoal.tables.settle import Labels, Settled

if TYPE_CHECKING:
    from shoal.kernels.tables.neighbours import Crowd

MOST_CELLS = 1_000_000  # of a table that is one forest: neighbours are sought among all rows
REGION = 4_096  # rows, of larger ones


class Forest(Settled, frozen=True, tag="forest"):
    """Groups that keep every promise, with a generalization cost proven to be near the optimum for k alone.

    Protects against what its promises protect against; keeps k, every l and t. Does not protect against an attacker
    who compares two releases of the same people.

    Rows are vertices; an edge costs, summed over the columns, the lowest level at which both values agree over the
    highest level, times the column's weight. Every component that does not keep the promises grows by the cheapest
    edge out of it; then components of more than max(2k-1, 3k-5) rows are cut in two (cuts A to D with Steiner
    vertices). For k alone the cost is at most max(2k-1, 3k-5) times the optimum. The original breaks k where a
    Steiner vertex is moved by a cut; here the real rows of both parts are counted before a cut is made, and another
    cut is sought. Around a Steiner vertex with branches of k-1 rows there may be none: such a component stays, with
    at most 3k-3 rows. For l and t a component grows until it keeps them, and is cut only where both parts do: the
    bound is not proven then.
    ``improve`` spends that many steps of the second phase of `local` on the groups, which leaves the bound and lowers
    the loss. ``suppress`` is the share of rows that may be suppressed where a group breaks l or t.

    Cost: a nearest-neighbour search per row, by branch and bound over the distinct rows: between O(rows log rows) and
    O(rows² x columns), by how alike rows are; memory O(rows x columns), never an edge that is not in the forest. A
    table of more than a million cells is first cut into regions of about 4,096 rows (:mod:`shoal.tables.regions`), a
    forest each: the bound then holds within each region.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> table = code(pl.DataFrame({"age": [20, 21, 50, 52]}), Schema.build(quasi={"age": None}))
    >>> Forest().group(table, [KAnonymity(2)]).labels.tolist()
    [0, 0, 1, 1]

    Reference: G. Aggarwal et al., Approximation algorithms for k-anonymity, Journal of Privacy Technology, 2005.
    """

    improve: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.improve < 0:
            raise UsageError("`improve` must not be negative", where="forest")

    def part(self, table: Table, rules: Rules, seed: int, progress: Progress) -> Labels:
        """See :class:`Settled`. The seed decides which component grows first."""
        from shoal.tables.regions import cut

        if table.matrix.size <= MOST_CELLS:
            return _planted(table, rules, seed)
        region = cut(table.matrix, table.shape(), max(REGION, 8 * rules.k)).of(table.matrix)
        out, made = np.empty(table.size, np.int32), 0
        for at in np.unique(region):
            here = region == at
            labels = _planted(taken(table, here), _rules_of(rules, here), seed)
            out[here] = labels + made
            made += int(labels.max()) + 1
            progress(0.8 * made * rules.k / table.size, "forest, region by region")
        return out

    def form(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """See :class:`TableMethod`."""
        from shoal.tables.improve import improve

        found = super().form(table, promises, seed=seed, progress=progress)
        if not self.improve:
            return found
        return Grouping(improve(table, compile_rules(table, promises), found.labels, self.improve, seed))


def _planted(table: Table, rules: Rules, seed: int) -> Labels:
    """The components of one forest over all rows, cut where they are too large."""
    from shoal.kernels.tables.decompose import decompose
    from shoal.kernels.tables.forest import build, plant

    # in the order of the sorted rows, components would always grow from one corner of the table
    order = np.random.default_rng(seed).permutation(table.size)
    target, _, _ = build(crowd_of(table), table.shape(), rules, order)
    labels: Labels = decompose(plant(target, rules.k), rules, oversized(rules.k))[0]
    return labels


def _rules_of(rules: Rules, rows: NDArray[np.bool_]) -> Rules:
    """The rules for some of the rows, numbered anew; values are still compared with the whole table."""

    def of(entries: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.ascontiguousarray(entries[..., rows]) if entries.shape[-1] else entries

    return rules._replace(person=of(rules.person), value=of(rules.value), pair=of(rules.pair))


def oversized(k: int) -> int:
    """A component is oversized when it has *more* than this many rows.

    Garai writes ≥ once and > once; with ≥ a component of 2k-1 rows would have to be cut, which cannot be.
    """
    return max(2 * k - 1, 3 * k - 5)


def largest(k: int) -> int:
    """The most rows of a group, for k alone.

    Where no cut is left all branches of some Steiner vertex have at most k-1 rows. Taking branches until k rows are
    reached takes at most 2k-2, and leaves fewer than k: 3k-3 in all.

    >>> largest(3)
    6
    """
    return max(2 * k - 1, 3 * k - 3)


def crowd_of(table: Table) -> Crowd:
    """The distinct rows, sorted for the neighbour search: columns that are dear to mismatch come first."""
    from shoal.kernels.tables.neighbours import Crowd, alike_runs, edge_part

    shape = table.shape()
    n = table.size
    # a sample is enough to rank columns; a fixed seed, or the same table would be sorted otherwise each time
    some = np.random.default_rng(0).integers(0, n, (2, 500))
    dear = []
    for j in range(len(table.names)):
        pairs = list(zip(*table.matrix[some, j], strict=True))
        part = {pair: edge_part(shape, j, *pair) for pair in set(pairs)}  # few values: the same pairs again and again
        dear.append(sum(part[pair] for pair in pairs))
    column = np.argsort(-np.array(dear), kind="stable")
    matrix = table.matrix[:, column]
    members = np.lexsort(matrix.T[::-1]).astype(np.int32) if len(column) else np.arange(n, dtype=np.int32)
    ordered = matrix[members]
    change: NDArray[np.bool_] = np.ones(n, np.bool_)
    change[1:] = (ordered[1:] != ordered[:-1]).any(1)
    first = np.append(np.flatnonzero(change), n)
    of_row = np.empty(n, np.int32)
    of_row[members] = np.cumsum(change) - 1
    tuples = np.ascontiguousarray(ordered[change])
    alike, after = alike_runs(tuples)
    return Crowd(tuples, alike, after, first, members, of_row, column)
