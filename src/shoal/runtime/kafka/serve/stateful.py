"""Views that remember: stream methods and window masks over the records of one partition.

Both are functions of (snapshot, input in order, ticks, key), whatever the size of the batches; so a worker that takes
over from a snapshot and replays the log publishes what the former one would have.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
import polars as pl

from shoal.core.columns import CARRIED
from shoal.core.errors import PolicyError, ShoalError
from shoal.core.keys import KeyRing
from shoal.core.lines import Lines, Numbers
from shoal.core.schema import Column, Schema
from shoal.core.sealed_state import opened
from shoal.policy.document import Policy, View
from shoal.promises.kp_anonymity import GROUP, RECORD
from shoal.release.definition import adopted, definition_of
from shoal.release.stream import LocalRunner, StreamJob, stream_job
from shoal.runtime.kafka.formats.record_frames import RecordFrames, refuse_lists
from shoal.runtime.kafka.regions.blocks import BlockSeal
from shoal.runtime.kafka.regions.merging import RegionRunner, state_of
from shoal.runtime.kafka.regions.wish import regions_of
from shoal.runtime.kafka.serve.dressed import Dressed
from shoal.runtime.kafka.serve.output import UNTIMED, Disguise
from shoal.runtime.kafka.serve.source_records import Record, Records
from shoal.runtime.kafka.serve.window_runner import WindowRunner
from shoal.streams.base import Reason, StreamMethod
from shoal.views.role_view import RoleView
from shoal.views.windows import WindowGate

REASONS = tuple(reason.name.lower() for reason in Reason)
SENT = 1000  # batches whose time of sending is known
OFFSET, KEY = (CARRIED + name for name in ("offset", "key"))


class Stateful(Protocol):
    """A view at work on one partition: records in, what its topic gets out; and its whole state as bytes."""

    @property
    def withheld(self) -> int:
        """How many records were withheld so far."""

    @property
    def reasons(self) -> Mapping[str, int]:
        """How often records, or columns of them, were withheld so far, by reason."""

    def push(self, records: Sequence[Record]) -> tuple[Dressed, list[Record]]:
        """Take records with a value; answer what is published now, and the records that cannot be read."""

    def tick(self, now: int) -> Dressed:
        """The clock says ``now`` (microseconds of event time) though no record came."""

    def snapshot(self) -> bytes:
        """The whole state."""

    @property
    def held(self) -> int:
        """How many records wait."""

    @property
    def clock(self) -> int | None:
        """The stream's clock, if records wait for it to move."""

    @property
    def smallest(self) -> int | None:
        """The fewest people any record released so far hides among, if the view counts them."""

    @property
    def oldest(self) -> int | None:
        """When the oldest record that waits was sent (milliseconds), if any does."""

    @property
    def judged(self) -> tuple[int, int]:
        """How many checks beside the run found nothing, and how much was released that none of them could judge."""


def remembers(view: View, resolved: RoleView) -> bool:
    """Whether a view needs state: it promises something, or masks windows."""
    return bool(view.promises or resolved.windows)


def start(
    policy: Policy,
    role: str,
    partition: int,
    keys: KeyRing,
    disguise: Disguise,
    snapshot: bytes | None,
    verify: float | None = None,
    view: str = "",
) -> Stateful:
    """A view at work on a partition, anew or from its snapshot; ``verify`` is the share that is judged beside it.

    A view that is repartitioned works on a region: its records are sealed blocks, of which it takes those for ``view``.
    """
    if regions_of(policy.views[role]):
        state = None if snapshot is None else state_of(snapshot)
        known = None if state is None else state.inner
        inner = MethodRunner(policy, role, partition, keys, disguise, known, verify)
        return RegionRunner(inner, view, partition, state, BlockSeal(keys).unsealed)
    if policy.views[role].promises:
        return MethodRunner(policy, role, partition, keys, disguise, snapshot, verify)
    return WindowRunner(RoleView.of(policy, role), keys, disguise, snapshot)


def check(policy: Policy, role: str) -> None:
    """Refuse a view that remembers and cannot be served, before anything is made for it. Needs no keys."""
    view, where = policy.views[role], f"views.{role}"
    if not view.promises:
        WindowGate(RoleView.of(policy, role))
        return
    job = carrying_job(policy, role, KeyRing())
    assert job.view is not None
    if job.view.windows:
        raise PolicyError("a window mask cannot stand before a stream method", where=f"{where}.masks")
    refuse_lists(job.view)
    hidden = [p.sensitive for p in view.promises if p.sensitive in job.view.hides]
    if hidden:
        raise PolicyError(f"the promise is about {hidden[0]!r}, which is not shown", where=f"{where}.promises")
    # a key is the same in every record of a person: it would undo what the groups hide
    if view.service.get("key", "drop") != "drop":
        if job.method.groups:
            tied = "keys would tie together the groups a person is in"
            raise PolicyError(tied, where=f"{where}.service.key", hint="key: drop")
        if job.method.invents:
            raise PolicyError("keys would tell who is invented", where=f"{where}.service.key", hint="key: drop")
    # any key will do: what is asked is whether method and promises go together, before topics and users are made
    try:
        job.method.start(job.schema, job.promises, key=bytes(32))
    except ShoalError as error:
        raise PolicyError(error.message, where=f"{where}.method", hint=error.hint) from None


def made_columns(policy: Policy, role: str) -> tuple[str, ...] | None:
    """The columns of a view's topic, where its method publishes others than those of the records."""
    view, resolved = policy.views[role], RoleView.of(policy, role)
    if not isinstance(view.method, StreamMethod):
        return None
    return view.method.published(policy.schema, [*resolved.shown, *resolved.masks])


def rebuilds(policy: Policy, role: str) -> bool:
    """Whether the input log alone is the state: plain z-anonymity counts what came in, not what went out."""
    method = policy.views[role].method
    return isinstance(method, StreamMethod) and method.replayable


def reuses(policy: Policy, role: str) -> bool:
    """Whether a view may use a published box again for one record, which then is alone in its commit."""
    if not policy.views[role].promises:
        return False
    return carrying_job(policy, role, KeyRing()).method.reuses


def reuse_told(role: str) -> str:
    """What to say about a view that :func:`reuses` boxes."""
    return (
        f"{role}: published boxes are used again for single records: whoever knows when someone's record came may find "
        "it (`reuse: never` in the method prevents that)"
    )


def carrying_job(policy: Policy, role: str, keys: KeyRing) -> StreamJob:
    """The job of a view, with room for where each record came from beside what is published of it."""
    # held records come out later and in another order: only what travels with them says where they came from
    carried = {OFFSET: Column("plain", type="int"), KEY: Column("plain", type="str")}
    view = policy.views[role]
    if isinstance(view.method, StreamMethod):
        # on a topic everybody sees when a record comes: a box given again to one record would show whose it is
        view = msgspec.structs.replace(view, method=view.method.where_watched())
    show = tuple(policy.schema.columns) if view.show == "everything" else tuple(view.show)
    schema = Schema({**policy.schema.columns, **carried})
    wider = msgspec.structs.replace(view, show=(*show, *carried))
    return stream_job(msgspec.structs.replace(policy, schema=schema, views={role: wider}), role, keys)


class MethodRunner:
    """A view with promises: its masks, then its stream method."""

    def __init__(
        self,
        policy: Policy,
        role: str,
        partition: int,
        keys: KeyRing,
        disguise: Disguise,
        snapshot: bytes | None,
        verify: float | None = None,
    ) -> None:
        job = carrying_job(policy, role, keys)
        assert job.view is not None
        seen = [n for n in (*job.view.shown, *job.view.masks) if not n.startswith(CARRIED)]
        made = job.method.published(job.schema, seen)
        self._frames = RecordFrames(job.view, keys, made)
        self._partition, self._disguise = partition, disguise
        self._given = () if made is None else (RECORD, GROUP)
        box = job.schema.quasi if made is None else job.method.judged(job.schema, seen)
        self._box = [n for n in box if n not in job.view.hides] if job.method.groups else []
        self._out: list[pl.DataFrame] = []
        self._numbers: list[int] = []
        # per batch, not per record: the oldest held record is told to the batch, at a bounded cost in memory
        self._sent: deque[tuple[int, int]] = deque(maxlen=SENT)

        if snapshot is not None:  # the name of its state on the changelog is that of the definition it was made under
            snapshot = adopted(snapshot, definition_of(job))
        share = None if job.method.invents else verify  # of invented events nobody can say how many are real

        def begun(key: bytes) -> LocalRunner:
            return LocalRunner(job, key, self._out.append, snapshot=snapshot, marks=self._numbers.extend, verify=share)

        self._runner = opened(begun, job.lasting_keys())
        if self.held:  # how old they are does not stand in the snapshot: at least as old as this start
            self._sent.append((0, time.time_ns() // 1_000_000))

    def push(self, records: Sequence[Record]) -> tuple[Dressed, list[Record]]:
        """See :class:`Stateful`."""
        kept = Records.of(records)
        frame, refused = self._frames.read(kept.values)
        # a refused record must not be fed: it would be counted as a person, and have an outcome of its own
        if refused:
            kept = kept.take(np.delete(np.arange(len(records)), refused))
        if len(kept):
            self._sent.append((self._runner.first, int(kept.timestamps[0])))
            beside = [pl.Series(OFFSET, kept.offsets), self._keys(kept)]
            self._runner.feed(pl.DataFrame([*frame.get_columns(), *beside]))
        return self._published(), [records[at] for at in refused]

    def tick(self, now: int) -> Dressed:
        """See :class:`Stateful`."""
        self._runner.tick(now)
        return self._published()

    def snapshot(self) -> bytes:
        """See :class:`Stateful`."""
        return self._runner.snapshot()

    @property
    def held(self) -> int:
        """See :class:`Stateful`."""
        return self._runner.method.held

    @property
    def withheld(self) -> int:
        """How many records were withheld so far."""
        return int(self._runner.method.counters["withheld"])

    @property
    def reasons(self) -> Mapping[str, int]:
        """See :class:`Stateful`."""
        counted = self._runner.method.counters
        return {name: int(counted[name]) for name in REASONS if name in counted}

    @property
    def clock(self) -> int | None:
        """See :class:`Stateful`."""
        now = self._runner.method.now
        # without held records a tick could release nothing, and each tick is written to the changelog
        return now if now is not None and self.held else None

    def figures(self) -> dict[str, Any]:
        """Live figures of the method: smallest group, z, loss."""
        return dict(self._runner.method.figures())

    @property
    def smallest(self) -> int | None:
        """See :class:`Stateful`."""
        found = self.figures()
        return found.get("smallest_group") or found.get("least_real") or None

    @property
    def oldest(self) -> int | None:
        """See :class:`Stateful`; to the batch it came in."""
        first = self.figures().get("oldest_event") if self.held else None
        if first is None:
            return None
        while len(self._sent) > 1 and self._sent[1][0] <= first:
            self._sent.popleft()
        return self._sent[0][1] if self._sent else None

    @property
    def judged(self) -> tuple[int, int]:
        """See :class:`Stateful`."""
        beside = self._runner.beside
        return (0, 0) if beside is None else (beside.checked, beside.unjudged)

    def _keys(self, records: Records) -> pl.Series:
        if records.keys is None or not self._disguise.keeps_keys:
            return pl.Series(KEY, [None], dtype=pl.String).new_from_index(0, len(records))
        return pl.Series(KEY, [None if key is None else key.hex() for key in records.keys], dtype=pl.String)

    def _published(self) -> Dressed:
        out = Dressed()
        for frame in self._out:
            frame = self._numbered(frame)
            values = self._frames.write(frame)
            numbers, self._numbers[: frame.height] = self._numbers[: frame.height], []
            out += self._dressed(frame, values, numbers)
        self._out.clear()
        return out

    def _dressed(self, frame: pl.DataFrame, values: Lines, numbers: list[int]) -> Dressed:
        """Released rows as their topic carries them, timed by their commit."""
        # a row that tells several records stands nowhere in the source: its group draws its partition
        stands = OFFSET in frame.columns
        keys: list[bytes | None] | None = None
        if self._disguise.keeps_keys:
            told = frame[KEY].to_list() if stands else [None] * frame.height
            keys = [None if key is None else bytes.fromhex(key) for key in told]
        if self._box:
            shown = None if keys is None else list(map(self._disguise.key_of, keys))
            return Dressed(values, self._places(frame.select(self._box)), np.full(len(values), UNTIMED), shown)
        stood = frame[OFFSET] if stands else pl.Series(OFFSET, [0]).new_from_index(0, frame.height)
        offsets = (stood.fill_null(0) if stood.has_nulls() else stood).to_numpy()
        here, untimed = np.full(frame.height, self._partition), np.full(frame.height, UNTIMED)
        records = Records(values, here, offsets, untimed, keys)
        if min(numbers, default=0) >= 0:
            return self._disguise.dress_many(records, values, None)
        # what was invented draws its own partition
        placed = [value if number < 0 else None for value, number in zip(values, numbers, strict=True)]
        made = zip(records, values, placed, strict=True)
        return Dressed.of(d for r, value, by in made if (d := self._disguise.dress(r, value, by=by)) is not None)

    def _places(self, boxes: pl.DataFrame) -> Numbers:
        """Where rows go: their group draws their partition, so that it tells nobody apart in it."""
        if self._disguise.alone:
            return np.zeros(boxes.height, np.int64)
        # many rows share a group, and mostly stand together: its partition is drawn once
        lengths = boxes.select(pl.struct(pl.all()).rle().struct.field("len")).to_series().to_numpy()
        found = boxes[np.cumsum(lengths) - lengths].rows()
        drawn = {box: self._disguise.partition_by(msgspec.json.encode(box)) for box in set(found)}
        return np.repeat(np.array([drawn[box] for box in found], np.int64), lengths)

    def _numbered(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Numbers that a method gives to groups or curves, told apart from those of other partitions."""
        own = [pl.col(n).cast(pl.Int64) + (self._partition << 32) for n in self._given if n in frame.columns]
        return frame.with_columns(own) if self._partition else frame
