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
from shoal.promises.base import Promise, those_about
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

    >>> Adversary(Schema({}), (), waived=("linked-rows",)).waived
    ('linked-rows',)
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
        whose = None if people is None else _codes(people)
        codes = {name: _codes(released[name]) for name in self._columns(released)}
        # also all stable columns at once: sex, year of birth and profession may link rows that none links alone
        for names in [*((name,) for name in codes), *self._stable(codes, whose)]:
            found += self._linked(released, names, codes, whose, levels or {})
        for name in self.beside(released):
            found += self._alone(released, name, codes[name], whose)
        return found

    def together(self, released: pl.DataFrame, people: pl.Series | None) -> list[str]:
        """A word on columns none of which is a name, but which are one together."""
        names = [n for n in self.beside(released) if self.readable(released, n)]
        if len(names) < 2:
            return []
        codes = {name: _codes(released[name]) for name in names}
        whose = np.arange(released.height) if people is None else _codes(people)
        # without a subject every row is a person
        return self.singled_together(names, *_alone(_joined(codes, names), whose))

    def singled_together(self, names: Sequence[str], crowd: int, single: int) -> list[str]:
        """The word on columns in which so many of all people have a combination of their own."""
        if crowd < CROWD or single <= ALONE * crowd:
            return []
        told = f"{single / crowd:.0%} of the people have a combination of their own in {', '.join(map(repr, names))}"
        return [f"{told}: make those quasi that an outsider may know"]

    def demand_beside(self, known: Known, previous: Sequence[tuple[str, pl.DataFrame]]) -> list[Finding]:
        """The findings about earlier releases; an error for the first that is neither kept nor waived."""
        found = [self._of_single_rows(p, "stand in earlier releases", EARLIER_RELEASE) for p in self._of_register()]
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

    def _of_register(self) -> list[Promise]:
        return those_about(self.promises, "register")

    def _of_single_rows(self, promise: Promise, why: str, waiver: str) -> Finding:
        """A promise about a register says of one row whom it may be, and nothing of rows that belong together."""
        if waiver not in self.waived:
            raise PromiseError(
                f"the release was not made: {promise.title} speaks of single rows, and not of rows that {why}",
                where="adversary",
                hint=f"promise k-anonymity instead, or accept it by `waive: [{waiver}]`",
            )
        title = f"{promise.title} of rows that {why}"
        return Finding(title, True, promise.asked, 0, 0, 0, "people", "waived: not judged")

    def handles(self, released: pl.DataFrame) -> list[str]:
        """Shown columns that stand for a person."""
        if self.view is None:
            return []
        return [c for c in released.columns if self.view.schema[c].role in ("subject", "identifier")]

    def _columns(self, released: pl.DataFrame) -> list[str]:
        """Columns that may link rows: also a sensitive value that is a person's own does."""
        return [c for c in released.columns if c not in self.schema.quasi]

    def beside(self, released: pl.DataFrame) -> list[str]:
        """Columns that outsiders are not said to know, nor to be after."""
        return [c for c in self._columns(released) if c not in self.schema.sensitive]

    def _stable(self, codes: Mapping[str, NDArray[np.int64]], whose: NDArray[np.int64] | None) -> list[tuple[str, ...]]:
        """All columns that are the same in a person's rows, together: none may be a link, and all of them one."""
        if whose is None:
            return []
        # numbered: a column may be called "person" or "rows" itself
        rows = pl.DataFrame({"person": whose, **{f"c{at}": values for at, values in enumerate(codes.values())}})
        kinds = rows.group_by("person").agg(pl.len().alias("rows"), pl.exclude("person").n_unique())
        several = kinds.filter(pl.col("rows") > 1)
        if not several.height:
            return []
        names = tuple(n for at, n in enumerate(codes) if float((several[f"c{at}"] == 1).mean() or 0.0) >= SURE)  # type: ignore[arg-type]
        return [names] if len(names) > 1 else []

    def _linked(
        self,
        released: pl.DataFrame,
        names: tuple[str, ...],
        codes: Mapping[str, NDArray[np.int64]],
        people: NDArray[np.int64] | None,
        levels: Mapping[str, Levels],
    ) -> list[Finding]:
        """The promises, judged over the people whose linked rows stand in the same groups."""
        values = _joined(codes, names)
        whose = values if people is None else people
        if not self._links(names, values, whose, known=people is not None):
            return []
        labels = group(released, self.schema.quasi)
        # who has linked rows in groups 3 and 7 is hidden only among those who also stand in both
        trajectories = _trajectories(values, labels)
        sensitive = {p.sensitive: released[p.sensitive] for p in self.promises if p.sensitive is not None}
        groups = Groups(trajectories, sensitive, whose.astype(np.int32), levels)
        told = f"{names[0]!r} links" if len(names) == 1 else f"{', '.join(map(repr, names))} link together"
        findings = []
        for promise in those_about(self.promises, "groups"):
            if promise.sensitive in names:
                continue  # who is linked by a value shares it
            finding = promise.judge(groups)
            if not finding.kept:
                if LINKED_ROWS not in self.waived:
                    raise PromiseError(
                        f"the release was not made: the column {names[0]!r} shows which rows belong to one person; "
                        f"their rows together reach {finding.promise} {finding.reached:g} where {finding.asked:g} was "
                        "asked"
                        if len(names) == 1
                        else f"the release was not made: the columns {', '.join(map(repr, names))} together show which "
                        f"rows belong to one person; these rows reach {finding.promise} {finding.reached:g} where "
                        f"{finding.asked:g} was asked",
                        where="adversary",
                        hint=f"do not show {names[0]!r}, or accept it by `waive: [{LINKED_ROWS}]`",
                    )
                finding = _accepted(finding)
            findings.append(msgspec.structs.replace(finding, promise=f"{finding.promise} of the rows that {told}"))
        return findings + [self._of_single_rows(p, told, LINKED_ROWS) for p in self._of_register()]

    def _links(
        self, names: tuple[str, ...], values: NDArray[np.int64], whose: NDArray[np.int64], *, known: bool
    ) -> bool:
        """Whether equal values of columns mean the same person, with some person in several rows."""
        # without subjects, rows are people: equal values of a plain column mean nothing
        if not known and not self.names_people(names):
            return False
        pairs = pl.DataFrame({"value": values, "person": whose})
        many = pairs.group_by("value").agg(pl.len().alias("rows"), pl.col("person").n_unique().alias("people"))
        # a value that stands once links nothing
        several = many.filter(pl.col("rows") > 1)
        if not several.height:
            return False
        return float((several["people"] == 1).mean() or 0.0) >= SURE  # type: ignore[arg-type]

    def names_people(self, names: Sequence[str]) -> bool:
        """Whether one of these columns stands for a person, masked or not."""
        return self.view is not None and any(self.view.schema[name].role in ("subject", "identifier") for name in names)

    def readable(self, released: pl.DataFrame, name: str) -> bool:
        """Whether an outsider can know a value: not of a keyed mask, nor a measurement, which the report lists."""
        mask = None if self.view is None else self.view.masks.get(name)
        values = released[name]
        # a float with decimals is taken for a measurement, which an outsider does not know to the last digit
        return not (mask is not None and mask.keyed) and not (values.dtype.is_float() and not _whole(values))

    def _alone(
        self, released: pl.DataFrame, name: str, values: NDArray[np.int64], people: NDArray[np.int64] | None
    ) -> list[Finding]:
        """A plain column that is a name for most people."""
        if not self.readable(released, name):
            return []
        return self.singled(name, *_alone(values, np.arange(released.height) if people is None else people))

    def singled(self, name: str, crowd: int, single: int) -> list[Finding]:
        """What is found about a readable plain column in which so many of all people have a value of their own.

        >>> Adversary(Schema({}), ()).singled("height", 100, 3)
        []
        """
        # of few people a share says nothing about a plain column; one that is a name by its role shows names there, too
        if (crowd < CROWD and not self.names_people((name,))) or single <= ALONE * crowd:
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


def _alone(values: NDArray[np.int64], whose: NDArray[np.int64]) -> tuple[int, int]:
    """How many people there are, and how many have a value that nobody else has."""
    # each pair once: a value that one person has in many rows is still theirs alone
    pairs = pl.DataFrame({"value": values, "person": whose}).unique()
    return pairs["person"].n_unique(), pairs.filter(pl.len().over("value") == 1)["person"].n_unique()


def _joined(codes: Mapping[str, NDArray[np.int64]], names: Sequence[str]) -> NDArray[np.int64]:
    """Codes of the combinations of columns."""
    if len(names) == 1:
        return codes[names[0]]
    rows = pl.DataFrame({f"c{at}": codes[name] for at, name in enumerate(names)})
    return rows.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64)).to_series().to_numpy()


def _whole(values: pl.Series) -> bool:
    """Whether all numbers are whole: a card number read as a float is one still."""
    known = values.drop_nulls()
    return bool(((known == known.floor()) | known.is_nan()).all())


def _accepted(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, kept=True, note=f"waived: reached {finding.reached:g} only")


def _codes(series: pl.Series) -> NDArray[np.int64]:
    if series.dtype.is_nested():  # as it reads: nothing ranks these
        series = pl.Series([None if value is None else repr(value) for value in series.to_list()], dtype=pl.String)
    # a missing value is a value of its own, 0
    return (series.rank("dense").fill_null(0)).cast(pl.Int64).to_numpy()


def _trajectories(values: NDArray[np.int64], labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Dense labels: rows whose value stands in the same groups, equally often, share one."""
    rows = pl.DataFrame({"value": values, "group": labels})
    paths = rows.group_by("value").agg(pl.col("group").sort().alias("path"))
    # as text: lists cannot be ranked
    text = paths.with_columns(pl.col("path").cast(pl.List(pl.String)).list.join(","))
    dense = text.with_columns((pl.col("path").rank("dense") - 1).cast(pl.Int32).alias("label"))
    return rows.join(dense, on="value", how="left", maintain_order="left")["label"].to_numpy()
