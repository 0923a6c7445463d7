"""The seam of all table methods: *a table method maps an integer matrix and promises to labels.*"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import PromiseError, UsageError
from shoal.core.groups import Coverage, Finding, Groups
from shoal.core.release import Boxes, boxes_of
from shoal.core.spec import Spec
from shoal.core.table import Sensitive, Table
from shoal.kernels.shared import promises as compiled
from shoal.measures.loss import runs_of
from shoal.promises.base import Promise
from shoal.promises.rules import compile_rules

SMALL = 24  # groups of k up to which a table is small: who tries all worlds of it can do so on a laptop
MOST_CELLS = 200_000_000  # of entries of a register that are remembered as covered or not
Progress = Callable[[float, str], None]  # share done (0 to 1), a word on the state


def silent(share: float, word: str) -> None:
    """No progress.

    >>> silent(0.5, "grouping")
    """


@dataclass(frozen=True)
class Grouping:
    """What a method returns: a label per row of the table (dense from 0; -1: suppressed).

    ``floor[group, column]``, if given, is the least level a cell is published at (full-domain methods publish whole
    levels); otherwise a group is published as tightly as its hierarchy allows.

    >>> Grouping(np.array([0, 0, -1], np.int32)).labels.tolist()
    [0, 0, -1]
    """

    labels: NDArray[np.int32]
    floor: NDArray[np.int8] | None = None


class TableMethod(Spec, frozen=True, kw_only=True):
    """How a table is grouped. A method receives promises and must keep them in every group it returns.

    A subclass defines :meth:`form`, for the compiled rules of the promises (:func:`reachable` gives them). Whatever
    these rules do not say is upheld here, so that every method keeps promises of other packages, too.

    ``blind``: groups are formed for the promises that count people, and united without a look at sensitive values
    where those break another promise (:mod:`shoal.tables.blind`): what a rerun of the method tells is then bounded, at
    the price of larger groups.

    >>> from shoal.tables.mondrian import Mondrian
    >>> isinstance(Mondrian(), TableMethod), Mondrian().use
    (True, 'mondrian')
    """

    local_recoding: ClassVar[bool] = True  # groups may be united one by one; not where whole columns have one level

    blind: bool = False

    def form(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """Groups of the rows of ``table`` that keep what the compiled rules of the promises say."""
        raise NotImplementedError

    def group(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """Group the rows of ``table`` so that every group keeps every promise, and every limit of a column.

        Where a promise has no complete rule, or speaks about values of people who have several rows, the cost of
        :func:`shoal.tables.uphold.uphold` is added: there groups that read alike need not keep it together.
        """
        if table.limits:
            from shoal.tables.limits import group_within

            return group_within(self, table, promises, seed=seed, progress=progress)
        rules = [p.rule() for p in promises]
        formed = self._formed(table, promises, seed=seed, progress=progress)
        repeated = table.people is not None and table.crowd < table.size
        if all(r.complete and not (r.check and repeated) for r in rules):
            return formed
        from shoal.tables.uphold import uphold

        progress(0.9, "merging groups that break a promise")
        return uphold(table, promises, formed)

    def _formed(self, table: Table, promises: Sequence[Promise], *, seed: int, progress: Progress) -> Grouping:
        if any(p.follows_people for p in promises):
            from shoal.tables.trajectories import group_people

            return group_people(self, table, promises, seed=seed, progress=progress)
        form = self._form_blindly if self.blind and looks_at_values(promises) else self.form
        return form(table, promises, seed=seed, progress=progress)

    def _form_blindly(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        from shoal.tables.blind import halve_blindly

        if not self.local_recoding:
            raise UsageError(
                "has no effect on a method that publishes whole columns at one level",
                where=f"{self.use}, blind",
                hint="use local, topdown, mondrian, forest or microaggregation",
            )
        reachable(table, promises)
        counting = [p for p in promises if not p.rule().check]
        labels = self.form(table, counting, seed=seed, progress=progress).labels
        kept = labels >= 0
        rules = reachable(table, promises) if kept.all() else _released(table, promises, kept)
        if rules is None:  # those who would be left cannot keep the promises: nobody is suppressed
            return Grouping(np.zeros(table.size, np.int32))
        out = np.full(table.size, -1, np.int32)
        part = table if kept.all() else taken(table, kept)
        out[kept] = halve_blindly(part, rules, labels[kept], seed)
        return Grouping(out)


def looks_at_values(promises: Sequence[Promise]) -> bool:
    """Whether a promise asks something about sensitive values: then groups may tell about them.

    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> looks_at_values([KAnonymity(5)])
    False
    """
    return any(p.sensitive is not None for p in promises)


def taken(table: Table, kept: NDArray[np.bool_] | NDArray[np.int64]) -> Table:
    """The table of some of its rows, by a mark for each or by their numbers in order."""
    return dataclasses.replace(
        table,
        matrix=table.matrix[kept],
        rows=table.rows[kept],
        people=None if table.people is None else table.people[kept],
        sensitive={n: Sensitive(s.codes[kept], s.values, s.levels) for n, s in table.sensitive.items()},
    )


def _released(table: Table, promises: Sequence[Promise], kept: NDArray[np.bool_]) -> compiled.Rules | None:
    try:
        return reachable(taken(table, kept), promises)
    except PromiseError:
        return None


def reachable(table: Table, promises: Sequence[Promise]) -> compiled.Rules:
    """The compiled promises; an error that says how near it came if not even one group of all rows keeps them."""
    rules = compile_rules(table, promises)
    everything = np.arange(table.size, dtype=np.int32)
    kept = compiled.holds(rules, everything, 0, table.size, compiled.workspace(rules))
    if kept and all(p.rule().complete for p in promises):
        return rules
    whole = groups_of(table, np.zeros(table.size, np.int32))
    findings = [p.judge(whole) for p in promises]
    if kept and all(f.kept for f in findings):
        return rules
    raise out_of_reach(findings, sum(table.withheld.values()))


def out_of_reach(findings: Sequence[Finding], withheld: int) -> PromiseError:
    """The error that says how near the whole table as one group comes to the promises.

    >>> print(out_of_reach([Finding("10-anonymity", False, 10, 1, 1, 1, "people")], 0))
    promises: 10-anonymity cannot be reached: asked 10, the whole table as one group reaches 1 (people counted)
    <BLANKLINE>
    hint: ask for less, or bring more people
    """
    broken = next((f for f in findings if not f.kept), findings[0])
    return PromiseError(
        f"{broken.promise} cannot be reached: asked {broken.asked:g}, "
        f"the whole table as one group reaches {broken.reached:.4g} ({broken.unit} counted"
        + (f", {withheld:,} rows withheld before)" if withheld else ")")
        + (f"; {broken.note}" if broken.note else ""),
        where="promises",
        hint="ask for less, or bring more people",
    )


def groups_of(table: Table, labels: NDArray[np.int32], boxes: Boxes | None = None) -> Groups:
    """Rows with these labels as a promise judges them; rows labelled -1 are left out.

    Beside a register, ``boxes`` are the cells as published; without them, as tight as the rows allow.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> table = code(pl.DataFrame({"age": [20, 21, 50]}), Schema.build(quasi={"age": None}))
    >>> groups_of(table, np.array([0, 0, -1], np.int32)).sizes().tolist()
    [2]
    """
    kept = np.flatnonzero(labels >= 0)
    return Groups(
        labels[kept],
        {name: s.values.gather(s.codes[kept]) for name, s in table.sensitive.items()},
        None if table.people is None else table.people[kept],
        {name: s.levels for name, s in table.sensitive.items() if s.levels is not None},
        None if table.register is None or not len(kept) else _coverage(table, boxes or boxes_of(table, labels)),
        {name: (table.sensitive[name].values, shares) for name, shares in table.whole.items()},
    )


def _coverage(table: Table, boxes: Boxes) -> Coverage:
    """Which entries of the register each group's cells cover: by codes, where the verifier goes by texts."""
    assert table.register is not None
    entries, people = table.register.matrix, table.register.people
    runs = [runs_of(levels, boxes, j) for j, levels in enumerate(table.levels)]
    parts = [[np.split(x, r.start[1:]) for x in (r.first, r.last)] for r in runs]

    def covered() -> Iterator[NDArray[np.bool_]]:
        known: dict[tuple[int, bytes, bytes], NDArray[np.bool_]] = {}
        for group in range(len(boxes.low)):
            out = np.ones(len(entries), np.bool_)
            for j, (first, last) in enumerate(parts):
                key = (j, first[group].tobytes(), last[group].tobytes())
                if key not in known:
                    if (len(known) + 1) * len(entries) > MOST_CELLS:
                        known.clear()
                    column = entries[:, j]
                    ends = zip(first[group], last[group], strict=True)
                    known[key] = np.logical_or.reduce([(column >= a) & (column <= b) for a, b in ends])
                out &= known[key]
            yield out

    return Coverage(people, covered)
