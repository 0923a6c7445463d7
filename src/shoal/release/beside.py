"""A stream judged while it runs: every release is re-scanned by the definitions before it is written.

This shares nothing with the methods. It sees what the runner feeds and what the method answers, keeps the events of
one window (z-anonymity) or the people behind each group, and counts names. A release that breaks its promise is not
written, and the stream ends.

``share`` is the part that is checked: of z-anonymity a random part of the released events, of groups a random part of
the groups, each then from its first release on and whenever its box is given again. Closeness compares with a whole
that is not there yet: it is judged when the stream has ended (``shoal verify``), not here. In a stream that goes on
from a snapshot, what began before it is counted as not judged.
"""

from __future__ import annotations

import math
import secrets
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from shoal.core.comparable import comparable
from shoal.core.errors import PromiseError, UsageError
from shoal.core.groups import Finding, Groups
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.schema import Schema
from shoal.core.time import duration
from shoal.promises.base import Promise, those_about
from shoal.promises.kp_anonymity import WINDOW
from shoal.promises.z_anonymity import ZAnonymity
from shoal.streams.base import Batch, Outcomes

PARTS = 20_000  # groups that are remembered; one given again after so many others is not judged
JUDGED = ("", "distinct", "entropy", "recursive", "frequency")  # kinds of promises that groups keep by themselves
PRUNE = 4096  # events between two looks for those that left the window


class Beside:
    """Judges the outcomes of a stream method as they come.

    >>> str(Beside(0.5))
    'verified beside the run: 0 checks of a share of 50%, none broken'
    """

    def __init__(self, share: float) -> None:
        if not 0 < share <= 1:
            raise UsageError("expected a share above 0 and up to 1", where="--verify", hint="for example --verify 0.1")
        self.share = share
        self.checked = 0
        self.unjudged = 0  # released, but judged by nothing here

    def feed(self, batch: Batch) -> None:
        """Events as the method gets them, in the same order."""
        raise NotImplementedError

    def check(self, outcomes: Outcomes) -> None:
        """Judge what would be released; an error if it breaks a promise."""
        raise NotImplementedError

    def figures(self) -> dict[str, Any]:
        """The state of the check, for counters and metrics."""
        return {"verify_share": self.share, "verify_checked": self.checked, "verify_not_judged": self.unjudged}

    def __str__(self) -> str:
        rest = f", {self.unjudged:,} not judged" if self.unjudged else ""
        return f"verified beside the run: {self.checked:,} checks of a share of {self.share:.0%}, none broken{rest}"


def beside(
    schema: Schema, promises: Sequence[Promise], method: Any, share: float, *, continued: bool = False
) -> Beside:
    """The checker for a stream with these promises; ``continued`` if it goes on from a snapshot.

    >>> from shoal.core.schema import Column
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> beside(Schema({"age": Column("quasi")}), [KAnonymity(2)], None, 1.0).figures()["verify_checked"]
    0
    """
    if those_about(promises, "curves"):
        return CurvesBeside(schema, promises, share)
    about_events: list[Any] = those_about(promises, "events")
    if not about_events:
        return GroupsBeside(schema, promises, share, continued=continued)
    if method is not None and method.invents:
        raise UsageError("with noise, fewer than z real people may stand behind a value", where="--verify")
    return ZBeside(schema, about_events[0], share, continued=continued)


class ZBeside(Beside):
    """z-anonymity: for each released label, the people who showed it in the window, counted name by name."""

    def __init__(self, schema: Schema, promise: ZAnonymity, share: float, *, continued: bool = False) -> None:
        super().__init__(share)
        self._promise = promise
        self._quasi: dict[str, Hierarchy | None] = {name: schema[name].hierarchy for name in schema.quasi}
        self._labels: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in self._quasi}
        self._shown: dict[tuple[str, str], deque[tuple[int, str]]] = defaultdict(deque)
        self._times: dict[int, int] = {}
        self._random = np.random.default_rng(secrets.randbits(63))
        self._late = max([duration(schema[name].late) for name in schema.of("time")], default=0)
        self._continued, self._begin, self._now, self._fed = continued, -1, -1, 0

    def feed(self, batch: Batch) -> None:
        """See :class:`Beside`."""
        numbers = range(batch.first, batch.first + len(batch))
        names = [str(n) for n in numbers] if batch.subjects is None else batch.subjects.to_list()
        times = batch.times.tolist()
        self._times = dict(zip(numbers, times, strict=True))  # decided in the same call: no earlier one is asked for
        for name, hierarchy in self._quasi.items():
            if name not in batch.frame.columns:
                continue
            values = batch.frame[name]
            self._know(name, hierarchy, values)
            for value, time, who in zip(values.cast(pl.String).to_list(), times, names, strict=True):
                if value is not None and who is not None and time >= 0:
                    for label in self._labels[name].get(value, ()):
                        self._shown[name, label].append((time, who))
        self._fed += len(batch)
        if self._fed >= PRUNE:
            self._fed = 0
            self._prune()

    def check(self, outcomes: Outcomes) -> None:
        """See :class:`Beside`. Only events of the batch that was fed last can be released."""
        released = outcomes.released
        if released is None or not released.height:
            return
        events = outcomes.events
        # the clock of what was released: an event from the far future is withheld, and must not move it
        known = [time for n in events if (time := self._times.get(int(n), -1)) >= 0]
        self._now = max([self._now, *known])
        if self._begin < 0 and known:
            # who came before a snapshot is not known: none of them was later than this, or the event would be too late
            self._begin = min(known) + self._late
        drawn = (self._random.random(len(events)) < self.share) & (events >= 0)
        at = np.flatnonzero(drawn)
        times = np.array([self._times.get(int(events[i]), -1) for i in at], np.int64)
        spans = self._promise.spans(times) if len(at) else times
        for name in self._quasi:
            if name not in released.columns:
                continue
            labels = released[name].cast(pl.String).gather(at).to_list()
            for time, span, label in zip(times.tolist(), spans.tolist(), labels, strict=True):
                self._one(name, label, time, span)

    def _one(self, name: str, label: str | None, time: int, span: int) -> None:
        if label is None:
            return
        if time < 0 or (self._continued and time - span < self._begin):
            self.unjudged += 1  # its window began before the snapshot
            return
        people: set[str] = set()
        for at, who in reversed(self._shown.get((name, label), ())):
            if time - span <= at <= time:
                people.add(who)
                if len(people) >= self._promise.z:
                    break
        self.checked += 1
        if len(people) < self._promise.z:
            raise _broken(f"{self._promise.z}-anonymity of column {name!r}", self._promise.z, len(people))

    def _know(self, name: str, hierarchy: Hierarchy | None, values: pl.Series) -> None:
        """The value and all its generalizations, for values that are new."""
        known = self._labels[name]
        texts = values.cast(pl.String)
        new = values.filter(texts.is_not_null() & ~texts.is_in(list(known))).unique()
        if not len(new):
            return
        found = {text: {text} for text in new.cast(pl.String).to_list()}
        if hierarchy is not None:
            levels, codes = hierarchy.compile_levels(new)
            for level in range(levels.depth - 1):
                names = levels.labels(level).to_list()
                for text, code in zip(found, codes.tolist(), strict=True):
                    if code >= 0:
                        found[text].add(names[levels.codes[code, level]])
        known |= {text: tuple(labels) for text, labels in found.items()}

    def _prune(self) -> None:
        """The window before the latest event that may still come is kept."""
        old = self._now - self._promise.longest - self._late
        for key in list(self._shown):
            shown = self._shown[key]
            while shown and shown[0][0] < old:
                shown.popleft()
            if not shown:
                del self._shown[key]


class CurvesBeside(Beside):
    """Curves of windows: each release is judged whole, by how its envelopes and patterns read."""

    def __init__(self, schema: Schema, promises: Sequence[Promise], share: float) -> None:
        super().__init__(share)
        self._promise: Any = those_about(promises, "curves")[0]
        self._others = [p for p in promises if p is not self._promise]
        self._sensitive = schema.sensitive
        self._random = np.random.default_rng(secrets.randbits(63))

    def feed(self, batch: Batch) -> None:
        """See :class:`Beside`. What curves promise can be seen in what is released."""

    def check(self, outcomes: Outcomes) -> None:
        """See :class:`Beside`."""
        released = outcomes.released
        if released is None or not released.height:
            return
        for window in released.partition_by(WINDOW):
            if self._random.random() >= self.share:
                self.unjudged += 1
                continue
            shown = [name for name in self._sensitive if name in window.columns]
            findings, _ = self._promise.judge_curves(window, self._others, sensitive=shown)
            self.checked += 1
            for finding in findings:
                if not finding.kept:
                    raise _broken(finding.promise, finding.asked, finding.reached)


@dataclass
class Part:
    """A group as it was released: how it reads, whether it is checked, everyone in it, whether all are known."""

    cells: tuple[Any, ...]
    checked: bool
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    whole: bool = True


class GroupsBeside(Beside):
    """Groups: everyone who was ever given the same box, and the sensitive values they showed with it.

    Which rows are one group the method says (:attr:`Outcomes.groups`); that they read alike is checked.
    """

    def __init__(self, schema: Schema, promises: Sequence[Promise], share: float, *, continued: bool = False) -> None:
        super().__init__(share)
        self._promises = [p for p in promises if p.rule().complete and p.rule().check in JUDGED]
        self._quasi, self._columns = schema.quasi, sorted({p.sensitive for p in self._promises if p.sensitive})
        self._who: dict[int, str] = {}
        self._parts: dict[Any, Part] = {}
        self._fresh: set[Any] = set()  # groups that this call begins: one of their own events is released now
        self._begin = math.inf if continued else 0.0  # the first event that was seen here
        self._random = np.random.default_rng(secrets.randbits(63))

    def feed(self, batch: Batch) -> None:
        """See :class:`Beside`."""
        self._begin = min(self._begin, batch.first)
        numbers = range(batch.first, batch.first + len(batch))
        names = [str(n) for n in numbers] if batch.subjects is None else batch.subjects.to_list()
        self._who |= {n: who for n, who in zip(numbers, names, strict=True) if who is not None}

    def check(self, outcomes: Outcomes) -> None:
        """See :class:`Beside`. Memory: a row per released event of the newest :data:`PARTS` groups that are checked."""
        for number in outcomes.withheld.tolist():
            self._who.pop(number, None)
        released = outcomes.released
        if released is None or not released.height:
            return
        cells = released.select(c for c in self._quasi if c in released.columns)
        texts = list(zip(*(_texts(cells[c]) for c in cells.columns), strict=True)) or [()] * released.height
        values = released.select(self._columns).rows() if self._columns else [()] * released.height
        names: Sequence[Any] = texts if outcomes.groups is None else outcomes.groups.tolist()
        self._fresh = set(names).intersection(texts if outcomes.groups is None else outcomes.events.tolist())
        touched: dict[Any, None] = {}
        for number, name, text, shown in zip(outcomes.events.tolist(), names, texts, values, strict=True):
            if number < 0:
                continue
            who = self._who.pop(number, None)
            part = self._part(name, text)
            if part is None or (who is None and number < self._begin):
                self.unjudged += 1  # the group began before the snapshot, or longer ago than is remembered
                if part is not None:
                    part.whole = False
                continue
            if part.cells != text:
                raise _broken("one text of a group", 1, 2)
            if part.checked:
                part.rows.append((who, *shown))
                touched[name] = None
        self._judge([name for name in touched if self._parts[name].whole], released)
        while len(self._parts) > PARTS:
            del self._parts[next(iter(self._parts))]

    def _part(self, name: Any, text: tuple[Any, ...]) -> Part | None:
        """The group of this name; a new one if it may begin here."""
        part = self._parts.pop(name, None)
        if part is None:
            if name not in self._fresh:
                return None
            part = Part(text, bool(self._random.random() < self.share))
        self._parts[name] = part  # the newest last
        return part

    def _judge(self, touched: Sequence[Any], released: pl.DataFrame) -> None:
        if not touched:
            return
        rows = [(label, *row) for label, name in enumerate(touched) for row in self._parts[name].rows]
        people = pl.Series([row[1] for row in rows], dtype=pl.String).rank("dense").fill_null(0).cast(pl.Int32)
        about = {
            name: comparable(pl.Series([row[2 + at] for row in rows], dtype=released[name].dtype))
            for at, name in enumerate(self._columns)
        }
        groups = Groups(np.array([row[0] for row in rows], np.int32), about, people.to_numpy())
        self.checked += len(touched)
        for promise in self._promises:
            finding: Finding = promise.judge(groups)
            if not finding.kept:
                raise _broken(finding.promise, finding.asked, finding.reached)


def _texts(column: pl.Series) -> list[Any]:
    return column.cast(pl.String).to_list() if not column.dtype.is_nested() else [str(v) for v in column.to_list()]


def _broken(promise: str, asked: float, reached: float) -> PromiseError:
    return PromiseError(
        f"a release breaks {promise}: asked {asked:g}, reached {reached:g}; it was not written, and the stream ends",
        where="verify",
        hint="this is a defect of the method: please report the method, its parameters and the promises",
    )
