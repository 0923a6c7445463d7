"""What a table is as it stands: the k, l and t it reaches, and who could be found again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import InputError, UsageError
from shoal.core.groups import Coverage, Groups
from shoal.core.notebook import Shown
from shoal.measures.population import PopulationRisk, checked_weights, population_risk
from shoal.measures.risk import Risk, risk
from shoal.measures.special_uniques import SpecialUniques, special_uniques
from shoal.promises.base import Promise
from shoal.promises.delta_presence import DeltaPresence
from shoal.promises.k_map import KMap
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.verifier import grouped


class Diversity(msgspec.Struct, frozen=True):
    """How varied one sensitive column is in the worst group: distinct values, the exponential of the entropy, size
    over the most frequent value, and the greatest distance from the whole table (equal; ordered for numbers)."""

    distinct: int
    entropy: float
    frequency: float
    t: float
    t_ordered: float | None = None


class RegisterRisk(msgspec.Struct, frozen=True):
    """The risk beside a register of ``people``: ``k`` is the least number of them that a group may stand for (k-map),
    ``highest`` and ``mean`` are the chances of finding whose a row is. ``belief`` is the highest that somebody of the
    register is in the table (delta-presence); ``strange`` rows fit nobody in it: it is not their register, and each
    counts as found.

    >>> register = Coverage(np.array([2, 3]), lambda: iter([np.array([True, False]), np.array([False, False])]))
    >>> register_risk(Groups(np.array([0, 1], np.int32), register=register))
    RegisterRisk(people=5, k=0, highest=1.0, mean=0.75, belief=1.0, strange=1)
    """

    people: int
    k: int
    highest: float
    mean: float
    belief: float
    strange: int


class Measured(Shown, msgspec.Struct, frozen=True):
    """The privacy a table reaches, raw or released; ``unit`` says whether people or rows were counted.

    >>> table = pl.DataFrame({"age": [30, 30, 41]})
    >>> measured(table, ["age"])
    <Measured: 3 rows, k = 1, 1 rows alone in their group>
    """

    rows: int
    groups: int
    unit: str
    k: int
    sensitive: dict[str, Diversity]
    risk: Risk
    population: PopulationRisk | None = None  # where rows have sampling weights
    special: SpecialUniques | None = None  # where they were looked for
    register: RegisterRisk | None = None  # where there is one

    def __repr__(self) -> str:
        return f"<Measured: {self.rows:,} rows, k = {self.k}, {self.risk.unique:,} {self.unit} alone in their group>"

    def __str__(self) -> str:
        lines = [
            f"{self.rows:,} rows in {self.groups:,} groups, {self.unit} counted",
            f"  k = {self.k} (the smallest group)",
        ]
        for name, d in self.sensitive.items():
            ordered = "" if d.t_ordered is None else f", ordered {d.t_ordered:.4g}"
            lines.append(
                f"  {name}: l = {d.distinct} distinct, {d.entropy:.4g} by entropy, {d.frequency:.4g} by frequency; "
                f"t = {d.t:.4g}{ordered}"
            )
        r = self.risk
        lines += [
            "Risk of being found again",
            f"  worst case (prosecutor)  {r.prosecutor:9.2%}",
            f"  on average (marketer)    {r.marketer:9.2%}",
            f"  alone in their group     {r.unique:9,} {self.unit}",
        ]
        if (p := self.population) is not None:
            lines += [
                f"In the population, about {p.people:,.0f} people (negative binomial model)",
                f"  worst case               {p.highest:9.2%}",
                f"  expected to be found     {p.expected:9,.1f} {self.unit}",
                f"  alone there, too         {p.population_unique:9,.1f} of {p.unique:,}",
            ]
        if (g := self.register) is not None:
            lines += [
                f"Beside the register of {g.people:,} people",
                f"  k-map: k = {g.k} (fewest people that a group may stand for)",
                f"  worst case               {g.highest:9.2%}",
                f"  on average               {g.mean:9.2%}",
                f"  belief to be in the table{g.belief:9.2%} at most (delta-presence)",
            ]
            if g.strange:
                lines.append(f"  fit nobody of it         {g.strange:9,} {self.unit}")
        if (s := self.special) is not None:
            sizes = ", ".join(f"{n:,} of {size} column{'s' * (size > 1)}" for size, n in s.sizes.items())
            lines.append(f"Special uniques, by at most {s.most} columns: {s.rows:,} rows ({sizes or 'none'})")
            lines += [f"  {name:<24} {share:9.1%} of the scores" for name, share in s.columns.items()]
            lines += [f"  row {at + 1:,}: {score:,}" for at, score in s.riskiest]
        return "\n".join(lines)


def measured(
    frame: pl.DataFrame,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    people: pl.Series | None = None,
    *,
    weights: pl.Series | None = None,
    special: int | None = None,
    beside: Callable[[NDArray[np.int32]], Coverage] | None = None,
) -> Measured:
    """Measure a table by its definitions. O(rows x columns + rows log rows) per sensitive column.

    ``weights`` say how many people of the population each row stands for; ``special`` is the largest number of columns
    by which special uniques are looked for. ``beside`` says whom of a register groups with these labels cover.

    >>> measured(pl.DataFrame({"age": [30, 30, 41]}), ["age"]).k
    1
    """
    if people is not None and weights is not None:
        raise UsageError(
            "a sampling weight is one of a person, and a subject may have several rows",
            where="sampling_weight",
            hint="measure one row per person, without subject",
        )
    groups = grouped(frame, quasi, sensitive, people)
    sizes = groups.sizes()
    return Measured(
        rows=frame.height,
        groups=groups.count,
        unit=groups.unit,
        k=int(sizes.min()) if len(sizes) else 0,
        sensitive={name: _diversity(groups, name) for name in sensitive},
        risk=risk(sizes),
        population=None if weights is None else population_risk(groups.labels, sampling_weights(weights)),
        special=None if special is None else special_uniques(frame, quasi, special),
        register=None if beside is None else register_risk(replace(groups, register=beside(groups.labels))),
    )


def register_risk(groups: Groups) -> RegisterRisk:
    """What groups tell somebody who has their register. O(groups x register).

    >>> register = Coverage(np.array([4]), lambda: iter([np.array([True])]))
    >>> register_risk(Groups(np.zeros(2, np.int32), register=register)).belief
    0.5
    """
    assert groups.register is not None
    covered, sizes = KMap(1).measure(groups)[0], groups.sizes()
    chance = 1 / np.maximum(covered, 1.0)
    return RegisterRisk(
        people=int(groups.register.people.sum()),
        k=int(covered.min(initial=np.inf)) if len(covered) else 0,
        highest=float(chance.max(initial=0.0)),
        mean=float(chance @ sizes / max(1, sizes.sum())),
        belief=float(DeltaPresence(1.0).measure(groups)[0].max(initial=0.0)),
        strange=int(sizes[covered == 0].sum()),
    )


def sampling_weights(weights: pl.Series) -> NDArray[np.float64]:
    """A column that says how many people each row stands for, as numbers.

    >>> sampling_weights(pl.Series([1, 12])).tolist()
    [1.0, 12.0]
    """
    if not weights.dtype.is_numeric():
        raise InputError(f"expected numbers, found {weights.dtype}", where="sampling_weight", hint="declare its type")
    return checked_weights(weights.cast(pl.Float64).fill_null(float("nan")).to_numpy())


def table_risk(frame: pl.DataFrame, quasi: Sequence[str], people: pl.Series | None = None) -> Risk:
    """Risk of finding people again by these columns; without ``people`` every row is one.

    >>> table_risk(pl.DataFrame({"age": [30, 30, 41]}), ["age"]).unique
    1
    """
    return risk(grouped(frame, quasi, people=people).sizes())


def _diversity(groups: Groups, column: str) -> Diversity:
    def worst(promise: Promise) -> float:
        return promise.judge(groups).reached

    number = groups.sensitive[column].dtype.is_numeric()
    return Diversity(
        distinct=int(worst(LDiversity(1, column))),
        entropy=worst(LDiversity(1, column, kind="entropy")),
        frequency=worst(LDiversity(1, column, kind="frequency")),
        t=worst(TCloseness(1, column)),
        t_ordered=worst(TCloseness(1, column, distance="ordered")) if number else None,
    )
