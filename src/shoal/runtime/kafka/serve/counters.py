"""What a worker did: counts and durations by view, never a value. Metrics and logs read them from here."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds: the classes of commit latency


@dataclass
class Counters:
    """Totals since the worker began; ``held`` and ``state_bytes`` are how it stands now."""

    read: int = 0
    dead: int = 0
    commits: int = 0
    snapshots: int = 0
    replayed: int = 0  # records read again in silence to rebuild state
    lost: int = 0  # records the source forgot before they were read
    fresh: int = 0  # views that had to begin without their state
    written: dict[str, int] = field(default_factory=dict)
    withheld: dict[str, int] = field(default_factory=dict)
    reasons: dict[tuple[str, str], int] = field(default_factory=dict)  # why, by view and reason
    held: dict[str, int] = field(default_factory=dict)
    state_bytes: dict[str, int] = field(default_factory=dict)
    commit_seconds: float = 0.0  # of the last commit
    commit_sum: float = 0.0  # of all commits
    commit_classes: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    restore_seconds: float = 0.0  # of the last assignment
    lag: dict[int, int] = field(default_factory=dict)  # records not read yet, by partition
    smallest: dict[str, int] = field(default_factory=dict)  # the fewest people a released record hides among
    oldest: dict[str, int] = field(default_factory=dict)  # when the oldest held record was sent, in milliseconds
    judged: dict[str, int] = field(default_factory=dict)  # checks beside the run that found nothing broken
    unjudged: dict[str, int] = field(default_factory=dict)  # released, and judged by none of them
    verify: float | None = None  # the share that is judged
    versions: dict[str, int] = field(default_factory=dict)  # of the views that are served
    epochs: dict[str, int] = field(default_factory=dict)  # the newest of each key: what masks and seals now
    beat: float = 0.0  # the monotonic time of the loop's last turn
    paused: bool = False  # not ready: an order says to stand still
    _counted: WeakKeyDictionary[Any, int] = field(default_factory=WeakKeyDictionary, repr=False, compare=False)
    _because: WeakKeyDictionary[Any, dict[str, int]] = field(
        default_factory=WeakKeyDictionary, repr=False, compare=False
    )
    _checks: WeakKeyDictionary[Any, tuple[int, int]] = field(
        default_factory=WeakKeyDictionary, repr=False, compare=False
    )
    restoring: bool = True  # not ready: partitions are not assigned, or their state is being read
    regions: Counters | None = None  # of the second stage, if views are repartitioned

    @classmethod
    def of(cls, roles: list[str]) -> Counters:
        """Counters of these views, at zero."""
        made = cls()
        made.know(roles)
        return made

    def beside(self) -> Counters:
        """Counters of a second stage: what it counts by view stands among ours, what it reads does not."""
        names = ("written", "withheld", "reasons", "held", "state_bytes", "smallest", "oldest", "judged", "unjudged")
        self.regions = Counters(verify=self.verify, **{name: getattr(self, name) for name in names})
        return self.regions

    @property
    def waiting(self) -> bool:
        """Whether a stage has no partitions yet, or reads their state."""
        return self.restoring or (self.regions is not None and self.regions.restoring)

    def know(self, roles: list[str]) -> None:
        """Count these views, too, from zero."""
        for table in (self.written, self.withheld, self.held, self.state_bytes):
            for role in roles:
                table.setdefault(role, 0)

    def keep_lag(self, partitions: Collection[int]) -> None:
        """Forget what is unread of other partitions: whoever reads those says it."""
        self.lag = {partition: unread for partition, unread in self.lag.items() if partition in partitions}

    def committed(self, seconds: float) -> None:
        """One more commit, which took so long."""
        self.commits += 1
        self.commit_seconds = seconds
        self.commit_sum += seconds
        self.commit_classes[bisect.bisect_left(BOUNDS, seconds)] += 1

    def begin(self, work: Any) -> None:
        """A partition of a view came: what it withheld before was counted by whoever had it then."""
        self._counted[work], self._because[work] = work.withheld, dict(work.reasons)

    def stand(self, role: str, work: Sequence[Any]) -> None:
        """How a view that remembers stands, over its partitions."""
        for one in work:
            # the state counts since the view began, over all its owners; a counter must never fall when one leaves
            withheld = one.withheld  # asked once: to count costs something
            self.withheld[role] += withheld - self._counted.get(one, 0)
            self._counted[one] = withheld
            before, now = self._because.get(one, {}), dict(one.reasons)
            for reason, count in now.items():
                self.reasons[role, reason] = self.reasons.get((role, reason), 0) + count - before.get(reason, 0)
            self._because[one] = now
            self._check(role, one)
        self.held[role] = sum(w.held for w in work)
        sizes = [w.smallest for w in work if w.smallest is not None]
        waiting = [w.oldest for w in work if w.oldest is not None]
        for table, found in ((self.smallest, sizes), (self.oldest, waiting)):
            table.pop(role, None)
            if found:
                table[role] = min(found)

    def _check(self, role: str, one: Any) -> None:
        """Checks beside the run are counted by who runs: they do not outlive it."""
        if self.verify is None:
            return
        before, now = self._checks.get(one, (0, 0)), one.judged
        self.judged[role] = self.judged.get(role, 0) + now[0] - before[0]
        self.unjudged[role] = self.unjudged.get(role, 0) + now[1] - before[1]
        self._checks[one] = now
