"""The seam of all table methods: *a table method maps an integer matrix and promises to labels.*"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import PromiseError
from shoal.core.spec import Spec
from shoal.core.table import Table
from shoal.kernels.shared import promises as compiled
from shoal.promises.base import Promise
from shoal.promises.rules import compile_rules

Progress = Callable[[float, str], None]  # share done (0 to 1), a word on the state


def silent(share: float, word: str) -> None:
    """No progress."""


@dataclass(frozen=True)
class Grouping:
    """What a method returns: a label per row of the table (dense from 0; -1: suppressed).

    ``floor[group, column]``, if given, is the least level a cell is published at (full-domain methods publish whole
    levels); otherwise a group is published as tightly as its hierarchy allows.
    """

    labels: NDArray[np.int32]
    floor: NDArray[np.int8] | None = None


class TableMethod(Spec, frozen=True):
    """How a table is grouped. A method receives promises and must keep them in every group it returns."""

    def group(
        self, table: Table, promises: Sequence[Promise], *, seed: int = 0, progress: Progress = silent
    ) -> Grouping:
        """Group the rows of ``table``."""
        raise NotImplementedError


def reachable(table: Table, promises: Sequence[Promise]) -> compiled.Rules:
    """The compiled promises; an error that says how near it came if not even one group of all rows keeps them."""
    from shoal.core.groups import Groups

    rules = compile_rules(table, promises)
    everything = np.arange(table.size, dtype=np.int32)
    if compiled.holds(rules, everything, 0, table.size, compiled.workspace(rules)):
        return rules
    whole = Groups(
        np.zeros(table.size, np.int32),
        {name: s.values.gather(s.codes) for name, s in table.sensitive.items()},
        table.people,
        {name: s.levels for name, s in table.sensitive.items() if s.levels is not None},
    )
    findings = [p.judge(whole) for p in promises]
    broken = next((f for f in findings if not f.kept), findings[0])
    withheld = sum(table.withheld.values())
    raise PromiseError(
        f"{broken.promise} cannot be reached: asked {broken.asked:g}, "
        f"the whole table as one group reaches {broken.reached:.4g} ({broken.unit} counted"
        + (f", {withheld:,} rows withheld before)" if withheld else ")"),
        where="promises",
        hint="ask for less, or bring more people",
    )
