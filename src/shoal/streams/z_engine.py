"""The engine of z-anonymity: clock, one sliding window per quasi column, z over time, decisions. One implementation.

:class:`~shoal.streams.z_anonymity.ZAnon` feeds it frames by the protocol of all stream methods;
:class:`~shoal.streams.z_stream.ZStream` is the short door for one column, event by event or in batches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import InputError
from shoal.core.sealed_state import seal, unseal
from shoal.core.time import duration, minute_of_week, weekly
from shoal.kernels.shared import clock as clocks
from shoal.kernels.zero_delay import sliding as words
from shoal.kernels.zero_delay.z_decide import BEHINDS, TIES
from shoal.streams.base import Reason
from shoal.streams.history import History
from shoal.streams.sliding import Asked, Decided, SlidingWindow
from shoal.streams.snapshots import refuse_other
from shoal.streams.steering import Content, joined
from shoal.streams.tuning import Decision, Tuner
from shoal.streams.watching import Watch

if TYPE_CHECKING:
    from shoal.promises.z_anonymity import ZAnonymity
    from shoal.streams.z_anonymity import ZAnon

KIND = "z-anonymity"
VERSION = 3
SLICE = 256  # while the tuner works, it gets a turn after this many events
Ints = NDArray[np.int64]


class Snapshot(msgspec.Struct, forbid_unknown_fields=True):
    """What survives a stop: fingerprints, counts, and the names invented events need; sealed with the stream's key."""

    clock: bytes
    windows: dict[str, dict[str, Any]]
    counters: dict[str, int]
    tuner: dict[str, Any] | None = None
    extra: bytes = b""
    history: dict[str, Any] | None = None
    meant: dict[str, str] = {}  # what its columns are, by name


class ZEngine:
    """Decides events of one or several quasi columns under one clock and one z."""

    def __init__(
        self, spec: ZAnon, promise: ZAnonymity, columns: Sequence[str], *, key: bytes, late: int, ahead: int | None
    ) -> None:
        self.spec = spec
        self.promise = promise
        self._key = key
        self.meant: dict[str, str] = {}  # the hierarchies that labels are counted by, of each column
        # looking no further ahead than the window costs nothing: after a longer silence nobody is left to be counted
        self.clock = clocks.new(late, promise.longest if ahead is None else ahead, spec.witnesses)
        options = {
            words.STICKY: int(spec.sticky),
            words.TOP: 64 if spec.generalize else 1,
            words.COUNTED: int(spec.noise is not None and spec.noise.count),
            words.SALT: int.from_bytes(hashlib.blake2b(b"jitter", key=key[:64], digest_size=7).digest(), "little"),
        }
        if spec.threshold is not None:
            options[words.JITTER] = spec.threshold.jitter
            options[words.PERIOD] = max(duration(spec.threshold.period), 1)
        self.windows = {name: SlidingWindow(spec.ceiling // len(columns), options) for name in columns}
        self.totals = np.zeros((len(columns), 32), np.int64)  # per column: reasons 0..15, then released levels
        self.fakes = 0
        self.tuner: Tuner | None = (
            spec.tune.start(promise.z, 64 if spec.generalize else 1) if spec.tune is not None else None
        )
        self.history = History(spec.ceiling // 4)  # of a tuned stream only
        self._floors = weekly(promise.z, [(h, max(h.z, promise.z)) for h in spec.floors]) if spec.floors else None
        self._zone = duration(promise.zone)
        self.watching: Watch | None = None

    @property
    def z(self) -> int:
        """The z in force."""
        z = self.tuner.z if self.tuner is not None else self.promise.z
        if self._floors is not None and self.clock[clocks.NOW] >= 0:
            z = max(z, int(self._floors[minute_of_week(self.clock[:1], self._zone)[0]]))
        return z

    @property
    def simple(self) -> bool:
        """Whether the window never changes and nobody is invented: one-by-one may go straight in."""
        plain = self._floors is None and self.spec.noise is None and not self.promise.windows
        return plain and self.watching is None

    def decide(
        self, times: Ints, subjects: Ints, columns: Mapping[str, tuple[NDArray[np.int32], Ints]]
    ) -> dict[str, Decided]:
        """Decide a batch; ``columns`` gives codes and chains of each quasi column. In order, once."""
        n, before = len(times), self.clock[clocks.NOW : clocks.NOW + 1].copy()
        verdicts, nows = np.empty(n, np.int8), np.empty(n, np.int64)
        clocks.tell_all(self.clock, times, subjects, verdicts, nows)
        same = (verdicts == clocks.ON_TIME) & (times == np.concatenate([before, nows[:-1]]) if n else times)
        self.totals[0, BEHINDS] += int((verdicts == clocks.BEHIND).sum())
        self.totals[0, TIES] += int(same.sum())
        # a late event has the window of its own time, which a schedule may make shorter than the one that holds now
        of = np.where(verdicts == clocks.BEHIND, times, nows)
        oldest = np.maximum(nows - self.promise.spans(nows), of - self.promise.spans(of))
        limits = np.maximum.accumulate(np.maximum(oldest, self.clock[clocks.LIMIT]))
        if n:  # a window that grows does not bring back what was forgotten
            self.clock[clocks.LIMIT] = limits[-1]
        out: list[dict[str, Decided]] = []
        at = 0
        while at < n or not out:
            to, z = self._cut(nows, at)
            zs = self._zs(nows[at:to], times[at:to], z)
            asked = Asked(
                verdicts[at:to], nows[at:to], times[at:to], subjects[at:to], limits[at:to], zs, self._mosts(zs)
            )
            out.append(
                {
                    name: self.windows[name].decide(asked, codes[at:to], chains)
                    for name, (codes, chains) in columns.items()
                }
            )
            self._remember(asked, columns, out[-1], at, to)
            at = to
        decided = out[0] if len(out) == 1 else {name: _joined([o[name] for o in out]) for name in columns}
        self._count(decided)
        if self.watching is not None:
            seen = [(*columns[name], one.levels) for name, one in decided.items()]
            self.watching.see(int(self.clock[clocks.NOW]), times, subjects, seen)
        return decided

    def _remember(
        self,
        asked: Asked,
        columns: Mapping[str, tuple[NDArray[np.int32], Ints]],
        decided: Mapping[str, Decided],
        at: int,
        to: int,
    ) -> None:
        """Let the tuner's history know what was decided."""
        if self.tuner is None or at == to:
            return
        rows = [
            (_chains_of(codes[at:to], chains), decided[name].counts, decided[name].levels)
            for name, (codes, chains) in columns.items()
        ]
        self.history.see(asked.times, asked.subjects, rows)
        now = int(asked.nows[-1])
        self.history.forget(now - self._span(now))

    def _span(self, now: int) -> int:
        return int(self.promise.spans(np.array([now]))[0])

    def watch(self, every: int, k: int | None = None) -> Watch:
        """Measure what is released from now on, every so many microseconds of event time; see :class:`Watch`."""
        tune = self.spec.tune
        count = tune is None or tune.empty == "count"
        self.watching = Watch(
            every, self.promise.spans, self.z_at, k=k or (tune.goal.k if tune is not None else 2), empty=count
        )
        return self.watching

    def z_at(self, time: int) -> int:
        """The z that was in force at an event time, as far as decisions are remembered."""
        z = self.promise.z if self.tuner is None else self.tuner.first_z
        for decision in self.decisions:
            z = decision.z if decision.effect <= time else z
        if self._floors is not None:
            z = max(z, int(self._floors[minute_of_week(np.array([time]), self._zone)[0]]))
        return z

    def _cut(self, nows: Ints, at: int) -> tuple[int, int]:
        """How far the z in force reaches, and that z; the tuner takes its turn here."""
        if self.tuner is None or at >= len(nows):
            return len(nows), self.promise.z
        self.tuner.turn(int(nows[at]), self.history, self._span, self._content)
        to = int(np.searchsorted(nows, self.tuner.until, "left"))
        to = max(to, at + 1)
        return min(to, at + SLICE if self.tuner.working else to, len(nows)), self.tuner.z

    def _content(self, now: int) -> Content:
        """For the tuner's model: who showed what in the window, and how many people share it now."""
        return joined([w.content(now - self._span(now)) for w in self.windows.values()])

    def _zs(self, nows: Ints, times: Ints, z: int) -> Ints:
        zs = np.full(len(nows), z, np.int64)
        if self._floors is not None:
            for hours in (nows, times):  # an event that runs ahead of the clock obeys both
                np.maximum(zs, self._floors[minute_of_week(np.maximum(hours, 0), self._zone)], out=zs)
        return zs

    def _mosts(self, zs: Ints) -> Ints:
        return np.zeros(len(zs), np.int64) if self.spec.noise is None else self.spec.noise.mosts(zs)

    def _count(self, decided: Mapping[str, Decided]) -> None:
        for row, one in enumerate(decided.values()):
            self.totals[row, :16] += np.bincount(one.reasons[one.levels < 0], minlength=16)
            self.totals[row, 16:BEHINDS] += np.bincount(one.levels[one.levels >= 0], minlength=BEHINDS - 16)
            self.fakes += len(one.fake_events)

    @property
    def counters(self) -> dict[str, int]:
        """Totals over all quasi columns: events, released, withheld, each level, each reason.

        ``behind`` came late, but within the bound; ``ties`` at the very time of the event before.
        """
        total = self.totals.sum(axis=0)
        out = {
            "events": int(self.totals[0, :BEHINDS].sum()),
            "released": int(total[16:BEHINDS].sum()),
            "withheld": int(total[1:16].sum()),
            "fakes": self.fakes,
        }
        out |= {f"level_{at}": int(c) for at, c in enumerate(total[16:BEHINDS]) if c}
        out |= {name: int(total[at]) for name, at in (("behind", BEHINDS), ("ties", TIES)) if total[at]}
        return out | {reason.name.lower(): int(total[reason]) for reason in Reason if total[reason]}

    def figures(self) -> dict[str, Any]:
        """Live figures: z, the tuner's last decision, what the window holds, the fewest real people of a release."""
        least = [w.least for w in self.windows.values() if w.least is not None]
        out: dict[str, Any] = {
            "z": self.z,
            "window_events": sum(w.events for w in self.windows.values()),
            "window_nodes": sum(int(w.meta[words.NODES]) for w in self.windows.values()),
            "bytes": sum(w.bytes for w in self.windows.values()) + self.history.bytes,
            "least_real": min(least) if least else None,
        }
        if self.tuner is not None:
            out["decision"] = self.tuner.last
        return out

    @property
    def decisions(self) -> list[Decision]:
        """What the tuner decided lately."""
        return list(self.tuner.decisions) if self.tuner is not None else []

    def snapshot(self, extra: bytes = b"") -> bytes:
        """The whole state, sealed: with counts raised by a stranger, what one person showed would be released."""
        held = Snapshot(
            self.clock.tobytes(),
            {name: w.state() for name, w in self.windows.items()},
            {"fakes": self.fakes} | {f"{i}": int(v) for i, v in enumerate(self.totals.ravel())},
            self.tuner.state() if self.tuner is not None else None,
            extra,
            self.history.state() if self.tuner is not None else None,
            self.meant,
        )
        return seal(msgspec.msgpack.encode(held), KIND, self._key, version=VERSION)

    def restore(self, data: bytes) -> bytes:
        """Take over a snapshot; returns its extra part. Columns that are new start empty, bounds are this policy's."""
        held = msgspec.msgpack.decode(unseal(data, KIND, self._key, version=VERSION), type=Snapshot)
        # people counted below a label of another tree did not show what it says now
        refuse_other(held.meant, self.meant, "z-anonymity")
        clock = np.frombuffer(held.clock, np.int64).copy()
        if len(clock) != len(self.clock):
            raise InputError("the snapshot's clock cannot be read", where="snapshot")
        bounds = [clocks.LATE, clocks.AHEAD, clocks.WITNESSES]
        clock[bounds] = self.clock[bounds]
        self.clock = clock
        for name, state in held.windows.items():
            if name in self.windows:
                self.windows[name].restore(state)
        self.fakes = held.counters.get("fakes", 0)
        flat = [held.counters.get(f"{i}", 0) for i in range(self.totals.size)]
        self.totals = np.array(flat, np.int64).reshape(self.totals.shape)
        if self.tuner is not None and held.tuner is not None:
            self.tuner.restore(held.tuner)
            if held.history is not None:
                self.history.restore(held.history)
        return held.extra


def _chains_of(codes: NDArray[np.int32], chains: Ints) -> Ints:
    """The chain of each event; zeros for a value that is missing or cannot be read, perhaps the only one there is."""
    out, known = np.zeros((len(codes), chains.shape[1]), np.int64), codes >= 0
    out[known] = chains[codes[known]]
    return out


def _joined(parts: list[Decided]) -> Decided:
    sizes = np.cumsum([0, *[len(p.levels) for p in parts[:-1]]])
    return Decided(
        np.concatenate([p.levels for p in parts]),
        np.concatenate([p.reasons for p in parts]),
        np.concatenate([p.counts for p in parts]),
        np.concatenate([p.fake_events + first for p, first in zip(parts, sizes, strict=True)]),
        np.concatenate([p.fake_subjects for p in parts]),
    )
