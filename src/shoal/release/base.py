"""What every job has in common."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from shoal.core.keys import KeyRing
from shoal.core.release import Release
from shoal.core.schema import Schema
from shoal.promises.base import Promise
from shoal.tables.base import Progress, silent
from shoal.views.role_view import RoleView

SECRET = "the seed was drawn in secret"
GIVEN = "the seed was given: whoever knows it and the original rows can run the method again and compare"


@dataclass(frozen=True, kw_only=True)
class Job:
    """Something to run: what the data are, what is promised, and the gate that values pass.

    ``types`` and the columns that must stay ``exact`` are for whoever reads the data. ``notes`` go into the report.
    Without a ``seed`` one is drawn in secret.

    >>> from shoal.release.job import job_of
    >>> from shoal.release.wishes import Wishes
    >>> job = job_of(Wishes({"quasi": ["age"], "k": 5, "seed": 3}))
    >>> job.title, job.draw()
    ('release', 3)
    """

    noun: ClassVar[str] = "a view without promises"  # in messages
    title: str
    schema: Schema
    promises: tuple[Promise, ...] = ()
    view: RoleView | None = None
    keys: KeyRing = field(default_factory=KeyRing)
    types: Mapping[str, str] = field(default_factory=dict)
    exact: tuple[str, ...] = ()
    seed: int | None = None
    notes: tuple[str, ...] = ()
    keep_order: bool = False
    waived: tuple[str, ...] = ()

    def run(self, data: Any, *, progress: Progress = silent) -> Release:
        """The verified release of a frame; nothing unverified is ever returned."""
        raise NotImplementedError

    def fitting(self) -> Self:
        """The same job for data that are known to fit in memory."""
        return self

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The columns whose cells leave as they came: shown, not masked, not generalized."""
        shown = self.schema.columns if self.view is None else self.view.shown
        # beside promises, quasi columns leave generalized
        return tuple(name for name in shown if not self.promises or self.schema[name].role != "quasi")

    def draw(self) -> int:
        """The seed of one run."""
        # 63 bits: compiled code takes signed numbers of 64
        return secrets.randbits(63) if self.seed is None else self.seed
