"""A table: code, group, recode, verify, measure, report. The release leaves in an order that tells nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import __version__
from shoal.core.bounds import bounded
from shoal.core.errors import UsageError
from shoal.core.frames import from_any
from shoal.core.order import publication_order
from shoal.core.register import beside_register
from shoal.core.release import Boxes, Release, nothing, read_alike, recode
from shoal.core.schema import Column, Schema
from shoal.core.table import Table, code
from shoal.measures.loss import loss, often_of
from shoal.measures.utility import utility
from shoal.policy.document import Policy
from shoal.promises.base import Promise, those_about
from shoal.release.adversary import Adversary
from shoal.release.base import GIVEN, SECRET, Job
from shoal.release.earlier import Known, nodes_of
from shoal.release.judge import Judge
from shoal.release.limits import limits_kept
from shoal.release.remarks import homogeneous, no_sets, outliers, rerun, spellings, unmet
from shoal.report.columns import in_crowds, published
from shoal.report.columns import masked as with_masks
from shoal.report.measured import table_risk
from shoal.report.model import Report
from shoal.tables import TableMethod
from shoal.tables.base import SMALL, Progress, looks_at_values, silent
from shoal.tables.limits import parts_of
from shoal.tables.model import Model
from shoal.tables.model_file import model_file, save
from shoal.verifier import Verdict
from shoal.views.derived import with_derived
from shoal.views.masked_table import BESIDE, MaskedTable, masked_table


@dataclass(frozen=True, kw_only=True)
class TableJob(Job):
    """A table to be grouped by ``method``; with a policy, the view's masks come first.

    >>> from shoal.release.job import job_of
    >>> from shoal.release.wishes import Wishes
    >>> job = job_of(Wishes({"quasi": ["age"], "k": 2, "method": "mondrian", "seed": 0}))
    >>> sorted(job.run(pl.DataFrame({"age": [20, 21, 50, 52]})).data["age"])
    ['[20, 21]', '[20, 21]', '[50, 52]', '[50, 52]']
    """

    noun: ClassVar[str] = "a table"

    method: TableMethod
    policy: Policy | None = None
    cells: str = "text"
    previous: tuple[tuple[str, pl.DataFrame], ...] = ()  # earlier releases, by what to call them
    register: pl.DataFrame | None = None  # of the people that released rows may stand for
    save_model: Path | None = None  # where the model is kept, for rows that join the groups later
    memory: int | None = None  # bytes, of a table that is read from a file: see release.regional
    engine: str = "here"  # or spark, which is for tables that are read from files: see runtime.spark

    def run(self, data: Any, *, progress: Progress = silent) -> Release:
        """See :class:`Job`. Costs what the method costs, and O(rows x columns + rows log rows) beside."""
        start = time.perf_counter()
        if self.memory is not None or self.engine != "here":
            raise UsageError(
                "has no effect on a table that is in memory",
                where="engine" if self.memory is None else "memory",
                hint="leave it out; `shoal anonymize` on the command line reads tables of any size from files",
            )
        # before the work: without a key there is nowhere to keep a model
        kept_at = None if self.save_model is None else model_file(self.save_model, self.keys)
        frame, back = from_any(data)
        masked = None if self.policy is None or self.view is None else self._masked(frame)
        schema = self.schema if masked is None else masked.schema
        rows = with_derived(frame, schema) if masked is None else masked.frame
        seed = self.draw()
        table = code(rows, schema)
        if self.register is not None:
            table = beside_register(table, rows, schema, self.register)
        doubtful = unmet(table.known, self.promises, {name: s.values for name, s in table.sensitive.items()})
        # limits part a table, and each part is grouped by itself
        method = self.method_for(int(np.bincount(parts_of(table)).min()) if table.limits and table.size else table.size)
        progress(0.1, "grouping")
        grouping = method.group(table, self.promises, seed=seed, progress=progress)
        # groups that read alike are one group for everyone outside, so they are judged and counted as one
        labels, boxes = read_alike(table, grouping.labels, grouping.floor)
        progress(0.9, "verifying")
        released, groups = recode(rows, schema, table, labels, boxes, typed=self.cells == "struct")
        people = None if schema.subject is None else rows[schema.subject]
        verdict = self._judged(schema, table, rows, released, groups)
        shown, parts = released, dict[str, tuple[str, ...]]()
        if self.cells == "bounds":
            shown, parts = self._bounded(released, schema, table, people, groups)
        role = "" if self.view is None else self.view.role
        # from what is published, never from the input: see core/order.py
        order = np.arange(released.height) if self.keep_order else publication_order(released, seed, role)
        kept = np.flatnonzero(groups >= 0)[order]
        report = self._report(method, frame, rows, table, labels, boxes, groups, released, verdict)
        # the release was demanded to keep its promises: what they cover is no finding
        columns = in_crowds(published(rows, released, schema, report.loss), self.promises, self._pseudonyms())
        doubtful += outliers({n: (table.levels[j], often_of(table, j)) for j, n in enumerate(table.names)})
        if not method.local_recoding:
            doubtful += no_sets(method.use, dict(zip(table.names, table.levels, strict=True)))
        notes = [*report.notes, *([] if masked is None else masked.notes), *doubtful]
        report = msgspec.structs.replace(
            report,
            columns=with_masks(columns, self.mask_names()),
            notes=notes,
            seconds=time.perf_counter() - start,
        )
        model = self._model(schema, table, labels, boxes, people, released)
        # window masks withhold rows: positions are those of the input, not of what was left of it
        positions = kept if masked is None else masked.rows.to_numpy()[kept]
        shuffled = shown[order]
        untouched = [c for c in shown.columns if c in released.columns and c not in schema.quasi]
        whole = back(shuffled, kept, untouched) if masked is None else masked.finish(shuffled, parts)
        return Release(
            data=whole,
            groups=self._groups_of_input(frame.height, groups, masked),
            withheld=dict(report.withheld),
            schema=schema,
            left_out=list(report.left_out),
            report=report,
            model=model,
            notes=list(report.notes),
            warnings=doubtful,
            positions=positions,
            settle=nothing if kept_at is None or model is None else lambda: save(model, kept_at),
        )

    def _model(
        self,
        schema: Schema,
        table: Table,
        labels: NDArray[np.int32],
        boxes: Boxes,
        people: pl.Series | None,
        released: pl.DataFrame,
    ) -> Model | None:
        """What new rows can join by. None where a view masks or derives columns: a model takes rows as they come."""
        if self.view is not None:
            if self.view.masks or self.schema.derived:
                return None
            named = {self.schema.subject or "" if name == BESIDE else name: c for name, c in schema.columns.items()}
            schema = Schema(named)
        return Model.of(schema, table, labels, boxes, self.promises, people, released)

    def fitting(self) -> Self:
        """See :class:`Job`."""
        return replace(self, memory=None)

    def mask_names(self) -> dict[str, str]:
        """What masks the view puts on its columns."""
        if self.policy is None or self.view is None:
            return {}
        masks = self.policy.view(self.view.role).masks
        return {name: ", ".join(m.use for m in many) for name, many in masks.items()}

    def _pseudonyms(self) -> list[str]:
        """Columns that show whose a row is, under another name."""
        return [] if self.view is None else [n for n in self.mask_names() if self.view.schema[n].role == "subject"]

    def _masked(self, frame: pl.DataFrame) -> MaskedTable:
        assert self.policy is not None
        assert self.view is not None
        return masked_table(self.policy, self.view.role, frame, self.keys)

    def method_for(self, rows: int) -> TableMethod:
        """The method; on a small table with a secret seed it is blind, where its choice of groups would tell most."""
        small = rows < SMALL * _k(self.promises)
        if self.seed is not None or not small or not self.method.local_recoding or not looks_at_values(self.promises):
            return self.method
        return msgspec.structs.replace(self.method, blind=True)

    def _judged(
        self,
        schema: Any,
        table: Table,
        rows: pl.DataFrame,
        released: pl.DataFrame,
        groups: NDArray[np.int32],
    ) -> Verdict:
        kept = np.flatnonzero(groups >= 0)
        whose = None if schema.subject is None else rows[schema.subject].gather(kept)
        # compiled for coding already, and the same for the judge
        levels = {name: s.levels for name, s in table.sensitive.items() if s.levels is not None}
        # judged is the text that would be published, not the labels of the method
        nodes = None if self.register is None else nodes_of(table)
        judge = Judge(schema, self.promises, register=self.register)
        verdict = judge.demand(released, people=whose, levels=levels, every_row=True, nodes=nodes)
        verdict = judge.insist(
            msgspec.structs.replace(verdict, findings=(*verdict.findings, *limits_kept(released, table)))
        )
        adversary = Adversary(schema, self.promises, self.view, self.waived)
        found = adversary.demand(released, whose, levels)
        if self.previous:
            # the attacker is taken to know the quasi values of everyone, as for the promises themselves
            register = rows.select(schema.quasi)[kept]
            handles, nodes = adversary.handles(released), nodes_of(table)
            known = Known(released, register, whose, handles, schema.quasi, schema.sensitive, levels, nodes)
            found += adversary.demand_beside(known, self.previous)
        return msgspec.structs.replace(verdict, findings=(*verdict.findings, *found))

    def _bounded(
        self,
        released: pl.DataFrame,
        schema: Schema,
        table: Table,
        people: pl.Series | None,
        groups: NDArray[np.int32],
    ) -> tuple[pl.DataFrame, dict[str, tuple[str, ...]]]:
        """Numbers as their bounds, judged again as they would be read; and the columns that stand for each."""
        numbers = [
            name for name, levels in zip(table.names, table.levels, strict=True) if levels.values.dtype.is_numeric()
        ]
        shown, made = bounded(released, numbers)
        columns: dict[str, Column] = {}
        for name, column in schema.columns.items():
            columns |= {part: Column("quasi") for part in made[name]} if name in made else {name: column}
        # bounds are judged as they are written: they may read otherwise than the intervals they stand for
        whose = None if people is None else people.gather(np.flatnonzero(groups >= 0))
        levels = {name: s.levels for name, s in table.sensitive.items() if s.levels is not None}
        # by a register, bounds say what the interval said
        about = tuple(those_about(self.promises, "groups"))
        if about:
            Judge(Schema(columns), about).demand(shown, people=whose, levels=levels, every_row=True)
        return shown, made

    def _report(
        self,
        method: TableMethod,
        frame: pl.DataFrame,
        rows: pl.DataFrame,
        table: Table,
        labels: NDArray[np.int32],
        boxes: Boxes,
        groups: NDArray[np.int32],
        released: pl.DataFrame,
        verdict: Verdict,
    ) -> Report:
        schema = self.schema
        withheld = dict(table.withheld)
        if rows.height < frame.height:
            withheld["window too small for its mask"] = frame.height - rows.height
        if (labels < 0).any():
            withheld["suppressed by the method"] = int((labels < 0).sum())
        sizes = np.bincount(groups[groups >= 0])
        people = rows[BESIDE] if BESIDE in rows.columns else None if schema.subject is None else rows[schema.subject]
        whose = None if people is None else people.gather(np.flatnonzero(groups >= 0))
        return Report(
            title=self.title,
            method={"use": method.use, **msgspec.structs.asdict(method)},
            seed=self.seed,
            rows=frame.height,
            released=released.height,
            withheld=withheld,
            left_out=[c for c in frame.columns if c not in schema.columns],
            findings=list(verdict.findings),
            verified=verdict.kept,
            loss=loss(table, labels, boxes, k=_k(self.promises), rows=frame.height),
            risk_before=table_risk(rows, list(table.names), people),
            risk_after=table_risk(released, list(table.names), whose),
            utility=utility(table, labels, boxes).told(),
            size_counts=[
                (int(s), int(n)) for s, n in zip(*np.unique(sizes[sizes > 0], return_counts=True), strict=True)
            ],
            seconds=0.0,
            notes=[*self.told_before(), *self._told(method, released, whose)],
            version=__version__,
        )

    def _told(self, method: TableMethod, released: pl.DataFrame, whose: pl.Series | None) -> list[str]:
        """What the groups tell though every promise is kept."""
        schema = self.schema
        shared = homogeneous(
            released, [c for c in schema.quasi if c in released.columns], schema.sensitive, self.promises, whose
        )
        told = Adversary(schema, self.promises, self.view).together(released, whose)
        spelled = [] if whose is None else spellings(whose)
        return [*([rerun(method, self.promises)] if schema.sensitive else []), *shared, *told, *spelled]

    def told_before(self) -> list[str]:
        """What is known before any row is looked at, and belongs into the report."""
        notes = [*self.notes, SECRET if self.seed is None else GIVEN]
        if self.keep_order:
            notes.append("waiver: rows stand in the order of the input, which tells whose row is whose")
        notes += [f"waiver: {name}" for name in self.waived]
        for name, column in self.schema.columns.items():
            if column.hierarchy is not None:
                notes += [f"column {name!r}, {doubt}" for doubt in getattr(column.hierarchy, "doubts", list)()]
        return notes

    def _groups_of_input(self, height: int, groups: NDArray[np.int32], masked: MaskedTable | None) -> NDArray[np.int32]:
        if masked is None:
            return groups
        out = np.full(height, -1, np.int32)
        out[masked.rows.to_numpy()] = groups
        return out


def _k(promises: Sequence[Promise]) -> int:
    return max((p.rule().k for p in promises), default=1)
