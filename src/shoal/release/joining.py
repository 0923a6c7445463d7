"""New rows that join a published release by its model: covered, verified together with all before, then written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from shoal.core.frames import from_any
from shoal.core.groups import Finding
from shoal.core.keys import KeyRing
from shoal.core.order import publication_order
from shoal.core.release import Release
from shoal.release.adversary import Adversary
from shoal.release.base import Job
from shoal.release.chunks import ChunkReport
from shoal.release.judge import Judge
from shoal.release.regional.figures import look_for_links
from shoal.release.regional.plan import PERSON
from shoal.release.regional.survey import OnDisk
from shoal.release.wishes import Wishes
from shoal.tables.base import Progress, silent
from shoal.tables.model import Model
from shoal.tables.model_file import load, model_file, save

NEWCOMERS = "whoever compares this with the release before, and knows who is new, finds them among fewer people"
UNKEPT = "a model keeps no columns other than those of the groups"


@dataclass(frozen=True, kw_only=True)
class JoiningJob(Job):
    """Rows that join the groups of an earlier release, whose model is in a file.

    They pass the same guards as a release: the types of its columns, the judge over all rows so far, the adversary over
    the new ones, and an order that tells nothing.
    """

    noun: ClassVar[str] = "new rows of a release: its model says what they are and what is promised"

    model: Path

    def run(self, data: Any, *, progress: Progress = silent) -> Release:
        """See :class:`Job`. Write the data, then call ``settle`` of the release: only then they have joined."""
        frame, _ = from_any(data)
        file = model_file(self.model, self.keys)
        model = load(file)
        progress(0.2, "finding groups")
        shown, withheld = model.apply(frame)
        progress(0.8, "verifying")
        whole, people = model.released()
        # over all rows so far: a new row may break what held of the old ones
        verdict = Judge(model.schema, tuple(model.promises)).demand(whole, people=people, every_row=True)
        found = self._beside(model, shown, None if people is None else people.tail(shown.height))
        report = ChunkReport(
            title=self.title,
            word=f"{shown.height:,} of {frame.height:,} new rows join the groups of the release",
            released=shown.height,
            held=0,
            withheld=withheld,
            findings=[*verdict.findings, *found],
            verified=verdict.kept,
            notes=[*self.notes, NEWCOMERS, *(f"waiver: {name}" for name in self.waived)],
        )
        order = publication_order(shown, self.draw()) if not self.keep_order and shown.height else slice(None)
        out: pl.DataFrame = shown[order]
        # saved after the rows are written: a crash may repeat the rows, never lose them
        return Release(data=out, withheld=withheld, report=report, settle=lambda: save(model, file))

    def _beside(self, model: Model, shown: pl.DataFrame, people: pl.Series | None) -> list[Finding]:
        """What links the new rows, or names people, beside the groups. The columns of rows before are not kept."""
        # no view: where one masks or derives columns, no model is kept
        adversary = Adversary(model.schema, tuple(model.promises), None, self.waived)
        rows = shown.with_columns([] if people is None else people.alias(PERSON))
        looks = OnDisk(rows.lazy(), None if people is None else PERSON)
        readable = [name for name in adversary.beside(shown) if adversary.readable(shown, name)]
        # without the columns of the rows before nothing can be judged over all: what links new rows is refused
        return look_for_links(adversary, looks, readable, UNKEPT)


def joining_job(wishes: Wishes, keys: KeyRing, common: dict[str, Any]) -> JoiningJob:
    """The job of new rows for a model."""
    path = Path(wishes.take("model"))
    model = load(model_file(path, keys))
    return JoiningJob(
        model=path, schema=model.schema, promises=tuple(model.promises), types=dict(model.types), **common
    )
