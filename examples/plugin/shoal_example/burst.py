"""A stream method: hold so many events, release them as a small table, begin anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import polars as pl

from shoal.core.errors import PromiseError, UsageError
from shoal.core.release import read_alike, recode
from shoal.core.schema import Column, Schema
from shoal.core.sealed_state import seal, unseal
from shoal.core.table import code
from shoal.promises import Promise
from shoal.streams.base import Batch, Numbers, Outcomes, Reason, Running, StreamMethod
from shoal.streams.snapshots import frame_bytes, frame_of
from shoal_example.runs import Runs

EVENT, WHO = " event", " who"  # beside the records, never published


class Burst(StreamMethod, frozen=True, tag="burst"):
    """Every ``size`` events leave together, grouped by :class:`Runs`; keeps k-anonymity."""

    size: int = 100

    def judged(self, schema: Schema, shown: Sequence[str]) -> tuple[str, ...]:
        """A shown time would tell the events of a group apart."""
        if any(name in shown for name in schema.of("time")):
            raise UsageError("burst cannot show the time", where="burst", hint="leave it out of `show`")
        return super().judged(schema, shown)

    def start(
        self, schema: Schema, promises: Sequence[Promise], *, key: bytes, seed: int = 0, snapshot: bytes | None = None
    ) -> RunningBurst:
        """What it cannot keep it refuses now."""
        for promise in promises:
            rule = promise.rule()
            if promise.about != "groups" or rule.check or not rule.complete:
                raise UsageError(f"burst does not keep {promise.use}", where="burst", hint="promise k-anonymity")
        return RunningBurst(self, schema, promises, key, snapshot)


class State(msgspec.Struct):
    """The inside of a snapshot; sealed with the key, because held records are in it."""

    counts: dict[str, int]
    held: bytes


class RunningBurst(Running):
    """Burst at work."""

    def __init__(
        self, spec: Burst, schema: Schema, promises: Sequence[Promise], key: bytes, snapshot: bytes | None
    ) -> None:
        self._spec, self._schema, self._promises, self._key = spec, schema, promises, key
        self._counts = dict.fromkeys(["events", "released", "withheld", *(r.name.lower() for r in Reason)], 0)
        self._held = pl.DataFrame()
        if snapshot is not None:
            state = msgspec.msgpack.decode(unseal(snapshot, spec.use, key), type=State)
            self._counts, self._held = state.counts, frame_of(state.held)

    def push(self, batch: Batch) -> Outcomes:
        """Unusable events are withheld at once; the others wait until there are ``size`` of them."""
        self._spec.judged(self._schema, batch.frame.columns)
        self._counts["events"] += len(batch)
        numbers = pl.Series(EVENT, np.arange(batch.first, batch.first + len(batch)))
        who = numbers.cast(pl.String) if batch.subjects is None else batch.subjects
        frame = batch.frame.with_columns(numbers, who.alias(WHO))
        usable = who.is_not_null() & pl.Series(batch.times >= 0)
        for name in self._schema.quasi:
            hierarchy = self._schema[name].hierarchy
            if hierarchy is not None:  # a value it cannot read must not end the stream
                read = hierarchy.readable(frame[name])
                usable &= read.is_not_null() | frame[name].is_null()
                frame = frame.with_columns(read.alias(name))
        out = [self._withhold(numbers.filter(~usable).to_numpy(), Reason.BAD)]
        frame = frame.filter(usable)
        self._held = pl.concat([self._held, frame]) if self._held.height else frame
        while self._held.height >= self._spec.size:
            out.append(self._release(self._held[: self._spec.size], Reason.DUE))
            self._held = self._held[self._spec.size :]
        return _joined(out)

    def flush(self) -> Outcomes:
        """The last burst may be too small to be released."""
        last, self._held = self._held, self._held[:0]
        return self._release(last, Reason.END) if last.height else Outcomes()

    def snapshot(self) -> bytes:
        """See :class:`Running`."""
        state = State(self._counts, frame_bytes(self._held))
        return seal(msgspec.msgpack.encode(state), self._spec.use, self._key)

    @property
    def held(self) -> int:
        """How many events wait."""
        return self._held.height

    @property
    def counters(self) -> Mapping[str, int]:
        """Totals since the start."""
        return dict(self._counts)

    def _release(self, part: pl.DataFrame, otherwise: Reason) -> Outcomes:
        quasi = {name: self._schema[name] for name in self._schema.quasi}
        others = {name: Column("plain") for name in part.columns if name not in (*quasi, EVENT, WHO)}
        schema = Schema({**quasi, **others, WHO: Column("subject")})
        events = part[EVENT].to_numpy()
        table = code(part, schema)
        try:
            found = Runs().group(table, self._promises)
        except PromiseError:
            return self._withhold(events, otherwise)
        shown, groups = recode(part, schema, table, *read_alike(table, found.labels, found.floor))
        # in an order that tells nothing of that of arrival, and that a replay draws again
        order = np.random.default_rng([*self._key, int(events[0])]).permutation(shown.height)
        self._counts["released"] += shown.height
        withheld = self._withhold(events[groups < 0], Reason.UNKNOWN)
        return Outcomes(shown[order], events[groups >= 0][order], withheld.withheld, withheld.reasons)

    def _withhold(self, events: Numbers, reason: Reason) -> Outcomes:
        self._counts["withheld"] += len(events)
        self._counts[reason.name.lower()] += len(events)
        return Outcomes(withheld=events, reasons=np.full(len(events), reason, np.uint8))


def _joined(parts: Sequence[Outcomes]) -> Outcomes:
    frames = [p.released for p in parts if p.released is not None]
    return Outcomes(
        pl.concat(frames) if frames else None,
        np.concatenate([p.events for p in parts]),
        np.concatenate([p.withheld for p in parts]),
        np.concatenate([p.reasons for p in parts]),
    )
