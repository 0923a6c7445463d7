"""What a worker did: counts and durations by view, never a value. Metrics and logs read them from here."""

from __future__ import annotations

from dataclasses import dataclass, field


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
    held: dict[str, int] = field(default_factory=dict)
    state_bytes: dict[str, int] = field(default_factory=dict)
    commit_seconds: float = 0.0  # of the last commit
    restore_seconds: float = 0.0  # of the last assignment
    restoring: bool = True  # not ready: partitions are not assigned, or their state is being read

    @classmethod
    def of(cls, roles: list[str]) -> Counters:
        """Counters of these views, at zero."""
        zeros = [dict.fromkeys(roles, 0) for _ in range(4)]
        return cls(written=zeros[0], withheld=zeros[1], held=zeros[2], state_bytes=zeros[3])
