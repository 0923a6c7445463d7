"""The boxes a running method has published and may use again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.delay.published import CELLS, Published, reindex
from shoal.kernels.shared.promises import Rules
from shoal.streams.bounds import Bounds
from shoal.streams.coder import QuasiCoder
from shoal.streams.sensitive import Sensitive

COUNTED = 1024  # most sensitive values that are counted for every box; with more, such a promise gets no reuse
SAVED = ("low", "high", "level", "node", "loss", "person", "stamp", "value", "last", "kth")


class KeptBoxes:
    """At most ``boxes`` boxes with the people who got each last; memory O(boxes x (columns + people))."""

    def __init__(self, coder: QuasiCoder, sensitive: Sensitive, bounds: Bounds) -> None:
        count = bounds.boxes if bounds.reuse else 1
        q, s, deep = len(coder.names), len(sensitive.values), int(coder.depth.max())
        # twice as many people where they must also be diverse: one who gives way may be the one with the rare value
        people = 2 * sensitive.crowd if s else sensitive.k
        words = count // 64 + 1
        self._coder = coder
        self._sensitive = sensitive
        self.published = Published(
            np.zeros((count, q)),
            np.zeros((count, q)),
            np.zeros((count, q), np.int8),
            np.zeros((count, q), np.int64),
            np.zeros(count),
            np.zeros(count, np.bool_),
            np.zeros((count, people), np.int64),
            np.zeros((count, people), np.int64),
            np.zeros((count, people, s), np.int32),
            np.zeros((count if sensitive.counted and bounds.reuse else 1, s, 16), np.int32),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros((q, CELLS + 1, words), np.uint64),
            np.zeros((q, deep, CELLS, words), np.uint64),
            np.zeros(2, np.int64),
            np.full(count, -1, np.int64),
        )

    def begin(self, rules: Rules) -> None:
        """A push begins: boxes have no number in its outcomes yet, new sensitive values get room."""
        self.published.named[:] = -1
        tally = self.published.tally
        most = min(int(rules.size.max(initial=1)), COUNTED)
        if tally.shape[0] > 1 and tally.shape[2] < most:
            self.published = self.published._replace(
                tally=np.pad(tally, ((0, 0), (0, 0), (0, max(most, 2 * tally.shape[2]) - tally.shape[2])))
            )

    def state(self) -> dict[str, NDArray[Any]]:
        """The boxes in use, for a snapshot."""
        alive = np.flatnonzero(self.published.alive)
        state: dict[str, NDArray[Any]] = {name: getattr(self.published, name)[alive] for name in SAVED}
        tally = self.published.tally
        return {**state, "slots": alive, "tally": tally[alive] if tally.shape[0] > 1 else tally}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over the boxes of a snapshot, slot by slot."""
        slots = state["slots"]
        for name in SAVED:
            getattr(self.published, name)[slots] = state[name]
        if self.published.tally.shape[0] > 1:
            tally = np.zeros((self.published.tally.shape[0], *state["tally"].shape[1:]), np.int32)
            tally[slots] = state["tally"]
            self.published = self.published._replace(tally=tally)
        self.published.alive[slots] = True
        reindex(self._coder.tuples(self._coder.empty()), self.published)
