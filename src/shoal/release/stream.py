"""A stream on one machine: source, batches, the view's masks, the method, outcomes, sink. For every stream method."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.columns import require_columns
from shoal.core.errors import InputError, PolicyError
from shoal.core.frames import from_any
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.known import doubts
from shoal.core.release import Release
from shoal.core.schema import Schema
from shoal.core.texts import texts_of
from shoal.core.time import micros
from shoal.policy.document import Policy
from shoal.promises.base import those_about
from shoal.release.base import Job
from shoal.release.beside import Beside, beside
from shoal.release.curves import about_curves, view_reading
from shoal.release.definition import definition_of, resumed, saved
from shoal.release.judge import Judge
from shoal.release.judges import at_their_times, told_apart
from shoal.release.stream_names import refuse_names
from shoal.release.stream_needs import unreadable
from shoal.release.stream_report import StreamReport
from shoal.release.ticks import Tick, TickLog
from shoal.streams import STREAM_METHODS
from shoal.streams.base import Batch, Outcomes, Reason, Running, StreamMethod
from shoal.streams.texts import Printer
from shoal.tables.base import Progress, silent
from shoal.verifier import Verdict
from shoal.views.derived import refuse_sources_in_clear, with_derived
from shoal.views.frames import FrameGate
from shoal.views.role_view import RoleView
from shoal.views.sampling import refuse_sample

Write = Callable[[pl.DataFrame], None]
LARGEST = 1 << 17
COMPARE = "compare the names of columns in the events with the policy or the options"
QUIET = 0.25  # seconds without an event after which the clock of waiting events goes on by itself


@dataclass(frozen=True, kw_only=True)
class StreamJob(Job):
    """A stream: a view's masks, then a stream method. Without a view, the subject leaves as a pseudonym of the run.

    >>> from shoal.release.job import job_of
    >>> from shoal.release.wishes import Wishes
    >>> job = job_of(Wishes({"z": 2, "window": "1h", "keys": KeyRing({"default": {1: bytes(32)}})}))
    >>> job.columns, job.key() == job.lasting_key()
    (['time', 'subject', 'value'], True)
    """

    noun: ClassVar[str] = "a stream"

    title: str = "stream"
    method: StreamMethod

    @property
    def columns(self) -> list[str]:
        """The columns the source must bring."""
        return list((self.view.schema if self.view is not None else self.schema).given)

    def key(self) -> bytes:
        """The key of the state and of the run's pseudonyms: one of the ring, or a random one for this run only."""
        return self.lasting_key() if DEFAULT in self.keys.keys else secrets.token_bytes(32)

    def lasting_key(self) -> bytes:
        """The same key wherever this job runs, the role's own; an error without a ring that has it.

        Methods draw from it (noise, the order inside an emission), so a file and a topic agree only if it is one.
        """
        return next(self.lasting_keys())

    def lasting_keys(self) -> Iterator[bytes]:
        """:meth:`lasting_key` of every epoch, newest first. A state keeps its own: it knows people by keyed prints."""
        return self.keys.every(DEFAULT, "stream", role="" if self.view is None else self.view.role)

    def run(self, data: Any, *, progress: Progress = silent) -> Release:
        """A whole file as a stream: every row an event, in the order of the file.

        z-anonymity is verified beside the original events, groups by how they read.
        """
        from shoal.release.doubts import doubts as plausible

        frame = from_any(data)[0]
        parts: list[pl.DataFrame] = []
        numbers: list[int] = []
        runner = LocalRunner(self, self.key(), parts.append, seed=self.seed or 0, marks=numbers.extend)
        runner.feed(frame)
        runner.finish()
        # a release without rows still says which columns it has
        released = pl.concat(parts) if parts else runner.nothing(frame)
        shown = [n for n in self.schema.quasi if n in released.columns]
        also = told_apart(self.method, self.schema, self.promises, released.columns, self.view)
        judge = Judge(self.schema, self.promises, hidden=frozenset({*self.schema.quasi} - {*shown}), beside=also)
        positions = np.array(numbers, np.int64)
        verdict = self._verdict(judge, frame, released, positions)
        counters = dict(runner.method.counters)
        doubtful = [*doubts(runner.method.known), *(f"doubt: {doubt}" for doubt in plausible(self, frame))]
        withheld = {"withheld by the method": runner.withheld}
        report = StreamReport(
            title=self.title,
            method=self.method.use,
            rows=frame.height,
            # of curves, rows are instants: what is counted is events
            released=counters["released"] if self.method.published(self.schema, frame.columns) else released.height,
            withheld=withheld,
            findings=list(verdict.findings),
            verified=verdict.kept,
            counters={name: int(n) for name, n in counters.items()},
            seed=self.seed,
            notes=[*self.notes, *(f"waiver: {name}" for name in self.waived), *doubtful],
        )
        return Release(
            data=released,
            withheld=withheld,
            schema=self.schema,
            report=report,
            positions=positions,
            warnings=doubtful,
        )

    def _verdict(
        self, judge: Judge, frame: pl.DataFrame, released: pl.DataFrame, positions: NDArray[np.int64]
    ) -> Verdict:
        if those_about(self.promises, "events"):
            if self.view is not None:
                frame = with_derived(frame, self.view.schema)
            # with noise fewer real people may stand behind a value
            return judge.judge(at_their_times(released, frame, positions, self.schema), original=frame)
        subject = self.schema.subject
        people = frame[subject].gather(positions) if subject is not None and subject in frame.columns else None
        return judge.demand(released, people=people, every_row=True)


def stream_job(policy: Policy, role: str, keys: KeyRing, **more: Any) -> StreamJob:
    """The stream that a policy's view describes; ``more`` replaces what the view says.

    >>> from shoal.policy.load import parse
    >>> policy = parse('''
    ... columns: {time: time, client: subject, site: {role: quasi, hierarchy: path}}
    ... views: {m: {show: [site], promises: [{use: z-anonymity, z: 2, window: 1h}], method: z-anonymity}}''')
    >>> stream_job(policy, "m", KeyRing()).method.use
    'z-anonymity'
    """
    chosen = policy.view(role)
    method = more.pop("method", None) or chosen.method
    promises = tuple(more.pop("promises", chosen.promises))
    if not isinstance(method, StreamMethod):
        raise PolicyError(
            "the view names no stream method",
            where=f"views.{chosen.name}.method",
            hint=f"one of: {', '.join(STREAM_METHODS.names())}",
        )
    view = RoleView.of(policy, chosen.name)
    refuse_sources_in_clear(view)
    if those_about(promises, "curves"):
        about_curves(promises)
        view_reading(policy, view)
    published = method.published(policy.schema, [*view.shown, *view.masks])
    refuse_names(view, promises, published, more.setdefault("waived", chosen.waive))
    subject = policy.schema.subject
    if method.invents and (subject is None or subject in view.hides):
        # said here, because a service that ends at its first event is found too late
        raise PolicyError(
            "invented events stand under a name, and the subject is not shown",
            where=f"views.{chosen.name}.show",
            hint="show it masked",
        )
    # a quasi column this role does not see is nothing to decide
    seen = {n: c for n, c in policy.schema.columns.items() if c.role != "quasi" or n not in view.hides}
    return StreamJob(
        schema=Schema(seen),
        promises=promises,
        method=method,
        view=view,
        keys=keys,
        types=policy.types(),
        **{"title": f"{policy.dataset}, {chosen.name}", **more},
    )


class LocalRunner:
    """Feeds a stream method from frames and hands on what it releases.

    Everything a method holds back it gives at ``finish``; ``stop`` leaves it in the snapshot instead. With ``verify``,
    this share of what is released is judged by :mod:`shoal.release.beside` before it is written.

    >>> from shoal.release.job import job_of
    >>> from shoal.release.wishes import Wishes
    >>> job, out = job_of(Wishes({"z": 2, "window": "1h"})), []
    >>> runner = LocalRunner(job, job.key(), out.append)
    >>> runner.feed(pl.DataFrame({"time": [0, 1], "subject": ["ada", "bob"], "value": ["x", "x"]}))
    >>> runner.finish()
    >>> pl.concat(out)["value"].to_list()
    ['x']
    """

    def __init__(
        self,
        job: StreamJob,
        key: bytes,
        write: Write,
        *,
        seed: int = 0,
        snapshot: bytes | None = None,
        strict: bool = False,
        marks: Callable[[Sequence[int]], None] | None = None,
        ticks: TickLog | None = None,
        clock: Callable[[], float] = monotonic,
        verify: float | None = None,
    ) -> None:
        self.job = job
        # read before anything begins: what files say then is what the state is made under
        self._definition = definition_of(job)
        self.first, state = (0, None) if snapshot is None else resumed(snapshot, self._definition)
        self.beside: Beside | None = None
        if verify is not None:
            also = told_apart(job.method, job.schema, job.promises, job.schema.columns, job.view)
            going = snapshot is not None
            self.beside = beside(job.schema, job.promises, job.method, verify, continued=going, also=also)
        self.method: Running = job.method.start(job.schema, job.promises, key=key, seed=seed, snapshot=state)
        self.released = self.withheld = 0
        # a view says how its subject is shown; without one nobody has decided, and it never leaves in clear
        self._write = write if job.view is not None or job.schema.subject is None else self._pseudonymous(write, key)
        self._strict = strict
        self._marks = marks
        self.tell: Callable[[Sequence[int], Sequence[int]], None] | None = None  # told of events and reasons
        self._masks: FrameGate | None = None
        if job.view is not None:
            refuse_sample(job.view)
        self._time = next(iter(job.schema.of("time")), None)
        self._log = ticks
        self._again = self._log.again if self._log is not None else []
        self._clock = clock  # seconds; how long no event came
        self._moved = clock()

    def nothing(self, frame: pl.DataFrame) -> pl.DataFrame:
        """An empty release of this shape of events."""
        shown = self._shown(self._fitted(frame.clear()))
        made = self.job.method.published(self.job.schema, shown.columns)
        if made is not None:
            return pl.DataFrame(schema=dict.fromkeys(made, pl.String))
        return shown.select(c for c in shown.columns if c in self.job.schema.columns)

    def _pseudonymous(self, write: Write, key: bytes) -> Write:
        """Nobody chose a mask for the subject: it leaves as a keyed pseudonym, never in clear."""
        printer, subject = Printer(key, "pseudonym"), self.job.schema.subject
        assert subject is not None

        def masked(frame: pl.DataFrame) -> None:
            if subject not in frame.columns:  # it was needed to count people only
                write(frame)
                return
            names = texts_of(frame[subject])
            prints = pl.Series(subject, printer.column(names)).reinterpret(signed=False).cast(pl.String)
            write(frame.with_columns(prints))

        return masked

    def feed(self, frame: pl.DataFrame) -> None:
        """Take events as they stand in the source; without any, the clock of those that wait goes on."""
        if not frame.height:
            self._quiet()
            return
        # ticks of the run before fall between the same events again: only so everything is decided alike
        while self._again and self._again[0].events <= self.first + frame.height:
            tick = self._again.pop(0)
            before = tick.events - self.first
            self._take(frame[:before])
            frame = frame[before:]
            self._emit(self.method.tick(tick.now))
        self._take(frame)
        self._moved = self._clock()

    def tick(self, now: int) -> None:
        """Tell the method the time, though no event came. The tick is written down first, if anything is."""
        if self._log is not None:
            self._log.write(Tick(self.first, now))
        self._emit(self.method.tick(now))

    @property
    def settled(self) -> bool:
        """Whether a snapshot may be saved: no tick of the run before is still to come."""
        return not self._again

    def forget_ticks(self, number: int | None = None) -> None:
        """A snapshot was saved, of this ``number``: what the ticks did is in it."""
        if self._log is not None:
            self._log.clear(number)

    def _quiet(self) -> None:
        """The clock goes on from where events left it: a jump of this machine's clock moves nothing."""
        now, passed = self.method.now, self._clock() - self._moved
        # while ticks of the run before are to come, the clock is theirs
        if now is None or passed < QUIET or self._again:
            return
        self.tick(now + int(passed * 1_000_000))
        self._moved = self._clock()

    def _take(self, frame: pl.DataFrame) -> None:
        # bounded batches, because what a method allocates grows with them
        for part in frame.iter_slices(LARGEST):
            if part.height:
                batch = self._batch(part)
                self.first += part.height
                # before the method: what it decides now may rest on these events
                if self.beside is not None:
                    self.beside.feed(batch)
                self._emit(self.method.push(batch))

    def finish(self) -> None:
        """The stream has ended: decide what is still held."""
        self._emit(self.method.flush())

    def run(self, source: Iterable[pl.DataFrame], stopped: Callable[[], bool] = lambda: False) -> bool:
        """All of a source; False if it was stopped before the end."""
        for frame in source:
            self.feed(frame)
            if stopped():
                return False
        self.finish()
        return True

    def snapshot(self) -> bytes:
        """The method's state, how many events it has seen, and under what."""
        return saved(self.first, self._definition, self.method.snapshot())

    def _batch(self, frame: pl.DataFrame) -> Batch:
        schema = self.job.schema
        frame = self._fitted(frame)
        times = (
            micros(frame[self._time], schema[self._time].unit)
            if self._time is not None
            # without a time column an event's number is its time
            else self.first + np.arange(frame.height, dtype=np.int64)
        )
        subject = schema.subject
        subjects = texts_of(frame[subject]) if subject is not None else None
        return Batch(self._shown(frame), times, subjects, self.first, unreadable(frame, schema))

    def _fitted(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The declared columns in their types; an event with a value of another type is unusable as a whole."""
        if self.job.view is None:
            declared = self.job.columns
            require_columns(declared, frame.columns, "stream", error=InputError, hint=COMPARE)
            return frame.select(declared)  # what nobody declared is not shown, whoever brings the events
        if self._masks is None:
            texts = {n: pl.String() if dtype == pl.Binary else dtype for n, dtype in frame.schema.items()}
            self._masks = FrameGate(self.job.view, pl.Schema(texts), self.job.keys)
        fitted = self._masks.fit(frame, null_rows=True)
        # who and when are needed though the role may see neither
        require_columns(self.job.schema.of("subject", "time"), fitted.columns, "stream", error=InputError, hint=COMPARE)
        return fitted

    def _shown(self, frame: pl.DataFrame) -> pl.DataFrame:
        view = self.job.view
        if view is None:
            return frame
        assert self._masks is not None
        viewed = self._masks.apply(frame)
        if viewed.data.height != frame.height:
            raise InputError("a windowed mask withholds rows; it cannot stand before a stream method", where=view.role)
        hidden = [c for c in viewed.data.columns if c in view.hides]
        return viewed.data.drop(hidden) if hidden else viewed.data

    def _emit(self, outcomes: Outcomes) -> None:
        if self._strict and len(outcomes.withheld):
            bad = outcomes.withheld[outcomes.reasons == Reason.BAD]
            if len(bad):
                raise InputError("an unusable time, subject or value", where=f"event {int(bad[0]) + 1:,}")
        if self.beside is not None:
            self.beside.check(outcomes)
        self.withheld += len(outcomes.withheld)
        if outcomes.released is not None and outcomes.released.height:
            self.released += outcomes.released.height
            self._write(outcomes.released)
            if self._marks is not None:
                self._marks(outcomes.events.tolist())
        if self.tell is not None and len(outcomes.withheld):
            self.tell(outcomes.withheld.tolist(), outcomes.reasons.tolist())
