"""The only road to the verifier: what was promised of a release, judged by what it shows.

Three kinds of promises are judged in three ways: groups of rows by how they read, curves by their envelopes and
patterns, and z-anonymity by scanning the original events again, because those who support a value may be withheld.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.errors import PromiseError, UsageError
from shoal.core.frames import require
from shoal.core.groups import Coverage, Finding
from shoal.core.levels import Levels
from shoal.core.schema import Schema
from shoal.core.table import by_value
from shoal.measures.attack import Nodes
from shoal.promises.base import Promise, those_about
from shoal.promises.compact import expand, is_compact
from shoal.promises.kp_anonymity import GROUP, LEVEL, PATTERN, RECORD, WINDOW
from shoal.release.register import coverage, nodes_of_register
from shoal.verifier import Verdict, Whole, verify
from shoal.views.derived import with_derived
from shoal.views.role_view import RoleView

ROTATING = "pseudonyms change with time: one person may be counted several times"


@dataclass(frozen=True)
class Judge:
    """Judges what would be published, or was: ``quasi`` columns as released, and the promises.

    ``subject`` is a column of the release that says whose row it is. With a ``view``, a column that the role must not
    see breaks the release, too, whatever its groups.

    >>> from shoal.core.schema import Column
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> judge = Judge(Schema({"age": Column("quasi")}), (KAnonymity(2),))
    >>> judge.judge(pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "31"]})).kept
    False
    """

    schema: Schema
    promises: tuple[Promise, ...]
    subject: str | None = None
    view: RoleView | None = None
    instants: tuple[str, ...] | None = None  # of curves; every column that is nothing else, if not given
    hidden: frozenset[str] = field(default_factory=frozenset)  # quasi columns the release does not show
    register: pl.DataFrame | None = None  # of the people that released rows may stand for
    beside: tuple[str, ...] = ()  # what tells people apart as quasi columns do: a time that a stream shows

    @property
    def quasi(self) -> list[str]:
        """The columns of the release that tell people apart."""
        return [*(name for name in self.schema.quasi if name not in self.hidden), *self.beside]

    def judge(
        self,
        released: pl.DataFrame,
        *,
        people: pl.Series | None = None,
        original: pl.DataFrame | None = None,
        levels: Mapping[str, Levels] | None = None,
        every_row: bool = False,
        nodes: Mapping[str, Nodes] | None = None,
        whole: Mapping[str, Whole] | None = None,
        labels: NDArray[np.int32] | None = None,
    ) -> Verdict:
        """The verdict on released rows.

        ``people`` says whose they are where the release does not; ``original`` are the events behind a stream;
        ``levels`` those of sensitive columns, if they are at hand; ``every_row``: none stands for a withheld one;
        ``nodes`` the values under each label of quasi columns, if they are at hand.
        ``whole``: these are some of the released rows, and so are the sensitive values of all spread.
        ``labels``: the verifier has grouped these rows before.
        """
        # nothing promised is kept by anything
        if not self.promises:
            raise UsageError("no promise to judge", where="verify", hint="give k, for example k=5")
        if those_about(self.promises, "curves"):
            # judged row by row, as it would read with a row per record
            released = expand(released) if is_compact(released) else released
            verdict = self._curves(released)
        elif original is not None and those_about(self.promises, "events"):
            verdict = self._stream(released, original)
        else:
            verdict = self._groups(released, self.promises, people, levels, every_row, nodes, whole, labels)
        return msgspec.structs.replace(verdict, findings=(*verdict.findings, *self._foreign(released)))

    def demand(self, released: pl.DataFrame, **known: Any) -> Verdict:
        """The verdict on what a method made; an error if a promise is broken, and nothing is released."""
        return self.insist(self.judge(released, **known))

    def insist(self, verdict: Verdict) -> Verdict:
        """The verdict, if every promise is kept; an error otherwise, and nothing is released."""
        if not verdict.kept:
            broken = next(f for f in verdict.findings if not f.kept)
            raise PromiseError(
                f"the release was not made: {broken}",
                where="verify",
                hint="this is a defect of the method: please report the method, its parameters and the promises",
            )
        return verdict

    def levels(self, released: pl.DataFrame) -> dict[str, Levels]:
        """The hierarchies of sensitive columns over the values that are shown."""
        out = {}
        for name in self.schema.sensitive:
            hierarchy = self.schema[name].hierarchy
            if hierarchy is not None and name in released.columns:
                values = comparable(released[name])
                out[name] = by_value(hierarchy, values.unique().sort(nulls_last=True), f"column {name!r}")
        return out

    def _groups(
        self,
        released: pl.DataFrame,
        promises: Sequence[Promise],
        people: pl.Series | None = None,
        levels: Mapping[str, Levels] | None = None,
        every_row: bool = False,
        nodes: Mapping[str, Nodes] | None = None,
        whole: Mapping[str, Whole] | None = None,
        labels: NDArray[np.int32] | None = None,
    ) -> Verdict:
        if people is None and self.subject is not None:
            require(released, [self.subject], "release")
            people = released[self.subject]
        known = self.levels(released) if levels is None else levels
        verdict = verify(
            released,
            self.quasi,
            promises,
            people=people,
            levels=known,
            every_row=every_row,
            register=None if self.register is None else partial(self._covered, nodes),
            whole=whole,
            labels=labels,
        )
        if self.subject is None or not self._rotates(self.subject):
            return verdict
        # one person has several pseudonyms over time: counted by them, groups look larger than they are
        doubtful = [msgspec.structs.replace(f, unit="pseudonyms", note=ROTATING) for f in verdict.findings]
        return msgspec.structs.replace(verdict, findings=tuple(doubtful), unit="pseudonyms")

    def _covered(
        self, nodes: Mapping[str, Nodes] | None, released: pl.DataFrame, labels: NDArray[np.int32]
    ) -> Coverage:
        assert self.register is not None
        known = nodes_of_register(self.register, self.schema) if nodes is None else nodes
        return coverage(released, labels, self.quasi, self.register, known)

    def _rotates(self, column: str) -> bool:
        mask = None if self.view is None else self.view.masks.get(column)
        return getattr(mask, "rotate", None) is not None

    def _stream(self, released: pl.DataFrame, original: pl.DataFrame) -> Verdict:
        time = next(iter(self.schema.of("time")), None)
        if time is None:
            raise UsageError("z-anonymity is judged by event time, and no time column is declared", where="verify")
        # derived columns stand in the release, but not in the events of the source
        if self.view is not None:
            original = with_derived(original, self.view.schema)
        require(original, [time, *([self.schema.subject] if self.schema.subject else []), *self.quasi], "original")
        about: dict[str, Any] = {
            "time": time,
            "subject": self.schema.subject,
            "quasi": {name: self.schema[name].hierarchy for name in self.quasi},
            "unit": self.schema[time].unit,
        }
        events = those_about(self.promises, "events")
        found = [finding for promise in events for finding in promise.judge_events(original, released, **about)]
        # beside z, groups may be promised, too; they can be seen in the release alone
        if rest := [p for p in self.promises if p not in events]:
            found += self._groups(released, rest).findings
        return Verdict(tuple(found), released.height, 0, "people" if self.schema.subject else "rows")

    def _curves(self, released: pl.DataFrame) -> Verdict:
        promise = those_about(self.promises, "curves")[0]
        others = [p for p in self.promises if p is not promise]
        long = any(name not in self.hidden for name in self.schema.of("time"))
        # a long table has its instants in rows: every column that is nothing else is a value
        named = self.instants if self.instants is not None else () if long else self.quasi
        findings, records = promise.judge_curves(
            released,
            others,
            sensitive=[n for n in self.schema.sensitive if n not in self.hidden],
            instants=list(named) or None,
        )
        return Verdict(tuple(findings), records, findings[0].groups, "rows")

    def _foreign(self, released: pl.DataFrame) -> list[Finding]:
        """A finding if columns show something the role must not see: hidden ones in clear, or undeclared ones."""
        if self.view is None:
            return []
        view = self.view
        # a nested field stands in the release under its first step
        seen = {step.split("[")[0] for n in (*view.shown, *view.masks) for step in (n, n.split(".")[0])}
        if those_about(self.promises, "curves"):
            # =|what every release of curves has beside the columns of its view
            seen |= {
                WINDOW,
                GROUP,
                PATTERN,
                LEVEL,
                RECORD,
                *[f"{n}_{end}" for n in self.quasi for end in ("low", "high")],
            }
        shown = [c for c in released.columns if c not in seen and not _is_hidden(released[c])]
        if not shown:
            return []
        note = f"{', '.join(shown[:5])}{', …' if len(shown) > 5 else ''}"
        return [
            Finding(f"only what {view.role} sees", False, 0, len(shown), released.width, len(shown), "columns", note)
        ]


def _is_hidden(cells: pl.Series) -> bool:
    return not cells.len() or cells.is_null().all() or (cells.dtype == pl.String and set(cells.unique()) <= {"*", None})
