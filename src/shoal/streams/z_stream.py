"""z-anonymity of one attribute, the short door: push one event, or columns of them. Equal results, one engine."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.hierarchy import HIERARCHIES, Hierarchy
from shoal.core.notebook import Shown, words
from shoal.core.said import meaning
from shoal.core.time import LAST, PER_SECOND, SECOND, Duration, Unit, duration, micros, scale
from shoal.kernels.shared.address import address_of, handle_of, swift
from shoal.kernels.zero_delay.sliding import NEED_LOG
from shoal.kernels.zero_delay.z_decide import LOGGED, decide_at, decide_next
from shoal.promises.z_anonymity import ZAnonymity
from shoal.streams.base import Reason
from shoal.streams.chains import Coder
from shoal.streams.noise import Faces
from shoal.streams.texts import Printer
from shoal.streams.tuning import Decision
from shoal.streams.watching import Watch
from shoal.streams.z_anonymity import ZAnon
from shoal.streams.z_engine import ZEngine

ALWAYS, NEVER = -2, 2**62
LOG = 1024  # decisions of a tuned stream, one by one, before its history hears of them
KNOWN = 1 << 16  # people and values whose fingerprints are kept at hand; forgotten at once, so nothing grows


class Pushed(NamedTuple):
    """What became of a batch: per event the released value (null: withheld), its level (-1) and the reason (0).

    ``fakes`` are invented pairs as (event, subject, value): publish them like the others, tell nobody which they are.

    >>> made = ZStream(ZAnonymity(z=2, window="1h")).push_many([0, 1], ["ada", "bob"], ["x", "x"])
    >>> made.values.to_list(), made.levels.tolist()
    ([None, 'x'], [-1, 0])
    """

    values: pl.Series
    levels: NDArray[np.int8]
    reasons: NDArray[np.uint8]
    fakes: list[tuple[int, Any, str]]

    def __repr__(self) -> str:
        released = int((self.levels >= 0).sum())
        more = f", {len(self.fakes):,} invented" if self.fakes else ""
        return f"<Pushed {len(self.levels):,} events: {released:,} released{more}>"

    def _repr_html_(self) -> str:
        return words(repr(self))


class ZStream(Shown):
    """A running z-anonymity stream of (time, subject, value).

    >>> stream = ZStream(ZAnonymity(z=2, window="1h"))
    >>> [stream.push(at, who, "x") for at, who in enumerate(["ada", "ada", "bob"])]
    [None, None, 'x']
    """

    def __init__(
        self,
        promise: ZAnonymity,
        hierarchy: Hierarchy | None = None,
        method: ZAnon | None = None,
        *,
        unit: Unit = "s",
        late: Duration = 0,
        ahead: Duration | None = None,
        key: bytes | None = None,
        snapshot: bytes | None = None,
    ) -> None:
        self.method = method or ZAnon()
        key = key if key is not None else secrets.token_bytes(32)
        self.engine = ZEngine(
            self.method,
            promise,
            ["value"],
            key=key,
            late=duration(late),
            ahead=None if ahead is None else duration(ahead),
        )
        self.engine.meant = {"value": meaning(hierarchy)}
        self._unit: Unit = unit
        self._scale = scale(unit)
        per = PER_SECOND[unit]
        self._form = np.array(
            [SECOND / per, min(LAST / SECOND * per, 2.0**63 - 1024), max(SECOND // per, 1), max(per // SECOND, 1)]
        )
        self._coder = Coder(hierarchy, key, "value", self.method.longest)
        self._printer = Printer(key, "subject")
        self._faces = Faces() if self.method.noise is not None else None
        self._window = self.engine.windows["value"]
        self._span = promise.micros
        self._z = promise.z
        self._simple = self.engine.simple
        self._tuner = self.engine.tuner
        self._people: dict[str, int] = {}
        self._values: dict[str, tuple[int, list[str]]] = {}
        self._whole: dict[int, int] = {}
        self._decide = swift(decide_next, 0, 0, 0, 0)
        self._decide_at = swift(decide_at, 0, 0.0, 0, 0)
        self._chains = np.zeros((KNOWN, 1), np.int64)
        self._log = np.ones(1, np.int64)
        if snapshot is not None:
            extra = self.engine.restore(snapshot)
            if self._faces is not None and extra:
                self._faces.restore(msgspec.msgpack.decode(extra, type=list[tuple[int, Any]]))
        self._hand()

    def push(self, time: Any, subject: Any, value: Any) -> str | None:
        """Decide one event: the released value, or None if it is withheld."""
        try:
            person = self._people[subject]
        except (KeyError, TypeError):
            person = self._person(subject)
        try:
            row, labels = self._values[value]
        except (KeyError, TypeError):
            row, labels = self._value(value)
        if time.__class__ is float and row >= 0 and self._until is NEVER:
            level = self._decide_at(self._address, time, person, row)
        else:
            when = self._scale(time)
            if row < 0 or when >= self._until:  # what needs more than a look goes through the other door
                return cast("str | None", self.push_many([time], [subject], [value]).values[0])
            level = self._decide(self._address, when, person, row)
        if level >= 0:
            return labels[level]
        if level <= -100:
            if level != -100 - NEED_LOG:
                self._window.grow(-100 - level)
            self._hand()
            return self.push(time, subject, value)
        return None

    def push_many(self, times: Any, subjects: Any, values: Any) -> Pushed:
        """Decide columns of events (lists, arrays, polars or anything polars reads), in order."""
        names, texts = _series(subjects), _series(values)
        when = micros(times, self._unit)
        if not len(when) == len(names) == len(texts):
            raise UsageError(f"columns of unequal length: {len(when)}, {len(names)}, {len(texts)}", where="push_many")
        people = self._printer.column(names if names.dtype == pl.String else names.cast(pl.String))
        coded = self._coder.code(texts)
        self._tell()
        decided = self.engine.decide(when, people, {"value": (coded.codes, coded.chains)})["value"]
        self._hand()
        fakes: list[tuple[int, Any, str]] = []
        if self._faces is not None:
            self._faces.remember(people.tolist(), names.to_list())
            whole = coded.text(np.zeros(len(when), np.int8)) if len(decided.fake_events) else texts
            chosen = self._faces.names(decided.fake_subjects)
            fakes = [(int(e), n, whole[int(e)]) for e, n in zip(decided.fake_events.tolist(), chosen, strict=True)]
            self._faces.forget(self._window.rows()[:, 1])
        return Pushed(coded.text(decided.levels), decided.levels, decided.reasons, fakes)

    @property
    def z(self) -> int:
        """The z in force."""
        return self.engine.z

    def __repr__(self) -> str:
        counted = self.counters
        return f"<ZStream z = {self._z}: {counted['events']:,} events, {counted['released']:,} released>"

    @property
    def counters(self) -> dict[str, int]:
        """Totals since the start: events, released, withheld, each level, each reason."""
        return self.engine.counters

    @property
    def decisions(self) -> list[Decision]:
        """What the tuner decided lately."""
        return self.engine.decisions

    def figures(self) -> dict[str, Any]:
        """Live figures: z, window content, memory, the tuner's last decision."""
        return self.engine.figures()

    def watch(self, every: Duration, k: int | None = None) -> Watch:
        """From now on, measure what is released every so often; ``.finish()`` gives the figures over time."""
        watch = self.engine.watch(duration(every), k)
        self._simple = self.engine.simple
        self._hand()
        return watch

    def snapshot(self) -> bytes:
        """The whole state; ``ZStream(…, key=the same, snapshot=…)`` continues."""
        self._tell()
        return self.engine.snapshot(msgspec.msgpack.encode(self._faces.state()) if self._faces is not None else b"")

    def _person(self, subject: Any) -> int:
        kind = subject.__class__  # 1, 1.0 and True are equal keys: numbers have a place of their own
        if kind is int and subject in self._whole:
            return self._whole[subject]
        text = subject if kind is str else _series([subject]).cast(pl.String)[0]
        try:
            person = 0 if text is None else self._printer.one(text)
        except UnicodeEncodeError:  # half of a surrogate pair is no text
            person = 0
        if kind is str or kind is int:
            known: dict[Any, int] = self._people if kind is str else self._whole
            if len(known) >= KNOWN:
                known.clear()
            known[subject] = person
        return person

    def _value(self, value: Any) -> tuple[int, list[str]]:
        if value.__class__ is not str:
            return -1, []
        try:
            chain, labels = self._coder.one(value)
        except UnicodeEncodeError:
            return -1, []
        if not chain:
            return -1, []
        if len(self._values) >= KNOWN:
            self._values.clear()
        if len(chain) > self._chains.shape[1]:
            self._chains = np.pad(self._chains, ((0, 0), (0, len(chain) - self._chains.shape[1])))
            self._hand()
        row = len(self._values)
        self._chains[row] = chain if len(chain) == self._chains.shape[1] else chain + [0] * (self._width - len(chain))
        self._values[value] = (row, labels)
        return row, labels

    def _tell(self) -> None:
        """Let the history of a tuned stream hear of what was decided one by one."""
        used = int(self._log[0]) - 1
        if used:
            rows = self._log[1 : 1 + used].reshape(-1, LOGGED + 2 * self._width)
            chains, counts = rows[:, LOGGED : LOGGED + self._width], rows[:, LOGGED + self._width :]
            self.engine.history.see(rows[:, 0], rows[:, 1], [(chains, counts, rows[:, 2])])
            self._log[0] = 1

    def _hand(self) -> None:
        """The addresses of the state for the one-by-one door: made anew whenever an array was."""
        self._tell()
        self._window.widen(self._chains.shape[1])
        if self._chains.shape[1] < self._window.width:
            self._chains = np.pad(self._chains, ((0, 0), (0, self._window.width - self._chains.shape[1])))
        z, self._until = self._z, NEVER if self._simple else ALWAYS
        if self._tuner is not None:  # it has something to do before an event of this time
            z, self._until = self._tuner.z, ALWAYS if self._tuner.working else min(self._until, self._tuner.until)
        scratch = np.zeros(self._window.width, np.int64)
        fixed = np.array([self._span, z], np.int64)
        flat = self._chains.reshape(-1)
        if self._tuner is not None:
            self._log = np.ones(1 + LOG * (LOGGED + 2 * self._window.width), np.int64)
        self._kept = [
            *self._window.arrays, self.engine.clock, flat, scratch, self.engine.totals[0], fixed, self._form, self._log,
        ]  # fmt: skip
        self._handle = handle_of(self._kept)
        self._address = address_of(self._handle)
        self._width = self._window.width


def _series(values: Any) -> pl.Series:
    """A column; what is no plain value becomes missing, and its event is withheld."""
    if isinstance(values, pl.Series):
        series = values
    elif isinstance(values, Sequence) and values and isinstance(values[0], str):
        try:
            series = pl.Series(values, dtype=pl.String, strict=False)
        except UnicodeEncodeError:
            series = pl.Series([v if _is_text(v) else None for v in values], dtype=pl.String, strict=False)
    else:
        try:
            series = pl.Series(values, strict=False)
        except UnicodeEncodeError:
            series = pl.Series([v if not isinstance(v, str) or _is_text(v) else None for v in values], strict=False)
    if series.dtype.is_nested() or series.dtype == pl.Object:
        return pl.Series([None] * len(series), dtype=pl.String)
    return series


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def z_anonymity(
    z: int,
    window: Duration,
    hierarchy: str | dict[str, Any] | Hierarchy | None = None,
    *,
    unit: Unit = "s",
    late: Duration = 0,
    ahead: Duration | None = None,
    key: bytes | None = None,
    snapshot: bytes | None = None,
    **options: Any,
) -> ZStream:
    """A stream that releases what at least ``z`` people showed within ``window``; options are those of :class:`ZAnon`.

    >>> stream = z_anonymity(z=2, window="1h")
    >>> stream.push(0, "ada", "x"), stream.push(1, "bob", "x"), stream.push(4000, "eve", "x")
    (None, 'x', None)
    """
    chosen = HIERARCHIES.decode(hierarchy, where="hierarchy") if hierarchy is not None else None
    method = msgspec.convert({"use": "z-anonymity", **_plain(options)}, ZAnon) if options else ZAnon()
    return ZStream(ZAnonymity(z, window), chosen, method, unit=unit, late=late, ahead=ahead, key=key, snapshot=snapshot)


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    return {name: msgspec.to_builtins(value) for name, value in options.items()}


__all__ = ["Pushed", "Reason", "ZStream", "z_anonymity"]
