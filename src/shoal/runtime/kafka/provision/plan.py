"""A plan: the difference between a policy and a cluster, as steps that can be read before they are carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shoal.runtime.kafka.provision.audit import Applying, History
from shoal.runtime.kafka.provision.layout import Layout, Topic
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.provision.change import Change


@dataclass(frozen=True)
class Plan:
    """The difference between a policy and a cluster, what would be wider than before, and what forbids it."""

    wanted: Layout
    changes: tuple[Change, ...] = ()
    wider: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    served: Mapping[str, Served] = field(default_factory=dict)
    new: tuple[str, ...] = ()  # views that are new, of a new version, or whose topic is gone
    history: History = field(default_factory=History)  # what was applied before
    source: str = ""  # the id of the source, if there is one
    make: Topic | None = None  # the source, if there is none
    anew: bool = False  # it is another source than the one applied last
    grown: bool = False  # topics get more partitions
    steps: tuple[Callable[[], None], ...] = field(default=(), repr=False)
    switch: tuple[Callable[[], None], ...] = field(default=(), repr=False)  # once new views are filled

    @property
    def left(self) -> Applying | None:
        """An apply that did not end."""
        return self.history.left

    def __str__(self) -> str:
        lines = [str(c) for c in self.changes] or ["nothing to do"]
        lines += [f"! wider: {w}" for w in self.wider]
        lines += [f"! refused: {r}" for r in self.refusals]
        lines += [f"note: {n}" for n in self.notes]
        return "\n".join(lines)
