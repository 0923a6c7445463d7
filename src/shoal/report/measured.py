"""What a table is as it stands: the k, l and t it reaches, and who could be found again."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from shoal.core.groups import Groups
from shoal.core.notebook import Shown
from shoal.measures.risk import Risk, risk
from shoal.promises.base import Promise
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
        return "\n".join(lines)


def measured(
    frame: pl.DataFrame, quasi: Sequence[str], sensitive: Sequence[str] = (), people: pl.Series | None = None
) -> Measured:
    """Measure a table by its definitions. O(rows x columns + rows log rows) per sensitive column.

    >>> measured(pl.DataFrame({"age": [30, 30, 41]}), ["age"]).k
    1
    """
    groups = grouped(frame, quasi, sensitive, people)
    sizes = groups.sizes()
    return Measured(
        rows=frame.height,
        groups=groups.count,
        unit=groups.unit,
        k=int(sizes.min()) if len(sizes) else 0,
        sensitive={name: _diversity(groups, name) for name in sensitive},
        risk=risk(sizes),
    )


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
