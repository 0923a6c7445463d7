"""``shoal stream``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from shoal.cli.terminal import File, Json, Output, as_json, say
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from shoal.core.keys import KeyRing
    from shoal.release.position import Place
    from shoal.release.stream import LocalRunner, StreamJob


def stream(
    events: File = "-",
    *,
    output: Output = None,
    policy: str | None = None,
    view: str | None = None,
    z: int | None = None,
    window: str | None = None,
    time: str = "time",
    subject: str = "subject",
    value: str = "value",
    hierarchy: str | None = None,
    unit: str = "s",
    late: str = "0s",
    goal_k: int | None = None,
    goal_p: float = 0.8,
    every: str = "30m",
    keys: str | None = None,
    snapshot: str | None = None,
    synthetic: str | None = None,
    figures: str | None = None,
    figures_every: str = "5m",
    seed: int = 0,
    strict: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> int:
    """Anonymize events as they come: NDJSON, CSV (also .gz) or Parquet in, NDJSON or CSV out.

    Examples: `shoal stream visits.ndjson --z 20 --window 1h --subject client --value domain -o out.ndjson`;
    `tail -f visits.ndjson | shoal stream --policy visits.yaml --view market`.

    Parameters
    ----------
    events
        The events; `-` (the default) is standard input, read as NDJSON.
    output
        Where released events go; `-` (the default) is standard output.
    policy
        A policy: its view says columns, masks, promises and method.
    view
        Which view of the policy.
    z
        Without a policy: at least this many people must have shown a value lately.
    window
        Without a policy: how long "lately" is, for example 1h.
    time
        Without a policy: the time column.
    subject
        Without a policy: the column that says whose event it is. It is published as a pseudonym of this run's key.
    value
        Without a policy: the column to release.
    hierarchy
        Without a policy: how the value may be generalized, by name: path, suppress.
    unit
        Without a policy: the unit of time: s, ms, us, ns.
    late
        Without a policy: how late an event may come.
    goal_k
        Without a policy: tune z so that people share all that is released of them with this many.
    goal_p
        Without a policy: for this share of the people.
    every
        Without a policy: how often z is tuned.
    keys
        A key ring; without it SHOAL_KEYS and SHOAL_KEY_… say. Without any key a random one serves this run only.
    snapshot
        A file: continue from it if it exists, and leave the state in it at the end or when asked to stop. It knows
        how far its input file was read: the same file goes on behind that, any other input from its start.
        Beside it, in FILE.ticks, stands until then when the clock moved on though no event came.
    synthetic
        A file for the operator only: one line per released event, its number, or -1 if it was invented.
    figures
        z-anonymity only: a folder for what was really released over time, as CSV and pictures: volume by level, z, p_k,
        entropy and residual information.
    figures_every
        How often that is measured, in event time.
    seed
        The same seed and key give the same release.
    strict
        Stop at the first event that cannot be used.
    json
        The figures at the end as JSON, on stderr.
    """
    from pathlib import Path

    from shoal.core.keys import DEFAULT, KeyRing

    ring = KeyRing.load(Path(keys) if keys else None)
    if policy is not None:
        job = _from_policy(policy, view, ring)
    elif z is not None and window is not None:
        tune = {"goal": {"k": goal_k, "probability": goal_p}, "every": every} if goal_k else None
        job = _from_options(z, window, (time, subject, value), hierarchy, unit, late, tune)
    else:
        raise UsageError("nothing is promised", where="stream", hint="give --policy, or --z and --window")
    state = Path(snapshot) if snapshot else None
    if state is not None and DEFAULT not in ring.keys:
        raise UsageError(
            "a snapshot needs a key that outlives this run",
            where="--snapshot",
            hint="shoal keys new default --ring keys.json",
        )
    watch = (figures, figures_every) if figures else None
    return _run(job, ring, events, output or "-", state, synthetic, seed, strict, json, watch)


def _from_policy(path: str, view: str | None, ring: KeyRing) -> StreamJob:
    from shoal.policy.load import load
    from shoal.release.stream import job_of

    return job_of(load(path), view, ring)


def _from_options(
    z: int, window: str, columns: tuple[str, str, str], hierarchy: str | None, unit: str, late: str, tune: Any
) -> StreamJob:
    import msgspec

    from shoal.core.hierarchy import HIERARCHIES
    from shoal.core.schema import Column, Schema
    from shoal.promises.z_anonymity import ZAnonymity
    from shoal.release.stream import StreamJob
    from shoal.streams.z_anonymity import ZAnon

    time, subject, value = columns
    chosen = HIERARCHIES.decode(hierarchy, where="--hierarchy") if hierarchy else None
    schema = Schema(
        {
            time: msgspec.convert({"role": "time", "unit": unit, "late": late}, Column),
            subject: Column("subject"),
            value: Column("quasi", hierarchy=chosen),
        }
    )
    method = msgspec.convert({"use": "z-anonymity", **({"tune": tune} if tune else {})}, ZAnon)
    return StreamJob(schema, [ZAnonymity(z, window)], method)


def _run(
    job: StreamJob,
    ring: KeyRing,
    events: str,
    output: str,
    state: Path | None,
    synthetic: str | None,
    seed: int,
    strict: bool,
    json: bool,
    watch: tuple[str, str] | None = None,
) -> int:
    import secrets
    import signal
    from pathlib import Path

    from shoal.connect.events import Events, Sink
    from shoal.core.keys import DEFAULT
    from shoal.core.originals import keep_apart
    from shoal.release import position as places
    from shoal.release.stream import QUIET, LocalRunner, figures
    from shoal.release.ticks import TickLog

    key = ring.derive(DEFAULT, "stream") if DEFAULT in ring.keys else secrets.token_bytes(32)
    file = places.snapshot_file(state, key) if state is not None else None
    stopped = places.read(file) if file is not None else None
    place = places.Place.of(events, key).after(stopped.place if stopped is not None else None, key)
    if stopped is not None:
        say(_where(events, place, stopped.place))
    declared = (job.view or job).schema.columns
    types = {name: column.type for name, column in declared.items()}
    source = Events(events, job.columns, strict=strict, beat=QUIET, types=types)
    sink = Sink(output, append=stopped is not None)
    keep_apart([output, synthetic], [events])
    marks = Path(synthetic).open("a") if synthetic else None  # noqa: SIM115
    runner = LocalRunner(
        job,
        key,
        _pseudonymous(job, key, sink.write),
        seed=seed,
        snapshot=stopped.state if stopped is not None else None,
        strict=strict,
        marks=(lambda numbers: marks.writelines(f"{n}\n" for n in numbers)) if marks else None,
        ticks=TickLog(file.path.with_name(file.path.name + ".ticks"), key, file.number) if file is not None else None,
    )
    watching = _watched(runner, watch[1]) if watch else None
    stop: list[int] = []

    def asked(number: int, _: object) -> None:
        stop.append(number)
        if source.waiting:
            raise _StoppedError

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, asked)
    live, begun = _Live(runner, places.behind(source, place.read)), runner.first
    try:
        ended = runner.run(live, lambda: bool(stop)) if state is None else _drain(runner, live, stop)
    finally:
        sink.close()
        if marks:
            marks.close()
    if file is not None:
        places.write(file, place.moved(runner.first - begun), runner.snapshot())
        runner.forget_ticks()
    live.line(end=True)
    _refuse_absent(job, source.unseen, runner.first - begun)
    if watch and watching is not None:
        from shoal.report.stream_figures import save

        say(f"written: {len(save(watching.finish(), watching.k, Path(watch[0])))} files in {watch[0]}")
    if stop:
        say(f"stopped after event {runner.first:,}" + ("; the snapshot continues there" if state is not None else ""))
    found = {**figures(runner), "unreadable_lines": source.bad, "ended": ended and not stop}
    if json:
        say(as_json(found))
    return 0


def _where(events: str, place: Place, stopped: Place | None) -> str:
    """How a stream goes on from its snapshot."""
    name = "standard input" if events == "-" else events
    if place.read:
        return f"continuing {name} after its event {place.read:,}, where the snapshot stopped"
    if stopped is not None and stopped.name == place.name != "-":
        return f"continuing with {name} from its first event: it is not the file the snapshot stopped in"
    return f"continuing with {name} from its first event"


def _watched(runner: LocalRunner, every: str) -> Any:
    from shoal.core.time import duration
    from shoal.streams.z_anonymity import RunningZ

    if not isinstance(runner.method, RunningZ):
        raise UsageError("only z-anonymity has figures over time", where="--figures")
    return runner.method.engine.watch(duration(every, where="--figures-every"))


def _drain(runner: LocalRunner, source: Any, stop: list[int]) -> bool:
    """With a snapshot, what a method still holds stays held: it is in the snapshot."""
    for frame in source:
        runner.feed(frame)
        if stop:
            return False
    return True


def _pseudonymous(job: StreamJob, key: bytes, write: Any) -> Any:
    """Without a policy nobody chose a mask for the subject: it leaves as a keyed pseudonym, never in clear."""
    if job.view is not None or job.schema.subject is None:
        return write
    import polars as pl

    from shoal.streams.texts import Printer

    printer, subject = Printer(key, "pseudonym"), job.schema.subject

    def masked(frame: pl.DataFrame) -> None:
        names = frame[subject].cast(pl.String)
        prints = pl.Series(subject, printer.column(names)).reinterpret(signed=False).cast(pl.String)
        write(frame.with_columns(prints))

    return masked


def _goal(decision: Any) -> str:
    """What share of people was hidden in the last window, as measured; and whether that was asked."""
    missed = " (goal not reached)" if decision.reachable else " (goal not reachable)"
    return f"p {decision.p:.2f}{'' if decision.reached else missed}"


WHY = {
    "rare": "shown by too few people",
    "late": "late, and too few are certain",
    "too_late": "too late",
    "future": "ahead of the clock",
    "bad": "unreadable: no time, subject or usable value",
    "unknown": "unknown to the hierarchy",
    "full": "beyond the memory",
    "due": "delay over",
    "sticky": "decided before",
    "end": "left at the end",
}


def _why(counters: Mapping[str, int]) -> str:
    """Why events were withheld, in words."""
    parts = [f"{counters[name]:,} {words}" for name, words in WHY.items() if counters.get(name)]
    return f" ({'; '.join(parts)})" if parts else ""


def _refuse_absent(job: StreamJob, unseen: set[str], count: int) -> None:
    """A column that no event had cannot be what was meant."""
    needed = [n for n in job.schema.columns if n in unseen and job.schema[n].role in ("time", "subject", "quasi")]
    if count and needed:
        from shoal.core.errors import InputError

        raise InputError(
            f"none of {count:,} events has a value in the column {needed[0]!r}",
            where="stream",
            hint="compare the names of columns in the events with the policy or the options",
        )


def _delayed(found: Mapping[str, Any]) -> list[str]:
    """What a method with delay says of itself."""
    seconds = f", {found['wait_most']:,.1f} s" if "wait_most" in found else ""
    return [
        f"loss {found['loss']:.3f}",
        f"smallest group {found['smallest_group']:,}",
        f"delay {found['delay_mean']:,.0f} (most {found['delay_most']:,}{seconds})",
        f"{found['held']:,} held",
        f"{found['withheld_share']:.1%} withheld",
    ]


class _StoppedError(Exception):
    """Asked to stop while waiting for input: everything that arrived has been decided."""


class _Live:
    """Passes frames on and keeps one line on stderr: rate, released, withheld, z and p."""

    def __init__(self, runner: LocalRunner, source: Any) -> None:
        import time

        self._runner, self._source = runner, source
        self._clock = time.monotonic
        self._start = self._last = self._clock()

    def __iter__(self) -> Any:
        try:
            for frame in self._source:
                yield frame
                self.line()
        except _StoppedError:
            return

    def line(self, end: bool = False) -> None:
        """Say how it goes, once a second and at the end."""
        import sys

        now = self._clock()
        if not end and (now - self._last < 1 or not sys.stderr.isatty()):
            return
        self._last = now
        counters, found = self._runner.method.counters, self._runner.method.figures()
        decision = found.get("decision")
        words = [
            f"{counters['events']:,} events",
            f"{counters['events'] / max(now - self._start, 1e-9):,.0f}/s",
            f"{counters['released']:,} released",
            f"{counters['withheld']:,} withheld{_why(counters) if end else ''}",
            *[f"{name.replace('_', ' ')}: {count:,}" for name, count in counters.items() if name.startswith("level_")],
            *([f"z {found['z']}"] if "z" in found else []),
            *(_delayed(found) if "loss" in found else []),
            *([_goal(decision)] if decision else []),
        ]
        sys.stderr.write(("\r\x1b[K" if sys.stderr.isatty() else "") + ", ".join(words) + ("\n" if end else ""))
        sys.stderr.flush()
