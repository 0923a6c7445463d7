"""Phase 1 of `local`: tuples of the lattice opened by a rising price, and a place for every row that found none."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.release import boxes_of
from shoal.core.table import Table
from shoal.kernels.shared.boxes import group_boxes
from shoal.kernels.shared.promises import ALPHA, BETA, SLACK, T_EQUAL, Rules, holds, workspace
from shoal.kernels.tables.local_groups import make_groups
from shoal.kernels.tables.local_hooks import grows, only_counts_rows
from shoal.kernels.tables.local_pairs import Pairs
from shoal.kernels.tables.local_rest import absorb, grow_region, union_costs
from shoal.measures.loss import loss
from shoal.promises.base import Promise
from shoal.tables.base import Grouping, Progress, TableMethod, silent
from shoal.tables.improve import Improver, dense, draws, loss_of, make_index
from shoal.tables.local_prices import WHOLE, Schedule, lattice_size, open_tuples
from shoal.tables.regions import cut

Codes = NDArray[np.int32]
Labels = NDArray[np.int32]
Rows = NDArray[np.int64]
REGION = 16384  # rows among which groups are grown; half as many in tables of more than HUGE rows
HUGE = 500_000
FEW_GROUPS = 200  # times k: in tables of fewer rows cutting may do better than opening tuples
RIVALRY = 100_000  # rows up to which other methods try their groups, too, where a promise is about values
GIVEN_BACK = 256  # groups that the rest took in and may not need
BATCH = 256  # rows taken in between two looks at the groups
DRAWN = 200  # sets of k rows that are tried
STIRRED = 1_000  # rows up to which the last step of methods, which stirs groups, may cost much of the loss
DEAR = 5_000  # rows up to which a method tries whose cost is the square of them over k


def start(
    matrix: Codes,
    pairs: Pairs,
    rules: Rules,
    seed: int = 0,
    progress: Progress = silent,
    schedule: Schedule | None = None,
    grown: bool = False,
) -> Labels:
    """A label for every row; every group keeps the promises, if all rows as one group do.

    Groups are ``grown`` from single rows where there are too many level vectors to list, or on demand.
    """
    if not (grown or are_grown(pairs)):
        labels = open_tuples(matrix, pairs, rules, progress, schedule)
        rest = np.flatnonzero(labels < 0)
        if len(rest) >= rules.k:
            more = _grow(matrix, rest, pairs, rules, seed)
            labels[rest] = np.where(more >= 0, more + labels.max() + 1, -1)
    else:  # in many columns few tuples are shared, and each group is grown from its own rows
        labels = _grow(matrix, np.arange(len(matrix)), pairs, rules, seed, progress)
    return assign_rest(matrix, pairs, rules, labels)


def are_grown(pairs: Pairs) -> bool:
    """Whether there are too many level vectors to list, so that groups are grown instead."""
    return lattice_size(pairs) > WHOLE


def at_least(rules: Rules) -> Rules:
    """The same promises with k raised to the least number of rows that can keep the others: nothing smaller is tried.

    Only where every row is a person; a hierarchy or an order of values is not looked into.
    """
    if rules.people:
        return rules
    k = int(rules.k)
    for s, kind in enumerate(rules.kind.tolist()):
        if kind < ALPHA:
            k = max(k, int(np.ceil(rules.bound[s] - SLACK)))
        elif kind == ALPHA and not rules.node[s, : rules.size[s], 0].any():
            k = max(k, int(np.ceil(1 / rules.bound[s] - SLACK)))
        elif kind >= BETA:  # whatever value a group has, one of its rows must not be too large a share
            common = rules.overall[s, : rules.size[s]].max(initial=0.0)
            k = max(k, int(np.ceil(1 / max(SLACK, common * (1 + rules.bound[s])) - SLACK)))
        elif kind == T_EQUAL:
            k = max(k, _least_close(rules.overall[s, : rules.size[s]], float(rules.bound[s]), rules.value.shape[1]))
    return rules._replace(k=k)


def _least_close(overall: NDArray[np.float64], t: float, rows: int) -> int:
    """The least number of rows whose values can be t-close: whole rows can match a share of each value only so far."""
    for size in range(1, rows):
        whole = np.floor(overall * size + SLACK)
        rest = np.sort(overall * size - whole)[::-1][: size - int(whole.sum())]
        if whole.sum() + np.maximum(rest, 0.0).sum() >= (1 - t - SLACK) * size:
            return size
    return max(1, rows)


def hard(rules: Rules, rows: int, seed: int) -> bool:
    """Whether promises about values shape the groups: of sets of k rows drawn at random, most break one of them.

    Where most keep them, as with two diagnoses among five people, groups are nearly what k alone makes them.
    """
    if not len(rules.kind) or not rows:
        return False
    about_values, work = rules._replace(k=1), workspace(rules)
    picks = (draws(seed, 2, DRAWN * int(rules.k)) % np.uint64(rows)).astype(np.int32).reshape(DRAWN, -1)
    return sum(not holds(about_values, pick, 0, len(pick), work) for pick in picks) * 2 > DRAWN


class Rival(NamedTuple):
    """Groups that another method forms; ``drawn``: as that method would release them, by chance where values matter."""

    labels: Labels
    drawn: bool


def rivals(table: Table, promises: Sequence[Promise], rules: Rules, seed: int, at_hand: Improver) -> Iterator[Rival]:
    """Groups that other methods form: where there are few of them, opening tuples one by one leaves a poor last one.

    Growing groups one by one may also leave a rest that breaks promises about values; others part the whole. In a large
    table where the quickest of them come nowhere near the loss ``at_hand``, the others are not tried.
    """
    few = table.size < FEW_GROUPS * rules.k
    if table.size < 2 * rules.k or not (few or (len(rules.kind) and table.size <= RIVALRY)):
        return
    from shoal.tables.local_levels import cheaper_levels
    from shoal.tables.mondrian import Mondrian

    cuts = [method.form(table, promises, seed=seed).labels for method in (Mondrian(), Mondrian(strict=False))]
    for labels in cuts:
        yield Rival(labels, True)
    shaped = hard(rules, table.size, seed)
    near = few or (shaped and any(map(at_hand.near, cuts)))
    for method in _others(table, rules, near, few or (shaped and table.size <= DEAR)):
        yield Rival(method.form(table, promises, seed=seed).labels, True)
    if few:
        from shoal.tables.datafly import Datafly

        yield Rival(Datafly().form(table, promises, seed=seed).labels, False)
    # of numbers, groups by levels lose less than the levels: released is only the span that occurs
    levels = cheaper_levels(table, rules, np.inf if few else at_hand.loss)
    if levels is not None:
        yield Rival(levels, False)


def _others(table: Table, rules: Rules, near: bool, dear: bool) -> Iterator[TableMethod]:
    """Methods that draw, besides `mondrian`: quick ones if cuts come near, and those that cost the square of rows."""
    if near:
        from shoal.tables.topdown import TopDown

        yield from (TopDown(), TopDown(near="group"))
    if dear:
        from shoal.tables.microaggregation import Microaggregation

        yield Microaggregation()
    if len(rules.kind) and table.size <= STIRRED:
        from shoal.tables.forest import Forest

        yield Forest()


def least_beside_register(table: Table, promises: Sequence[Promise], found: Grouping, seed: int) -> Grouping:
    """Of ``found`` and the groups of the other methods, those that lose least; in larger tables only `mondrian` tries.

    Promises beside a register are upheld by uniting groups when these are formed. Many small boxes that overlap, with
    the least loss before, may lose more after that than a few that do not.
    """
    from shoal.tables.datafly import Datafly
    from shoal.tables.lattice import Lattice
    from shoal.tables.microaggregation import Microaggregation
    from shoal.tables.mondrian import Mondrian
    from shoal.tables.topdown import TopDown

    others: list[TableMethod] = [Mondrian(), Mondrian(strict=False)] if table.size <= RIVALRY else []
    if table.size <= DEAR:
        others += [TopDown(), TopDown(near="group"), Microaggregation(), Datafly(), Lattice()]
    every = [found, *(other.group(table, promises, seed=seed) for other in others)]
    return min(every, key=lambda one: loss(table, one.labels, boxes_of(table, one.labels, one.floor)).gcp)


def assign_rest(matrix: Codes, pairs: Pairs, rules: Rules, labels: Labels) -> Labels:
    """Rows labelled -1 join a group that keeps the promises with them; if none does, groups unite until one does.

    Where a promise is about shares of values, the rest is what nobody could use: spread over the groups it widens most
    of them. So it is also tried as a group of its own, with the groups that lose most anyway; the better one counts.
    """
    rest = np.flatnonzero(labels < 0)
    spread = labels
    if len(rest) and labels.max() >= 0:
        groups = make_groups(matrix, pairs, dense(labels), int(labels.max()) + 1)
        ids = np.arange(len(matrix), dtype=np.int32)
        for at in range(0, len(rest), BATCH):
            index = make_index(pairs, groups)
            absorb(matrix, ids, rest[at : at + BATCH], groups, index, pairs, rules, bool(grows(rules)))
        spread = groups.label
    if (spread < 0).any():
        spread = dense(spread)
        spread[spread < 0] = spread.max() + 1
        spread = unite(matrix, pairs, rules, spread, int(spread.max()))
    spread = dense(spread)
    if not len(rest) or grows(rules):
        return spread
    apart = dense(gather(matrix, pairs, rules, dense(labels)))
    return min(spread, apart, key=lambda found: loss_of(matrix, pairs, found))


def gather(matrix: Codes, pairs: Pairs, rules: Rules, labels: Labels) -> Labels:
    """The rows labelled -1 as one group, with as many of the costliest groups as it needs, and none that it does not.

    Costs O(rows) per look: one per group at first, then for a quarter more at a time; of those taken ``GIVEN_BACK`` are
    looked at again.
    """
    cost = make_groups(matrix, pairs, labels, int(labels.max()) + 1).cost
    order, work = np.argsort(-cost[: labels.max() + 1], kind="stable"), workspace(rules)
    taken = np.append(np.zeros(labels.max() + 1, np.bool_), True)  # the last one: rows without a group

    def enough() -> bool:
        rows = np.flatnonzero(taken[labels]).astype(np.int32)
        return bool(holds(rules, rows, 0, len(rows), work))

    count = 0
    while count < len(order) and not enough():
        more = max(1, count // 4)
        taken[order[count : count + more]] = True
        count += more
    for group in order[: min(count, GIVEN_BACK)]:
        taken[group] = False
        taken[group] = not enough()
    return np.where(taken[labels], labels.max() + 1, labels).astype(np.int32)


def unite(matrix: Codes, pairs: Pairs, rules: Rules, labels: Labels, group: int) -> Labels:
    """Unite ``group`` with the groups near it, one, two, four … at a time, until the union keeps the promises."""
    low, high = group_boxes(matrix, labels, int(labels.max()) + 1)
    order = np.argsort(union_costs(pairs, low, high, group), kind="stable")
    order = np.concatenate([[group], order[order != group]])
    work = workspace(rules)
    count = 1
    while True:
        joined = np.zeros(len(low), np.bool_)
        joined[order[:count]] = True
        rows = np.flatnonzero(joined[labels] & (labels >= 0)).astype(np.int32)
        if count >= len(order) or holds(rules, rows, 0, len(rows), work):
            labels = labels.copy()
            labels[rows] = group
            return dense(labels)
        count *= 2


def _grow(matrix: Codes, rest: Rows, pairs: Pairs, rules: Rules, seed: int, progress: Progress = silent) -> Labels:
    """Groups grown among the rows ``rest``, region by region, on as many threads as there are cores; -1: left over."""
    codes = np.ascontiguousarray(matrix[rest])
    most = REGION if len(rest) <= HUGE else REGION // 2
    region = cut(codes, pairs.shape, max(most, 8 * rules.k)).of(codes)
    plain = bool(only_counts_rows(rules))
    order = np.argsort(region, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(region))[:-1])

    def grown(number: int, rows: Rows) -> tuple[Labels, int]:
        found = np.empty(len(rows), np.int32)
        own, ids = np.ascontiguousarray(codes[rows]), rest[rows].astype(np.int32)
        made = int(grow_region(own, ids, pairs, rules, plain, found, 0, draws(seed, number, 1)))
        left = np.flatnonzero(found < 0)
        if most < REGION and made and len(left):  # to look for them among all groups would cost the square of the rows
            groups = make_groups(own, pairs, found, made)
            absorb(own, ids, left, groups, make_index(pairs, groups), pairs, rules, bool(grows(rules)))
            found = groups.label
        return found, made

    out = np.full(len(rest), -1, np.int32)
    made = 0
    with ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1)) as pool:
        for number, (found, groups) in enumerate(pool.map(grown, range(len(parts)), parts)):
            out[parts[number]] = np.where(found >= 0, found + made, -1)
            made += groups
            progress(number / len(parts), "growing groups")
    return out
