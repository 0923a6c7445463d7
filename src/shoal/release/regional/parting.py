"""Which regions are released together, and whether each of them fits in memory."""

from __future__ import annotations

import polars as pl

from shoal.core.errors import PromiseError
from shoal.release.regional import survey
from shoal.release.regional.plan import Plan, fewest, one_group, stands_alone
from shoal.release.regional.scattered import Room, Scattered
from shoal.tables.base import out_of_reach

TOO_LARGE = 3  # times the rows of a region: what one may have that cannot be cut
SHARED, LIGHTER = 100, 4  # where so many rows share each combination, so many times as many of them fit


def parted(plan: Plan, rows: Scattered, room: Room, k: int) -> list[list[int]]:
    """The regions in parts: those that cannot keep the promises alone join the one beside them.

    A part that does not fit in memory is an error.
    """
    everything = list(range(plan.regions.count))
    compared = [p.sensitive for p in plan.promises if p.compares_with_all and p.sensitive is not None]
    if compared:  # such a promise is about everybody: a region must not be compared with itself
        scan = rows.scan(everything)
        plan.domain.shares = {
            n: survey.shares_of(scan, n, plan.domain.values[n], plan.schema.subject) for n in compared
        }
    about = [*{p.sensitive for p in plan.promises if p.sensitive is not None}, *plan.schema.of("subject")]
    least = fewest(k)
    counts = plan.schema.subject is None and all(p.sensitive is None for p in plan.promises)

    def alone(numbers: list[int]) -> bool:
        size = rows.height(numbers)
        # where only rows are counted, their number is the answer; otherwise the region must be looked at
        if size < least or (counts and all(p.rule().complete for p in plan.promises)):
            return size >= least
        return stands_alone(plan, rows.scan(numbers).select(about).collect(engine="streaming"))

    parts = plan.regions.parted(alone, rows.height)
    if len(parts) == 1 and rows.height(everything) > room.most:  # the whole was not asked
        _insist_on_promises(plan, rows, about or list(plan.schema.quasi[:1]))
    for part in parts:
        # regions of fewer rows than ``least`` were not asked for, however little memory there is
        _insist_on_room(plan, rows, part, max(TOO_LARGE * max(room.most, least), room.fits))
    return parts


def _insist_on_promises(plan: Plan, rows: Scattered, about: list[str]) -> None:
    """The error of a method whose promises not even all rows keep together."""
    everything = list(range(plan.regions.count))
    group = one_group(plan, rows.scan(everything).select(about).collect(engine="streaming"))
    findings = [promise.judge(group) for promise in plan.promises]
    if not all(found.kept for found in findings):
        raise out_of_reach(findings, plan.domain.total - rows.height(everything))


def _insist_on_room(plan: Plan, rows: Scattered, part: list[int], fits: int) -> None:
    size = rows.height(part)
    if size <= fits:
        return
    different = _combinations(plan, rows, part)
    if size <= LIGHTER * fits and size >= SHARED * different:
        return
    alike = different == 1
    why = "have the same quasi values" if alike else "must be released as one region to keep the promises"
    raise PromiseError(
        f"{size:,} rows {why}, which do not fit in memory",
        where="regions",
        hint="give more memory (--memory)" + ("" if alike else ", ask for less, or leave out a quasi column"),
    )


def is_alike(plan: Plan, rows: Scattered, part: list[int], most: int) -> bool:
    """Whether a part that is larger than it should be has the same quasi values in all rows."""
    if len(part) > 1 or rows.height(part) <= most:
        return False
    columns = [rows.scan(part).select(pl.col(name).n_unique()) for name in plan.schema.quasi]
    return all(found.collect(engine="streaming").item() == 1 for found in columns)  # most regions: one look


def _combinations(plan: Plan, rows: Scattered, part: list[int]) -> int:
    found = rows.scan(part).select(plan.schema.quasi).unique().select(pl.len())
    return int(found.collect(engine="streaming").item())
