"""An adversary before every release: what links rows beside the group.

The verifier looks at how rows read in their quasi columns. An attacker also looks at the other columns: one that has
the same value in all rows of a person puts these rows together, and together they may fit nobody else; one that has
another value for almost everyone is a name, whatever its role says. Earlier releases of the same people are laid beside
the new one (:mod:`shoal.release.earlier`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import PromiseError
from shoal.core.groups import Finding, Groups
from shoal.core.levels import Levels
from shoal.core.schema import Schema
from shoal.policy.document import WAIVERS
from shoal.promises.base import Promise
from shoal.release.earlier import Known, together
from shoal.verifier import group
from shoal.views.role_view import RoleView

LINKED_ROWS, UNIQUE_PLAIN, EARLIER_RELEASE, ORDER = WAIVERS
SURE = 0.9  # share of a column's repeated values that must each belong to one person before it counts as a link
ALONE = 0.5  # share of people with a value nobody else has above which a plain column singles people out
CROWD = 20  # people below which that share says nothing


@dataclass(frozen=True)
class Adversary:
    """Looks at what would be published, knowing which rows belong to one person only where the release tells.

    ``waived`` are the findings somebody accepted, by the names in :data:`shoal.policy.document.WAIVERS`: they are
    reported, not refused.
    """

    schema: Schema
    promises: tuple[Promise, ...]
    view: RoleView | None = None
    waived: tuple[str, ...] = ()

    def demand(
        self, released: pl.DataFrame, people: pl.Series | None, levels: Mapping[str, Levels] | None = None
    ) -> list[Finding]:
        """The findings, all kept; an error for the first that is neither kept nor waived. O(columns x rows log rows).

        ``people`` says whose the released rows are.
        """
        found: list[Finding] = []
        for name in self._beside(released):
            found += self._linked(released, name, people, levels or {})
            found += self._alone(released, name, people)
        return found

    def demand_beside(self, known: Known, previous: Sequence[tuple[str, pl.DataFrame]]) -> list[Finding]:
        """The findings about earlier releases; an error for the first that is neither kept nor waived."""
        found = []
        for name, frame in previous:
            for finding in together(known, frame, self.promises, name):
                if not finding.kept and EARLIER_RELEASE not in self.waived:
                    raise PromiseError(
                        f"the release was not made: {finding.promise} reaches {finding.reached:g} where "
                        f"{finding.asked:g} was asked, for who has both releases",
                        where="adversary",
                        hint=f"release less, or accept it by `waive: [{EARLIER_RELEASE}]`",
                    )
                found.append(finding if finding.kept else _accepted(finding))
        return found

    def handles(self, released: pl.DataFrame) -> list[str]:
        """Shown columns that stand for a person."""
        if self.view is None:
            return []
        return [c for c in released.columns if self.view.schema[c].role in ("subject", "identifier")]

    def _beside(self, released: pl.DataFrame) -> list[str]:
        """Columns that outsiders are not said to know, nor to be after."""
        said = {*self.schema.quasi, *self.schema.sensitive}
        return [c for c in released.columns if c not in said and not released[c].dtype.is_nested()]

    def _linked(
        self, released: pl.DataFrame, name: str, people: pl.Series | None, levels: Mapping[str, Levels]
    ) -> list[Finding]:
        """The promises, judged over the people whose linked rows stand in the same groups."""
        values = _codes(released[name])
        whose = values if people is None else _codes(people)
        if not self._links(name, values, whose, known=people is not None):
            return []
        labels = group(released, self.schema.quasi)
        trajectories = _trajectories(values, labels)
        sensitive = {p.sensitive: released[p.sensitive] for p in self.promises if p.sensitive is not None}
        groups = Groups(trajectories, sensitive, whose.astype(np.int32), levels)
        findings = []
        for promise in self.promises:
            finding = promise.judge(groups)
            title = f"{finding.promise} of the rows that {name!r} links"
            if not finding.kept:
                if LINKED_ROWS not in self.waived:
                    raise PromiseError(
                        f"the release was not made: the column {name!r} shows which rows belong to one person; "
                        f"their rows together reach {finding.promise} {finding.reached:g} where {finding.asked:g} was "
                        "asked",
                        where="adversary",
                        hint=f"do not show {name!r}, or accept it by `waive: [{LINKED_ROWS}]`",
                    )
                finding = _accepted(finding)
            findings.append(msgspec.structs.replace(finding, promise=title))
        return findings

    def _links(self, name: str, values: NDArray[np.int64], whose: NDArray[np.int64], *, known: bool) -> bool:
        """Whether equal values of a column mean the same person, with some person in several rows."""
        names_people = self.view is not None and self.view.schema[name].role in ("subject", "identifier")
        # without subjects, rows are people: equal values of a plain column mean nothing
        if not known and not names_people:
            return False
        pairs = pl.DataFrame({"value": values, "person": whose})
        many = pairs.group_by("value").agg(pl.len().alias("rows"), pl.col("person").n_unique().alias("people"))
        # a value that stands once links nothing
        several = many.filter(pl.col("rows") > 1)
        if not several.height:
            return False
        return float((several["people"] == 1).mean() or 0.0) >= SURE  # type: ignore[arg-type]

    def _alone(self, released: pl.DataFrame, name: str, people: pl.Series | None) -> list[Finding]:
        """A plain column that is a name for most people."""
        mask = None if self.view is None else self.view.masks.get(name)
        if (mask is not None and mask.keyed) or released[name].dtype.is_float():
            return []  # nobody outside can recompute the one; the other is a measurement, and the report lists it
        values, whose = _codes(released[name]), np.arange(released.height) if people is None else _codes(people)
        pairs = pl.DataFrame({"value": values, "person": whose}).unique()
        crowd = pairs["person"].n_unique()
        single = pairs.filter(pl.len().over("value") == 1)["person"].n_unique()
        if crowd < CROWD or single <= ALONE * crowd:
            return []
        share = single / crowd
        if UNIQUE_PLAIN not in self.waived:
            raise PromiseError(
                f"the release was not made: {share:.0%} of the people have a value of their own in the column "
                f"{name!r}, which is shown unchanged",
                where="adversary",
                hint=f"make it quasi or identifier, mask it, or accept it by `waive: [{UNIQUE_PLAIN}]`",
            )
        note = f"waived: {share:.0%} of the people have a value of their own"
        return [Finding(f"no name in {name!r}", True, ALONE, share, crowd, single, "people", note)]


def _accepted(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, kept=True, note=f"waived: reached {finding.reached:g} only")


def _codes(series: pl.Series) -> NDArray[np.int64]:
    return (series.rank("dense").fill_null(0)).cast(pl.Int64).to_numpy()


def _trajectories(values: NDArray[np.int64], labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Dense labels: rows whose value stands in the same groups, equally often, share one."""
    rows = pl.DataFrame({"value": values, "group": labels})
    paths = rows.group_by("value").agg(pl.col("group").sort().alias("path"))
    text = paths.with_columns(pl.col("path").cast(pl.List(pl.String)).list.join(","))
    dense = text.with_columns((pl.col("path").rank("dense") - 1).cast(pl.Int32).alias("label"))
    return rows.join(dense, on="value", how="left", maintain_order="left")["label"].to_numpy()
