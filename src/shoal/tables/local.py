"""Local recoding with the least loss: a rising price opens generalized tuples, then neighbouring groups are rebuilt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from shoal.core.errors import UsageError
from shoal.core.table import Table
from shoal.promises.base import Promise
from shoal.tables.base import SMALL, Grouping, Progress, TableMethod, reachable, silent

if TYPE_CHECKING:
    from shoal.tables.improve import Improver

Effort = Literal["low", "normal", "high"] | int
NORMAL = 180_000  # of steps x (6 + k + k²/20): about what a step costs
FEW_ROWS = 180  # steps, times the root of the rows: of a small table, more cost half a second and find next to nothing
MANY = 20  # columns above which a step costs more, in proportion
FEW_COLUMNS = 5  # above which, up to MANY, groups that were grown are worth more steps: they begin poorer
WIDE = 12  # columns above which each counts for that as one and three quarters
HIGH = 60  # times as many of both
SHARED = 64  # regions of one table that each get all steps; more of them share what so many get
HEAT = 0.2  # over k: the share of its groups' loss a step may lose at first
OFTEN, MORE_OFTEN = 2, 10  # steps per row from which it may; with high effort, which knows something better below


class Local(TableMethod, frozen=True, tag="local"):
    """Groups that keep every promise with the least loss we know how to reach; the default.

    Protects against what its promises protect against; keeps k, every l and t, counted in people where a subject is
    declared. Does not protect against an attacker who compares two releases of the same people.

    Phase 1 raises a price over the lattice of level vectors: a generalized tuple becomes a group as soon as it costs
    no more than the price and still covers enough unassigned people (where a promise is not monotone, as many of its
    rows as keep it). Where there are too many level vectors to list, groups are grown from random rows by their nearest
    ones instead, region by region (:mod:`shoal.tables.regions`); up to five columns of nearly distinct values are cut,
    a single column where that costs least (:mod:`shoal.tables.local_few`). Phase 2 draws rows by their loss, destroys
    their group and one to three neighbours and rebuilds them around random rows; the better version stays. Where there
    are many steps for a row, at first also one that is a little worse does (threshold accepting); where even those of
    ``high`` effort are few and promises only count rows, some groups at a time are opened anew
    (:mod:`shoal.tables.local_reopen`). Promises hold after every step. Of a table of up to twelve rows the best
    grouping is found, if promises only count people.

    ``effort`` is a number of such steps (``low``: none, ``normal``: 180,000 / (6 + k + k²/20), up to five times as
    many where groups were grown in more than five columns, fewer in more than 20, and not more than 180 x √rows, or
    a third more than that in 20 columns;
    ``high``: 60 times that; where a promise about sensitive values makes groups larger, k stands for their mean size),
    never a time: the same seed gives the same release on every machine. Of a table that is released in more than 64
    regions, all share the steps of 64.
    ``suppress`` is the share of rows that may be withheld where that lowers the total loss, a withheld row counted as
    wholly lost. ``interrupted`` says what Ctrl-C leaves once every row has a group: the ``best`` groups so far, or
    ``nothing``.

    Cost: phase 1 O(distinct rows x level vectors), of which most are skipped; or O(16,384 x columns / k) per row for
    groups that are grown (half of that above 500,000 rows); phase 2 O(k² x columns) per step, up to eight parts at once
    on as many threads as cores. Memory about 100 numbers per distinct row of a part of the table.

    >>> import polars as pl
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> table = code(pl.DataFrame({"age": [20, 21, 50, 52, 53]}), Schema.build(quasi={"age": None}))
    >>> labels = Local().group(table, [KAnonymity(2)]).labels
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3] == labels[4])
    True

    Reference: the rising price follows the dual ascent of facility location (Jain and Vazirani 2001); destroy and
    rebuild is large neighbourhood search (Shaw 1998).
    """

    effort: Effort = "normal"
    suppress: float = 0.0
    interrupted: Literal["best", "nothing"] = "nothing"

    def __post_init__(self) -> None:
        if not isinstance(self.effort, str) and self.effort < 0:
            raise UsageError("`effort` must not be negative", where="local", hint="low, normal, high, or a number")
        if not 0 <= self.suppress <= 1:
            raise UsageError("`suppress` is a share and must lie between 0 and 1", where="local")

    def steps(self, k: int, rows: int, columns: int = 1, grown: bool = False) -> int:
        """How many steps of phase 2 the effort buys."""
        if isinstance(self.effort, str):
            times = {"low": 0, "normal": 1, "high": HIGH}[self.effort]
            many = NORMAL // (6 + k + k * k // 20) * MANY // max(MANY, columns)
            most = FEW_ROWS * math.isqrt(rows)
            if grown:
                used = min(columns, MANY)
                worth = used + 3 * max(0, used - WIDE) // 4
                many = many * max(FEW_COLUMNS, worth * used // columns) // FEW_COLUMNS
                most = most * worth // used
            return times * min(many, most)
        return self.effort

    def group(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """See :class:`TableMethod`. Beside a register groups are united afterwards: others may lose less then."""
        found = super().group(table, promises, seed=seed, progress=progress)
        if table.register is None or table.limits or self.blind or self.suppress:
            return found
        from shoal.tables.local_start import least_beside_register

        return least_beside_register(table, promises, found, seed)

    def form(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """See :class:`TableMethod`."""
        from shoal.kernels.tables.local_pairs import make_pairs
        from shoal.tables.improve import Improver, loss_of, ordered
        from shoal.tables.local_exact import FEW, best_of_all
        from shoal.tables.local_few import begin_in_few
        from shoal.tables.local_start import are_grown, at_least, rivals, start
        from shoal.tables.local_withhold import withhold
        from shoal.tables.stir import stir

        asked = reachable(table, promises)
        rules = at_least(asked)
        view = ordered(table)
        pairs = make_pairs(view.shape())
        opened = partial(start, view.matrix, pairs, rules, seed, lambda share, word: progress(share / 2, word))
        labels = opened() if are_grown(pairs) else begin_in_few(table, view, pairs, rules, opened)
        improver = Improver(view.matrix, pairs, rules, labels, seed)
        others = []  # as other methods would release them
        for rival in rivals(table, promises, rules, seed, improver):
            improver.take(rival.labels)
            if rival.drawn and len(rules.kind) and table.size >= SMALL * asked.k:
                others.append(rival.labels)
        # a best grouping that hangs on sensitive values would tell who reruns the method more about them
        if 0 < table.size <= FEW and not len(rules.kind):
            improver.take(best_of_all(view, rules))
        size = table.size // (int(improver.labels.max()) + 1) if len(rules.kind) else 0
        steps = self.steps(max(rules.k, size), table.size, len(table.names), are_grown(pairs))
        if isinstance(self.effort, str) and table.parts > SHARED:
            steps = -(-steps * SHARED // table.parts)
        try:
            self._improve(improver, steps, lambda share, word: progress(0.5 + share / 2, word))
        except KeyboardInterrupt:
            if self.interrupted == "nothing":
                raise
        # what counts is what is released; of a small table a choice among methods would tell too much
        released = [stir(view, rules, improver.labels, seed), *others]
        labels = min(released, key=lambda found: loss_of(view.matrix, pairs, found))
        limit = int(self.suppress * table.size)
        return Grouping(withhold(view, pairs, rules, labels, limit) if limit else labels)

    def _improve(self, improver: Improver, steps: int, progress: Progress) -> None:
        """Phase 2. With high effort, what else can be done for so many steps: warm ones, or larger ones."""
        from shoal.tables.local_reopen import can_reopen, search

        high, rows = self.effort == "high", len(improver.matrix)
        # with few steps per row, what was lost on the way would not be won back; where groups hang on sensitive values,
        # only high effort spends all its steps
        warm = steps >= (MORE_OFTEN if high else OFTEN) * rows and (high or not len(improver.rules.kind))
        if high and not warm and can_reopen(improver):
            search(improver, steps, progress)
        else:
            improver.run(steps, progress, HEAT / improver.rules.k if warm else 0.0)
