"""z-anonymity judged while a stream runs: for each released label, the people who showed it, counted name by name.

``share`` is a part of the labels (values and their generalizations), drawn by a secret: of these every event is kept
for a window and every release is judged, of the others nothing is kept. So the check costs its share, and still counts
everyone behind what it judges; a part of the events would not do, because most of those who support a release would be
missing. After some windows other labels are drawn, so that a long stream is judged in all its parts.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections import defaultdict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.hierarchy.base import Hierarchy
from shoal.core.schema import Schema
from shoal.core.time import duration
from shoal.promises.z_anonymity import ZAnonymity
from shoal.release.beside import Beside, broken
from shoal.streams.base import Batch, Numbers, Outcomes

PRUNE = 4096  # events between two looks for those that left the window
ROUND = 8  # windows after which other labels are drawn
VALUES = 1 << 18  # values whose generalizations are remembered
EVER = -(1 << 62)  # before every event
Mask = NDArray[np.bool_]


class Draw:
    """A random part of the labels. What was shown until ``since`` is not known of them.

    >>> Draw(1.0, 0).has("page", pl.Series(["news", None])).tolist()
    [True, False]
    """

    def __init__(self, share: float, since: int) -> None:
        self.share, self.since = share, since
        self._secrets: dict[str, int] = defaultdict(lambda: secrets.randbits(63))  # by column

    def has(self, column: str, labels: pl.Series) -> Mask:
        """Which labels are drawn: the same answer whenever it is asked, by a hash with a seed of the column."""
        known = labels.is_not_null().to_numpy()
        # all labels: no hash needs to be made
        if self.share == 1:
            return known
        return known & (labels.hash(self._secrets[column]).to_numpy() < np.uint64(self.share * 2**64))


class Shown:
    """Who showed a label when, by time.

    >>> shown = Shown()
    >>> shown.add(7, "ann"), shown.add(5, "bob"), shown.add(9, "eve")
    (None, None, None)
    >>> shown.people(5, 8, 10)
    2
    """

    def __init__(self) -> None:
        self._times: list[int] = []
        self._who: list[str] = []

    def add(self, time: int, who: str) -> None:
        """Late events are put in their place: most come in order."""
        at = len(self._times) if not self._times or self._times[-1] <= time else bisect_right(self._times, time)
        self._times.insert(at, time)
        self._who.insert(at, who)

    def people(self, first: int, last: int, most: int) -> int:
        """How many people showed it in this time; counting ends at ``most``."""
        people: set[str] = set()
        for at in range(bisect_right(self._times, last) - 1, -1, -1):
            # newest first, so that counting mostly ends after z events
            if self._times[at] < first or len(people) >= most:
                break
            people.add(self._who[at])
        return len(people)

    def forget(self, before: int) -> bool:
        """Drop what is older; whether nothing is left."""
        at = bisect_left(self._times, before)
        del self._times[:at], self._who[:at]
        return not self._times


class ZBeside(Beside):
    """Counts the people behind released labels by the definition alone.

    >>> from shoal.core.schema import Column
    >>> schema = Schema({"at": Column("time"), "who": Column("subject"), "page": Column("quasi")})
    >>> ZBeside(schema, ZAnonymity(2, "1h"), 0.1).figures()["verify_share"]
    0.1
    """

    def __init__(self, schema: Schema, promise: ZAnonymity, share: float, *, continued: bool = False) -> None:
        super().__init__(share)
        self._promise = promise
        self._quasi: dict[str, Hierarchy | None] = {name: schema[name].hierarchy for name in schema.quasi}
        self._kept: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in self._quasi}  # drawn labels by value
        self._shown: dict[tuple[str, str], Shown] = defaultdict(Shown)
        self._late = max([duration(schema[name].late) for name in schema.of("time")], default=0)
        self._draw = Draw(share, EVER)
        self._next: Draw | None = None
        self._first, self._times = 0, np.zeros(0, np.int64)
        self._continued, self._now, self._latest, self._turned, self._fed = continued, EVER, EVER, EVER, 0

    def feed(self, batch: Batch) -> None:
        """See :class:`Beside`."""
        # z-anonymity decides an event when it comes, so none of an earlier batch is asked for
        self._first, self._times = batch.first, batch.times  # decided in the same call: no earlier one is asked for
        if not len(batch):
            return
        self._latest = max(self._latest, int(batch.times.max()))
        # an event without a time or a person supports nobody
        usable = batch.times >= 0
        if batch.subjects is not None:
            usable &= batch.subjects.is_not_null().to_numpy()
        for name, hierarchy in self._quasi.items():
            if name not in batch.frame.columns:
                continue
            values = batch.frame[name]
            texts = values.cast(pl.String)
            known, kept = self._known(name, hierarchy, values, texts)
            at = np.flatnonzero(known & usable)
            subjects = [str(batch.first + n) for n in at] if batch.subjects is None else batch.subjects.gather(at)
            for text, time, who in zip(texts.gather(at), batch.times[at].tolist(), subjects, strict=True):
                for label in kept.get(text) or (text,):
                    self._shown[name, label].add(time, who)
        self._fed += len(batch)
        if self._fed >= PRUNE:
            self._fed = 0
            self._prune()

    def check(self, outcomes: Outcomes) -> None:
        """See :class:`Beside`. Only events of the batch that was fed last can be released."""
        released = outcomes.released
        if released is None or not released.height:
            return
        at = outcomes.events - self._first
        here = (at >= 0) & (at < len(self._times))
        times = np.full(len(at), -1, np.int64)
        times[here] = self._times[at[here]]
        self._see(times[times >= 0])
        spans = self._promise.spans(times)
        for name in self._quasi:
            if name not in released.columns:
                continue
            labels = released[name].cast(pl.String)
            drawn = np.flatnonzero(self._draw.has(name, labels) & (outcomes.events >= 0))
            for label, n in zip(labels.gather(drawn), drawn.tolist(), strict=True):
                self._one(name, label, int(times[n]), int(spans[n]))
        if self.share < 1:
            self._turn()

    def _see(self, known: Numbers) -> None:
        """The clock of what was released: an event from the far future is withheld, and must not move it."""
        if not len(known):
            return
        if self._now == EVER:
            self._turned = int(known.max())
            if self._continued:
                # who came before a snapshot is not known: none was later than this, or the event would be too late
                self._draw.since = int(known.min()) + self._late - 1
        self._now = max(self._now, int(known.max()))

    def _one(self, name: str, label: str, time: int, span: int) -> None:
        if time < 0 or time - span <= self._draw.since:
            self.unjudged += 1  # its window began before the snapshot
            return
        z = self._promise.z
        shown = self._shown.get((name, label))
        people = shown.people(time - span, time, z) if shown else 0
        self.checked += 1
        if people < z:
            raise broken(f"{z}-anonymity of column {name!r}", z, people)

    def _turn(self) -> None:
        """Draw other labels now and then: first their events are kept, and when a window of them is whole they count.

        An event from the far future makes ``since`` so late that no other labels are drawn: sound, no false alarm.
        """
        if self._next is None:
            if self._now - self._turned < ROUND * self._promise.longest:
                return
            # the latest time seen at all: whatever comes after it is known whole of the new labels
            self._next = Draw(self.share, self._latest)
        elif self._now - self._late - self._promise.longest > self._next.since:
            self._draw, self._next, self._turned = self._next, None, self._now
            for name in self._quasi:
                labels = pl.Series([label for column, label in self._shown if column == name], dtype=pl.String)
                for label in labels.filter(~pl.Series(self._draw.has(name, labels))):
                    del self._shown[name, label]
        else:
            return
        for kept in self._kept.values():
            kept.clear()

    def _known(
        self, name: str, hierarchy: Hierarchy | None, values: pl.Series, texts: pl.Series
    ) -> tuple[Mask, dict[str, tuple[str, ...]]]:
        """The events to keep, and the labels that are drawn of each value; without a hierarchy it is the value."""
        draws = [self._draw] if self._next is None else [self._draw, self._next]
        if hierarchy is None:
            return np.logical_or.reduce([draw.has(name, texts) for draw in draws]), {}
        kept = self._kept[name]
        if len(kept) > VALUES:
            kept.clear()
        distinct = texts.drop_nulls().unique().to_list()
        new = [text for text in distinct if text not in kept]
        if new:
            texts_of, labels = _generalized(hierarchy, values.filter(texts.is_in(new)).unique())
            drawn = np.logical_or.reduce([draw.has(name, labels) for draw in draws])
            # =|values of which no label is drawn, too: they must not be looked up again
            kept |= dict.fromkeys(new, ())
            for text, label in zip(texts_of.filter(pl.Series(drawn)), labels.filter(pl.Series(drawn)), strict=True):
                kept[text] = (*kept[text], label)
        mine = [text for text in distinct if kept[text]]
        return texts.is_in(mine).fill_null(False).to_numpy() if mine else np.zeros(len(texts), np.bool_), kept

    def _prune(self) -> None:
        """The window before the latest event that may still come is kept."""
        old = self._now - self._promise.longest - self._late
        for key in [key for key, shown in self._shown.items() if shown.forget(old)]:
            del self._shown[key]


def _generalized(hierarchy: Hierarchy, values: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Each value with itself and with each of its generalizations, as texts."""
    texts = values.cast(pl.String).to_list()
    found = {text: {text} for text in texts}
    levels, codes = hierarchy.compile_levels(values)
    for level in range(levels.depth - 1):
        names = levels.labels(level).to_list()
        for text, code in zip(texts, codes.tolist(), strict=True):
            if code >= 0:
                found[text].add(names[levels.codes[code, level]])
    pairs = [(text, label) for text, labels in found.items() for label in sorted(labels)]
    return pl.Series([text for text, _ in pairs], dtype=pl.String), pl.Series([x for _, x in pairs], dtype=pl.String)
