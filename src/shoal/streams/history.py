"""What a tuned stream showed within the last window: by it p_k is measured, and another z is tried.

One row per event and column: when, who, the chain of nodes, the people counted at each level at that moment, and the
node that was released. Fingerprints and counts only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import InputError
from shoal.measures.entropy import k_share, released_sets
from shoal.streams.steering import ALWAYS, Content, Goal
from shoal.streams.texts import number

Ints = NDArray[np.int64]
ROW = 128  # bytes of a row, reckoned with: 24, and 12 for each level


class Shown(NamedTuple):
    """Rows of the history, side by side."""

    times: NDArray[Any]
    people: NDArray[Any]
    chains: NDArray[Any]  # [n, width]
    counts: NDArray[Any]  # int32[n, width]
    released: NDArray[Any]  # 0: nothing

    def take(self, which: NDArray[np.bool_]) -> Shown:
        """Some of the rows."""
        return Shown(*(part[which] for part in self))

    def widened(self, width: int) -> Shown:
        """The same with longer chains."""
        more = ((0, 0), (0, width - self.chains.shape[1]))
        return self._replace(chains=np.pad(self.chains, more), counts=np.pad(self.counts, more))


def _nothing(width: int = 1) -> Shown:
    none = np.zeros(0, np.int64)
    return Shown(none, none, np.zeros((0, width), np.int64), np.zeros((0, width), np.int32), none)


class History:
    """The rows of one window; beyond ``ceiling`` bytes the oldest are forgotten, and p_k is that of the rest."""

    def __init__(self, ceiling: int) -> None:
        self._most = max(1, ceiling // ROW)
        self._parts: list[Shown] = []
        self._tidied = 0

    def __len__(self) -> int:
        return sum(len(part.times) for part in self._parts)

    @property
    def bytes(self) -> int:
        """Memory now."""
        return sum(array.nbytes for part in self._parts for array in part)

    def see(self, times: Ints, people: Ints, columns: Sequence[tuple[Ints, NDArray[Any], NDArray[Any]]]) -> None:
        """Take events: per column the chains, the counts and the released level of each (-1: none)."""
        for at, (chains, counts, levels) in enumerate(columns):
            # 0 is the print of nothing
            good = (times >= 0) & (people != 0) & (chains[:, 0] != 0)
            own = np.where(chains != 0, chains + at, 0)[good]  # columns are told apart
            level = levels[good].astype(np.int64)
            chosen = np.where(level >= 0, own[np.arange(len(own)), np.maximum(level, 0)], 0)
            self._parts.append(Shown(times[good], people[good], own, counts[good].astype(np.int32), chosen))

    def forget(self, limit: int) -> None:
        """Forget what is older than ``limit``; done when the rows have doubled, or the memory is full."""
        # now and then: tidying at every batch would cost more than it saves
        if len(self) > 2 * self._tidied + 65_536 or len(self) > 2 * self._most:
            self._tidy(limit)

    def window(self, now: int, span: int) -> Shown:
        """The events of the last ``span`` before ``now``, this moment included; all older ones are forgotten."""
        rows = self._tidy(now - span)
        return rows.take(rows.times <= now)

    def _tidy(self, limit: int) -> Shown:
        width = max((part.chains.shape[1] for part in self._parts), default=1)
        parts = [part.widened(width).take(part.times > limit) for part in self._parts]
        rows = Shown(*map(np.concatenate, zip(*parts, strict=True))) if parts else _nothing()
        rows = Shown(*(part[-self._most :] for part in rows))
        self._parts, self._tidied = [rows], len(rows.times)
        return rows

    def state(self) -> dict[str, Any]:
        """Plain data for a snapshot."""
        rows = self._tidy(-1)
        return {"width": rows.chains.shape[1], **{name: part.tobytes() for name, part in rows._asdict().items()}}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over plain data."""
        try:
            width = int(state["width"])
            types = {name: np.int32 if name == "counts" else np.int64 for name in Shown._fields}
            flat: dict[str, Any] = {name: np.frombuffer(state[name], kind) for name, kind in types.items()}
            rows = Shown(**(flat | {name: flat[name].reshape(-1, width) for name in ("chains", "counts")}))
            # parts of unequal length would be read side by side as other rows
            if len({len(part) for part in rows}) > 1:
                raise ValueError
        except (KeyError, ValueError, TypeError):
            raise InputError("the snapshot's history cannot be read", where="snapshot") from None
        self._parts, self._tidied = [rows], len(rows.times)


def content_of(rows: Shown) -> Content:
    """What an evaluation asks of the rows."""
    return rows.people, rows.chains, rows.counts


def to_come(rows: Shown, now: int, span: int, lead: int) -> Content:
    """The window ``lead`` from now, if the events of the last ``lead`` come once more; only they are open.

    What was released stays released. A person who then shows a value at another level has both in the set, so every
    change of z costs p_k until the window has gone by: an evaluation of the past window alone does not see that.
    """
    past, again = rows.take(rows.times > now + lead - span), rows.take(rows.times > now - lead)
    chains, counts = np.zeros_like(past.chains), np.zeros_like(past.counts)
    out = past.released != 0
    chains[:, 0] = np.where(out, past.released, past.chains[:, 0])
    counts[:, 0] = np.where(out, ALWAYS, 0)
    return (
        np.concatenate([past.people, again.people]),
        np.concatenate([chains, again.chains]),
        np.concatenate([counts, again.counts]),
    )


def measured(rows: Shown, goal: Goal, *, count_empty: bool) -> float:
    """p_k of what was really released; 1 if nobody showed anything."""
    people, first = number(rows.people)
    sizes, empty = released_sets(people, rows.released, len(first))
    return k_share(sizes, empty, goal.k, count_empty=count_empty)


def growth(rows: Shown, now: int, span: int) -> tuple[int, int]:
    """How many events came in the earlier and in the later half of the window."""
    later = int((rows.times > now - span // 2).sum())
    return len(rows.times) - later, later
