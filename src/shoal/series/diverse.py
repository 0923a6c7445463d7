"""Groups that keep promises about sensitive values: l-diversity of every kind and t-closeness, while grouping.

What an observer cannot tell apart is a P-subgroup of one group; each must keep the promises. They are closed under
union, so whole subgroups may be united into groups of k without a second look.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.errors import PromiseError, UsageError
from shoal.core.table import Sensitive, Table, factorize
from shoal.kernels.shared.promises import T_EQUAL, Rules
from shoal.measures.series import value_loss
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.rules import compile_rules
from shoal.series.envelopes import cells_by_word, exchange, number_by_height, unite
from shoal.series.method import Progress, SeriesGrouping, silent
from shoal.series.pattern import Encoded, Floats

Rows = NDArray[np.int64]
SHARES = (0.4, 0.2)  # of the records with one word that must keep the promises together, or all try a coarser level
TRIED = 50_000  # records up to which every share and a second cut into bands are tried, and the best is taken
JOINING = 4  # rounds in which records that are left join others
EXACT = 14  # records up to which every subset is tried before a promise about several columns is refused


def rules_for(sensitive: pl.DataFrame, promises: Sequence[Promise], p: int) -> Rules:
    """What every P-subgroup must keep, for kernels. A curve is a person, so records are people."""
    columns = {}
    for column in sensitive.get_columns():
        columns[column.name] = Sensitive(*factorize(comparable(column)))
    nothing = np.zeros((sensitive.height, 0), np.int32)
    table = Table((), nothing, (), np.zeros(0), np.arange(sensitive.height), sensitive=columns)
    return compile_rules(table, [KAnonymity(p), *promises])


def group_diverse(
    values: Floats,
    encoded: Encoded,
    bands: Sequence[Rows],
    k: int,
    rules: Rules,
    *,
    asked: str = "the promise about sensitive values",
    passes: int = 3,
    progress: Progress = silent,
) -> SeriesGrouping:
    """Group records band by band so that every P-subgroup (``rules.k`` is P) keeps ``rules``.

    Whoever finds no company in a band waits for the next one. At the end those who are left join subgroups of their
    own word that stay diverse with them, else they are suppressed; for t-closeness, which is about all records, they
    take whole groups in instead.
    """
    closeness = bool((rules.kind >= T_EQUAL).any())
    at_work = _Bands(values, encoded, k, rules)
    few = len(values) <= TRIED
    tried = []
    for cut in (bands, *_shifted(bands)) if few else (bands,):
        for share in SHARES if few else SHARES[:1]:
            here = _join(values, encoded, at_work.run(cut, share, progress), rules)
            tried.append(_take_in(values, encoded, here, rules) if closeness else here)
    found = tried[0] if len(tried) == 1 else min(tried, key=partial(_lost, encoded.losses(), values, encoded))
    if not found.count:
        # no group was found, though one of all may still keep the promises
        found = _as_one(encoded, k, rules, asked)
    progress(0.7, "exchange")
    traded = exchange(values, found, k, rules.k, passes, marks=_marks(rules))
    return number_by_height(values, traded.group, traded.word)


def _shifted(bands: Sequence[Rows]) -> list[list[Rows]]:
    """The same records in bands that begin half a band later: who stood at an edge then stands in the midst of one."""
    if len(bands) < 2:
        return []
    order = np.concatenate(bands)
    half, last = len(bands[0]) // 2, len(bands[-1]) // 2
    return [np.split(order, np.arange(half, len(order) - last, len(bands[0])))] if half else []


def _lost(losses: Floats, values: Floats, encoded: Encoded, found: SeriesGrouping) -> tuple[float, float]:
    """Pattern loss times value loss, so that neither's unit decides, then the former; a suppressed record loses all."""
    from shoal.kernels.series.envelopes import hulls

    kept = np.flatnonzero(found.group >= 0)
    gone = len(found.group) - len(kept)
    pattern = float(losses[encoded.level_of[found.word[kept]], kept].sum()) + gone
    low, high = hulls(values, values, found.group.astype(np.int64), found.count)
    value = float(value_loss(low, high)[found.group[kept]].sum()) + gone * _widest(values)
    # rounded: sums of many numbers differ in their last digits between machines
    return round(pattern * value, 9), round(pattern, 9)


def _widest(values: Floats) -> float:
    """The value loss of a suppressed record: the full width of every instant."""
    return float(np.sqrt(np.mean(np.ptp(values, axis=0) ** 2)))


class _Bands:
    """Groups made so far; records are renumbered by height, so that kernels sweep them in this order."""

    def __init__(self, values: Floats, encoded: Encoded, k: int, rules: Rules) -> None:
        self.order = np.argsort(values.sum(axis=1), kind="stable")
        self.rank = np.empty(len(values), np.int64)
        self.rank[self.order] = np.arange(len(values))
        self.values, self.k = values, k
        self.codes = np.ascontiguousarray(encoded.codes[:, self.order])
        self.rules = rules._replace(value=np.ascontiguousarray(rules.value[:, self.order]))

    def run(self, bands: Sequence[Rows], share: float, progress: Progress) -> SeriesGrouping:
        from shoal.kernels.series.diverse import diverse_parts

        n = len(self.values)
        group = np.full(n, -1, np.int32)
        word = np.full(n, -1, np.int32)
        part = np.full(n, -1, np.int64)
        waiting = np.zeros(0, np.int64)
        groups = 0
        for at, band in enumerate(bands):
            progress(0.2 + 0.5 * at / len(bands), "groups")
            rows = np.sort(np.concatenate([waiting, self.rank[band]]))
            diverse_parts(self.codes, rows, self.rules, share, word, part)
            here = unite(self.values[self.order[rows]], part[rows], self.k)
            group[rows] = np.where(here >= 0, here + groups, -1)
            groups += int(here.max(initial=-1)) + 1
            waiting = rows[here < 0]
        # a word of somebody who found no group must not be told
        word[group < 0] = -1
        return SeriesGrouping(group[self.rank], word[self.rank])


def _join(values: Floats, encoded: Encoded, found: SeriesGrouping, rules: Rules) -> SeriesGrouping:
    """Records without a group join near cells, unless that widens envelopes more than it loses to suppress them."""
    from shoal.kernels.series.joining import join_cells

    if not found.count or not found.suppressed:
        return found
    cell, cell_group, _ = cells_by_word(values, found)
    group, word = found.group.copy(), found.word.copy()
    total = values.sum(axis=1)
    kept = group >= 0
    mean = np.bincount(group[kept], weights=total[kept]) / np.bincount(group[kept])
    first = np.full(len(cell_group), -1, np.int64)
    first[cell[kept]] = np.flatnonzero(kept)
    for _ in range(JOINING):  # who joins makes room for others
        args = (group, word, cell, found.word[first], cell_group, mean[cell_group], _widest(values))
        if not join_cells(values, total, encoded.codes, rules, *args):
            break
    return SeriesGrouping(group, word)


def _take_in(values: Floats, encoded: Encoded, found: SeriesGrouping, rules: Rules) -> SeriesGrouping:
    """Records without a group join whole groups of like height, under the coarsest word, until that keeps the rules."""
    from shoal.kernels.shared.promises import holds, workspace

    loose = np.flatnonzero(found.group < 0)
    if not len(loose) or not found.count:
        return found
    total = values.sum(axis=1)
    kept = found.group >= 0
    mean = np.bincount(found.group[kept], weights=total[kept]) / np.bincount(found.group[kept])
    # those of like height first: they widen the envelope least
    nearest = np.argsort(np.abs(mean - total[loose].mean()), kind="stable")
    take = 1
    while True:  # twice as many each time: all together are as close as can be
        chosen = nearest[:take]
        rows = np.concatenate([loose, np.flatnonzero(np.isin(found.group, chosen))]).astype(np.int32)
        if holds(rules, rows, 0, len(rows), workspace(rules)):
            group, word = found.group.copy(), found.word.copy()
            group[rows], word[rows] = chosen[0], encoded.codes[0, rows]
            return SeriesGrouping(group, word)
        if take >= len(nearest):
            return SeriesGrouping(np.full_like(found.group, -1), found.word)
        take *= 2


def _as_one(encoded: Encoded, k: int, rules: Rules, asked: str) -> SeriesGrouping:
    """The largest group of all that keeps the promises, as one subgroup with the coarsest word; an error if none does.

    Because promises are closed under union, whatever can be released can be released like this.
    """
    kept = largest(rules)
    if len(kept) < k:
        raise PromiseError(
            f"{asked} cannot be reached: of {encoded.size:,} series at most {len(kept):,} keep it together; k is {k}",
            where="promises",
            hint="ask for less, or coarsen the sensitive column",
        )
    group = np.full(encoded.size, -1, np.int32)
    group[kept] = 0
    return SeriesGrouping(group, np.where(group >= 0, encoded.codes[0], -1).astype(np.int32))


def largest(rules: Rules) -> Rows:
    """The most records that keep the rules together: exact for one promise, or for few records; else a good try.

    Of one sensitive column the best way is to take away from whatever value is then the most frequent.
    """
    from shoal.kernels.shared.promises import holds, workspace

    n = rules.value.shape[1] if len(rules.kind) else 0
    work = workspace(rules)
    best = np.zeros(0, np.int64)
    for column in rules.value:
        ranked = np.argsort(column, kind="stable")
        count = np.bincount(column)
        place = np.empty(n, np.int64)
        place[ranked] = np.arange(n) - (np.cumsum(count) - count)[column[ranked]]
        # the last records of the most frequent values stand last
        order = np.lexsort((np.arange(n), place)).astype(np.int32)
        size = next((m for m in range(n, len(best), -1) if holds(rules, order, 0, m, work)), 0)
        best = order[:size].astype(np.int64) if size > len(best) else best
    if len(rules.kind) > 1 and n <= EXACT:
        for mask in range(1, 2**n):
            if mask.bit_count() > len(best):
                rows = np.flatnonzero([(mask >> i) & 1 for i in range(n)]).astype(np.int32)
                best = rows.astype(np.int64) if holds(rules, rows, 0, len(rows), work) else best
    return np.sort(best)


def _marks(rules: Rules) -> NDArray[np.int64]:
    """A number for all the sensitive values of a record together: who has the same may stand in for another."""
    return np.unique(rules.value, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def refuse_promises(promises: Sequence[Promise]) -> None:
    """Curves keep l-diversity and t-closeness beside (k,P).

    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> refuse_promises([KAnonymity(2)])
    Traceback (most recent call last):
    shoal.core.errors.UsageError: promises: k-anonymity is not a promise about the sensitive values of curves...
    """
    for promise in promises:
        if promise.use not in ("l-diversity", "t-closeness"):
            raise UsageError(
                f"{promise.use} is not a promise about the sensitive values of curves",
                where="promises",
                hint="l-diversity of any kind, or t-closeness",
            )
