"""What a running stream really released, over time: p_k, entropy, residual information, shares by level.

All is measured over the window before each mark, on people (Bacconi 2021, 4.4, 5.3, 5.4). Invented pairs are left
out: a comparison with the original would make no sense with them (section 6.2).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.measures.entropy import entropy, k_share, released_sets, residual
from shoal.streams.texts import number

Ints = NDArray[np.int64]
FINEST = 13  # levels that are told apart


class Seen(NamedTuple):
    """Decisions: time, person, the node of the exact value, the released node (0: none) and its level (-1).

    >>> Seen._fields[:2]
    ('times', 'people')
    """

    times: NDArray[Any]
    people: NDArray[Any]
    exact: NDArray[Any]
    released: NDArray[Any]
    levels: NDArray[Any]


class Watch:
    """Looks at a stream every ``every`` microseconds. Memory: the decisions of one window.

    ``span`` gives the window that holds at a time, ``z_at`` the z; ``k`` is the k of p_k. ``rows`` are the figures so
    far, one dictionary per mark: ``time`` (seconds), ``events``, ``withheld``, ``level_…`` (since the last mark),
    ``people``, ``p_k``, ``entropy_before``, ``entropy_after``, ``residual`` (over the window), ``z``. ``spent`` is the
    time it took, in seconds: whoever watches a live stream may have to pause.
    """

    def __init__(
        self, every: int, span: Callable[[Ints], Ints], z_at: Callable[[int], int], *, k: int = 2, empty: bool = True
    ) -> None:
        if every <= 0 or k < 2:
            raise UsageError("expected a positive interval and k of at least 2", where="figures")
        self.every, self.k = every, k
        self.rows: list[dict[str, Any]] = []
        self.spent = 0.0
        self._span, self._z_at, self._empty = span, z_at, empty
        self._held: list[Seen] = []
        self._mark = -1

    def see(
        self, now: int, times: Ints, subjects: Ints, columns: Sequence[tuple[NDArray[np.int32], Ints, Any]]
    ) -> None:
        """Take a batch: codes, chains and levels of each column. Marks that the clock has passed are measured."""
        began = time.perf_counter()
        self._see(now, times, subjects, columns)
        self.spent += time.perf_counter() - began

    def _see(
        self, now: int, times: Ints, subjects: Ints, columns: Sequence[tuple[NDArray[np.int32], Ints, Any]]
    ) -> None:
        good = (times >= 0) & (subjects != 0)
        if not good.any():
            return
        for at, (codes, chains, levels) in enumerate(columns):
            use = good & (codes >= 0)
            row, level = codes[use], levels[use]
            chosen = np.where(level >= 0, chains[row, np.maximum(level, 0)], 0)
            self._held.append(
                Seen(times[use], subjects[use], chains[row, 0] + at, np.where(chosen, chosen + at, 0), level)
            )
        if self._mark < 0:
            self._mark = -(-int(times[good].min()) // self.every) * self.every
        while self._mark < now:
            self._measure(self._mark)
            self._mark += self.every

    @property
    def held(self) -> int:
        """Decisions that are kept for the next mark."""
        return sum(len(seen.times) for seen in self._held)

    def finish(self) -> list[dict[str, Any]]:
        """The figures. What came after the last mark is no whole interval; it counts only if there is nothing else."""
        if not self.rows and any(len(s.times) for s in self._held):
            self._measure(self._mark)
            self._mark += self.every
        return self.rows

    def _measure(self, mark: int) -> None:
        span = int(self._span(np.array([mark]))[0])
        all_of = Seen(*(np.concatenate(part) for part in zip(*self._held, strict=True)))
        before, kept = all_of.times <= mark, all_of.times > mark - max(span, self.every)
        self._held = [Seen(*(part[kept] for part in all_of))]
        window = Seen(*(part[before & (all_of.times > mark - span)] for part in all_of))
        lately = all_of.levels[before & (all_of.times > mark - self.every)]
        people, first = number(window.people)
        after, none = released_sets(people, window.released, len(first))
        exact, _ = released_sets(people, window.exact, len(first))
        h_before, h_after = entropy(exact), entropy(after)
        levels = np.bincount(lately[lately >= 0], minlength=FINEST)
        self.rows.append(
            {
                "time": mark / 1e6,
                "events": len(lately),
                "withheld": int((lately < 0).sum()),
                **{f"level_{level}": int(levels[level]) for level in range(FINEST)},
                "people": len(first),
                "p_k": k_share(after, none, self.k, count_empty=self._empty) if len(first) else None,
                "entropy_before": h_before,
                "entropy_after": h_after,
                "residual": residual(h_after, h_before),
                "z": self._z_at(mark),
            }
        )
