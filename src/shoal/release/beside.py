"""A stream judged while it runs: every release is re-scanned by the definitions before it is written.

This shares nothing with the methods. It sees what the runner feeds and what the method answers, keeps the events of
one window (z-anonymity, :mod:`shoal.release.beside_z`) or the people behind each group, and counts names. A release
that breaks its promise is not written, and the stream ends.

``share`` is the part that is checked and paid for: of z-anonymity a random part of the labels, of groups a random part
of the groups, each then from its first release on and whenever its box is given again. Closeness compares with a whole
that is not there yet: it is judged when the stream has ended (``shoal verify``), not here. In a stream that goes on
from a snapshot, what began before it is counted as not judged.
"""

from __future__ import annotations

import math
import secrets
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.errors import PromiseError, UsageError
from shoal.core.groups import Finding, Groups
from shoal.core.schema import Schema
from shoal.promises.base import Promise, those_about
from shoal.promises.kp_anonymity import WINDOW
from shoal.streams.base import Batch, Numbers, Outcomes

PARTS = 20_000  # groups that are remembered; one given again after so many others is not judged
JUDGED = ("", "distinct", "entropy", "recursive", "frequency")  # kinds of promises that groups keep by themselves


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
    schema: Schema,
    promises: Sequence[Promise],
    method: Any,
    share: float,
    *,
    continued: bool = False,
    also: Sequence[str] = (),
) -> Beside:
    """The checker for a stream with these promises; ``continued`` if it goes on from a snapshot.

    ``also`` are columns that tell people apart beside the quasi columns.

    >>> from shoal.core.schema import Column
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> beside(Schema({"age": Column("quasi")}), [KAnonymity(2)], None, 1.0).figures()["verify_checked"]
    0
    """
    if those_about(promises, "curves"):
        return CurvesBeside(schema, promises, share)
    about_events: list[Any] = those_about(promises, "events")
    if not about_events:
        return GroupsBeside(schema, promises, share, continued=continued, also=also)
    if method is not None and method.invents:
        raise UsageError("with noise, fewer than z real people may stand behind a value", where="--verify")
    from shoal.release.beside_z import ZBeside

    return ZBeside(schema, about_events[0], share, continued=continued)


class CurvesBeside(Beside):
    """Curves of windows: each release is judged whole, by how its envelopes and patterns read."""

    def __init__(self, schema: Schema, promises: Sequence[Promise], share: float) -> None:
        super().__init__(share)
        self._promise: Any = those_about(promises, "curves")[0]
        self._others = [p for p in promises if p is not self._promise]
        self._sensitive = schema.sensitive
        # by a secret: whoever knew which windows are judged could break the others
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
                    raise broken(finding.promise, finding.asked, finding.reached)


@dataclass
class Part:
    """A group as it was released: how it reads, everyone in it, whether all are known."""

    cells: tuple[Any, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    whole: bool = True


class GroupsBeside(Beside):
    """Groups: everyone who was ever given the same box, and the sensitive values they showed with it.

    Which rows are one group the method says (:attr:`Outcomes.groups`); that they read alike is checked. Whether a group
    is judged is drawn from its name by a secret, so nothing has to be remembered of the others.
    """

    def __init__(
        self,
        schema: Schema,
        promises: Sequence[Promise],
        share: float,
        *,
        continued: bool = False,
        also: Sequence[str] = (),
    ) -> None:
        super().__init__(share)
        self._promises = [p for p in promises if p.rule().complete and p.rule().check in JUDGED]
        self._quasi = [*schema.quasi, *also]
        self._columns = sorted({p.sensitive for p in self._promises if p.sensitive})
        self._waiting = Waiting()
        self._parts: dict[Any, Part] = {}
        # events of a continued stream that came before its first batch here were never seen
        self._begin = math.inf if continued else 0.0  # the first event that was seen here
        self._secret = secrets.randbits(64)

    def feed(self, batch: Batch) -> None:
        """See :class:`Beside`."""
        self._begin = min(self._begin, batch.first)
        self._waiting.add(batch)

    def check(self, outcomes: Outcomes) -> None:
        """See :class:`Beside`. Memory: a row per released event of the newest :data:`PARTS` groups that are checked."""
        released = outcomes.released
        if released is not None and released.height:
            self._released(outcomes, released)
        self._waiting.done(outcomes)

    def _released(self, outcomes: Outcomes, released: pl.DataFrame) -> None:
        groups, cells = outcomes.groups, [c for c in self._quasi if c in released.columns]
        all_names: Any = list(_rows(released, cells)) if groups is None else groups
        # below 0: rows that noise or a rule for gaps made, with nobody behind them
        drawn = outcomes.events >= 0
        if self.share < 1:
            # without groups of the method, rows that read alike are one: its text is the name
            numbers = np.array([hash(n) for n in all_names], np.int64) if groups is None else groups
            drawn &= _mixed(numbers, self._secret) < np.uint64(self.share * 2**64)
        at = np.flatnonzero(drawn)
        if not len(at):
            return
        mine, events = released[at], outcomes.events[at].tolist()
        names = [all_names[n] for n in at] if groups is None else groups[at].tolist()
        texts = _rows(mine, cells)
        values = mine.select(self._columns).rows() if self._columns else [()] * len(at)
        # groups that this call begins: one of their own events is released now
        fresh = set(names) if groups is None else set(names).intersection(outcomes.events.tolist())
        touched: dict[Any, None] = {}
        for number, who, name, text, shown in zip(events, self._waiting.who(events), names, texts, values, strict=True):
            part = self._part(name, text, name in fresh)
            if part is None or (who is None and number < self._begin):
                self.unjudged += 1  # the group began before the snapshot, or longer ago than is remembered
                if part is not None:
                    part.whole = False
                continue
            # two texts would tell members of one group apart
            if part.cells != text:
                raise broken("one text of a group", 1, 2)
            part.rows.append((who, *shown))
            touched[name] = None
        self._judge([name for name in touched if self._parts[name].whole], released)
        # the group that was touched longest ago first
        while len(self._parts) > PARTS:
            del self._parts[next(iter(self._parts))]

    def _part(self, name: Any, text: tuple[Any, ...], fresh: bool) -> Part | None:
        """The group of this name; a new one if it may begin here."""
        part = self._parts.pop(name, None)
        if part is None:
            if not fresh:
                return None
            part = Part(text)
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
                raise broken(finding.promise, finding.asked, finding.reached)


class Waiting:
    """The people behind events that have no outcome yet, batch by batch.

    >>> waiting = Waiting()
    >>> waiting.add(Batch(pl.DataFrame({"age": [3, 4]}), np.arange(2), pl.Series(["ann", "bob"]), 10))
    >>> waiting.who([11, 9])
    ['bob', None]
    >>> waiting.done(Outcomes(withheld=np.array([10, 11])))
    >>> waiting.who([11])
    [None]
    """

    def __init__(self) -> None:
        self._batches: list[tuple[int, int, pl.Series | None]] = []  # number of the first event, events, people
        self._left: list[int] = []  # events of each batch without an outcome

    def add(self, batch: Batch) -> None:
        """Only the people are kept, not their records."""
        if len(batch):
            self._batches.append((batch.first, len(batch), batch.subjects))
            self._left.append(len(batch))

    def who(self, at: Sequence[int]) -> list[Any]:
        """The person of each event; none where it is not known."""
        firsts = [first for first, *_ in self._batches]
        return [self._one(number, bisect_right(firsts, number) - 1) for number in at]

    def _one(self, number: int, batch: int) -> Any:
        if batch < 0:
            return None
        first, size, subjects = self._batches[batch]
        if number - first >= size:
            return None
        # without a subject every event is of another person
        return str(number) if subjects is None else subjects[number - first]

    def done(self, outcomes: Outcomes) -> None:
        """A batch is forgotten when all its events have an outcome."""
        firsts = np.array([first for first, *_ in self._batches], np.int64)
        decided = np.concatenate([outcomes.events, outcomes.withheld, outcomes.joined])
        place = np.searchsorted(firsts, decided[decided >= 0], side="right") - 1
        for at, count in enumerate(np.bincount(place[place >= 0], minlength=len(firsts)).tolist()):
            self._left[at] -= count
        self._batches = [batch for batch, left in zip(self._batches, self._left, strict=True) if left > 0]
        self._left = [left for left in self._left if left > 0]


def _rows(frame: pl.DataFrame, cells: Sequence[str]) -> list[tuple[Any, ...]]:
    """The cells of each row, as texts."""
    return list(zip(*(_texts(frame[c]) for c in cells), strict=True)) or [()] * frame.height


def _texts(column: pl.Series) -> list[Any]:
    return column.cast(pl.String).to_list() if not column.dtype.is_nested() else [str(v) for v in column.to_list()]


def _mixed(numbers: Numbers, secret: int) -> NDArray[np.uint64]:
    """Well-mixed numbers (SplitMix64): which groups are drawn cannot be told without the secret."""
    z = numbers.astype(np.uint64) ^ np.uint64(secret)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def broken(promise: str, asked: float, reached: float) -> PromiseError:
    """The error that ends a stream before a bad release is written.

    >>> broken("5-anonymity", 5, 3).hint[:35]
    'this is a defect of the method: ple'
    """
    return PromiseError(
        f"a release breaks {promise}: asked {asked:g}, reached {reached:g}; it was not written, and the stream ends",
        where="verify",
        hint="this is a defect of the method: please report the method, its parameters and the promises",
    )
