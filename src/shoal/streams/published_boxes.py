"""The boxes a running method has published and may use again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.delay.published import CELLS, Published, Released, reindex
from shoal.kernels.shared.promises import Rules
from shoal.streams.bounds import Bounds
from shoal.streams.coder import QuasiCoder
from shoal.streams.sensitive import Sensitive

# people of a box, at least, where promises about sensitive values count each of them once: a box that can remember no
# more is given to nobody else, so too few make a promise dear that holds anyway (on Adult: 32 cost 17 %, 128 1 %)
REMEMBERED = 128
COUNTED = 1024  # most sensitive values that are counted for every box; with more, such a promise gets no reuse
NOBODY = np.iinfo(np.int64).max
SAVED = ("low", "high", "level", "node", "loss", "person", "stamp", "value", "last", "kth")


class KeptBoxes:
    """At most ``boxes`` boxes with the people who got each last; memory O(boxes x (columns + people))."""

    def __init__(self, coder: QuasiCoder, sensitive: Sensitive, bounds: Bounds) -> None:
        count = bounds.boxes if bounds.reuse else 1
        q, s, deep = len(coder.names), len(sensitive.values), int(coder.depth.max())
        # more people where they must also be diverse: whoever is forgotten could be counted twice
        people = max(2 * sensitive.crowd, REMEMBERED) if s else sensitive.k
        words = count // 64 + 1
        self._coder = coder
        self._sensitive = sensitive
        self._born = np.full(count, -1, np.int64)  # an event of the group each box was made for
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
            np.zeros(3, np.int64),
            np.full(count, -1, np.int64),
        )

    def begin(self, rules: Rules, *, people: bool) -> None:
        """A push begins: boxes have no number in its outcomes yet, new sensitive values get room.

        ``people``: tuples are of people who may come again; otherwise every tuple counts as a person.
        """
        self.published.named[:] = -1
        self.published.words[2] = int(people)
        tally = self.published.tally
        most = min(int(rules.size.max(initial=1)), COUNTED)
        if tally.shape[0] > 1 and tally.shape[2] < most:
            self.published = self.published._replace(
                tally=np.pad(tally, ((0, 0), (0, 0), (0, max(most, 2 * tally.shape[2]) - tally.shape[2])))
            )

    def groups(self, released: Released, out: NDArray[np.int64], event: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of the tuples ``out`` released in this push: the least event of the group their box was made for."""
        box, again = released.box[out], released.again[out]
        first = np.full(int(box.max(initial=-1)) + 1, NOBODY)  # of boxes made in this push
        np.minimum.at(first, box[~again], event[out[~again]])
        slot = released.slot[: len(first)]  # of boxes made before it; by now another box may have taken the slot
        before = np.where(slot >= 0, self._born[slot], -1)
        named = self.published.named
        kept = np.flatnonzero((named >= 0) & (named < len(first)))
        made = kept[first[named[kept]] < NOBODY]
        self._born[made] = first[named[made]]
        groups: NDArray[np.int64] = np.where(first < NOBODY, first, before)[box]
        return groups

    def state(self) -> dict[str, NDArray[Any]]:
        """The boxes in use, for a snapshot."""
        alive = np.flatnonzero(self.published.alive)
        state: dict[str, NDArray[Any]] = {name: getattr(self.published, name)[alive] for name in SAVED}
        tally = self.published.tally
        return {
            **state,
            "slots": alive,
            "born": self._born[alive],
            "tally": tally[alive] if tally.shape[0] > 1 else tally,
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over the boxes of a snapshot, slot by slot."""
        slots = state["slots"]
        for name in SAVED:
            getattr(self.published, name)[slots] = state[name]
        self._born[slots] = state["born"]
        if self.published.tally.shape[0] > 1:
            tally = np.zeros((self.published.tally.shape[0], *state["tally"].shape[1:]), np.int32)
            tally[slots] = state["tally"]
            self.published = self.published._replace(tally=tally)
        self.published.alive[slots] = True
        reindex(self._coder.tuples(self._coder.empty()), self.published)
