"""The report of a release that was made in regions: the same figures, added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import polars as pl

from shoal import __version__
from shoal.core.errors import PromiseError
from shoal.core.groups import Finding
from shoal.core.table import hierarchy_for
from shoal.measures.loss import Loss, united
from shoal.measures.risk import risk_of
from shoal.measures.utility import Utility
from shoal.promises.rules import least_people
from shoal.release.adversary import LINKED_ROWS, SURE, Adversary
from shoal.release.regional.judging import Judged, added
from shoal.release.regional.plan import Plan
from shoal.release.remarks import outliers, rerun
from shoal.report.columns import Published, why_lost
from shoal.report.model import Report

LINKS = "which rows belong to one person"
IN_REGIONS = "the table was released in regions"
UNMEASURED = "means, correlations and cross tables are not compared in a table that was released in regions"


class Looks(Protocol):
    """The rows of a release, wherever they are, as the adversary looks at them; ``person`` stands beside them."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns that would be published."""

    @property
    def person(self) -> str | None:
        """The column that says whose a row is, if people are counted."""

    def stable(self, columns: Sequence[str], least: float) -> list[str]:
        """Columns that are the same in all rows of a person, for at least this share of who has several rows."""

    def links(self, columns: Sequence[str]) -> tuple[int, int]:
        """Values (or combinations) that stand in several rows, and how many of these belong to one person."""

    def singles(self, columns: Sequence[str]) -> tuple[int, int]:
        """How many people there are, and how many have a value (or combination) of their own."""

    def distinct(self, column: str) -> tuple[int, int]:
        """Distinct values of a column, and how many of them stand in one row only."""


@dataclass(frozen=True)
class Made:
    """What is known when all regions are solved and all buckets judged.

    >>> Made(10, 8, {"missing age": 2}, [], {}, []).released
    8
    """

    rows: int  # of the input
    released: int
    withheld: Mapping[str, int]
    losses: Sequence[tuple[Loss, tuple[float, float]]]
    before: Mapping[int, int]
    judged: Sequence[Judged]


def look_for_links(adversary: Adversary, rows: Looks, readable: Sequence[str], why: str = IN_REGIONS) -> list[Finding]:
    """What links rows beside the groups, or singles people out; an error for what is neither kept nor waived.

    Where a column links the rows of a person, the groups of these rows together would have to be judged, which needs
    all of them at once. It is not done here, for the reason ``why``: such a column is refused, unless the risk was
    accepted by name.

    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.release.regional.survey import OnDisk
    >>> rows = OnDisk(pl.LazyFrame({"age": ["*"] * 40, "town": ["a", "b"] * 20, "street": [1, 2] * 20}))
    >>> adversary = Adversary(Schema({"age": Column("quasi"), "town": Column("plain"), "street": Column("plain")}), ())
    >>> look_for_links(adversary, rows, ["town"])
    []
    """
    person = rows.person
    columns = [n for n in rows.columns if n not in adversary.schema.quasi]
    found: list[Finding] = []
    together = [] if person is None else [rows.stable(columns, SURE)]
    for several in [*([name] for name in columns), *(many for many in together if len(many) > 1)]:
        if person is None and not adversary.names_people(several):
            continue
        values, sure = rows.links(several)
        if values and sure >= SURE * values:
            found.append(_refused(adversary, several, why))
    for name in readable:
        found += adversary.singled(name, *rows.singles([name]))
    return found


def _refused(adversary: Adversary, names: Sequence[str], why: str) -> Finding:
    told = f"{'column' if len(names) == 1 else 'columns'} {', '.join(map(repr, names))}"
    if LINKED_ROWS not in adversary.waived:
        raise PromiseError(
            f"the release was not made: the {told} may show {LINKS}, and what these rows tell together is not judged: "
            f"{why}",
            where="adversary",
            hint=f"do not show {names[0]!r}, release the whole table at once, or accept it by `waive: [{LINKED_ROWS}]`",
        )
    return Finding(f"the rows that {told} link", True, 0, 0, 0, 0, "people", f"waived: not judged, {why}")


def combined_names(adversary: Adversary, rows: Looks, readable: Sequence[str]) -> list[str]:
    """A word on columns none of which is a name, but which are one together.

    >>> from shoal.core.schema import Column, Schema
    >>> from shoal.release.regional.survey import OnDisk
    >>> rows = OnDisk(pl.LazyFrame({"age": ["*"] * 40, "town": ["a", "b"] * 20, "street": [1, 2] * 20}))
    >>> adversary = Adversary(Schema({"age": Column("quasi"), "town": Column("plain"), "street": Column("plain")}), ())
    >>> combined_names(adversary, rows, ["town", "street"])
    []
    """
    if len(readable) < 2:
        return []
    return adversary.singled_together(readable, *rows.singles(readable))


def published(plan: Plan, rows: Looks, lost: Loss) -> list[Published]:
    """The columns of the release, each with what it still tells."""
    out = []
    for name in rows.columns:
        column = plan.schema[name]
        values, alone = rows.distinct(name)
        known = plan.domain.values.get(name, pl.Series(dtype=pl.String))
        uses = hierarchy_for(known, column).use if column.role == "quasi" else None
        share = lost.columns.get(name)
        hint = why_lost(known.dtype, uses or "", share)
        out.append(Published(name, column.role, uses, values, alone, share, None, hint, column.weight))
    return out


def report(plan: Plan, made: Made, findings: Sequence[Finding], title: str, notes: Sequence[str]) -> Report:
    """The report, but for its columns and how long it took."""
    row_sizes = added([j.row_sizes for j in made.judged])
    suppressed = sum(part.suppressed for part, _ in made.losses)
    early = made.rows - sum(part.rows for part, _ in made.losses)
    withheld = dict(made.withheld)
    if suppressed:
        withheld["suppressed by the method"] = suppressed
    told = [rerun(plan.method, plan.promises)] if plan.schema.sensitive else []
    told += outliers({name: (plan.domain.compiled[name][0], often) for name, often in plan.frequency.items()})
    return Report(
        title=title,
        method={"use": plan.method.use, **msgspec.structs.asdict(plan.method)},
        seed=None,
        rows=made.rows,
        released=made.released,
        withheld=withheld,
        left_out=[],
        findings=list(findings),
        verified=all(f.kept for f in findings),
        loss=united(made.losses, row_sizes, least_people(plan.promises), early),
        risk_before=risk_of(made.before),
        risk_after=risk_of(added([j.sizes for j in made.judged])),
        utility=Utility({}, {}, {}),
        size_counts=list(row_sizes.items()),
        seconds=0.0,
        notes=[*notes, *told],
        version=__version__,
    )
