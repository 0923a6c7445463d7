"""``shoal stream``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import Parameter

from shoal.cli.live import Live, StoppedError
from shoal.cli.options import ByPolicy, Flag, hierarchy_word, only_with, wishes
from shoal.cli.terminal import File, Json, MaybeWhole, Output, as_json, say
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.release.position import Position
    from shoal.release.stream import LocalRunner, StreamJob

Unit = Literal["s", "ms", "us", "ns"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OfEvents:
    """Events and what is promised of them, without a policy.

    Parameters
    ----------
    z
        At least this many people must have shown a value lately. With a policy it may be raised, never lowered.
    window
        Without a policy: how long "lately" is, for example 1h.
    time
        Without a policy: the time column; `time` if not given.
    subject
        Without a policy: the column that says whose event it is; `subject` if not given. It is published as a
        pseudonym of this run's key.
    value
        Without a policy: the column to release; `value` if not given.
    hierarchy
        Without a policy: how the value may be generalized: `path`, `path:/`, `path:.:3`, `grid:100:1000`, `prefix:5`,
        `tree.csv`.
    unit
        Without a policy: the unit of time: s (the default), ms, us, ns.
    late
        Without a policy: how late an event may come; not at all if not given.
    goal_k
        Without a policy: tune z so that people share all that is released of them with this many.
    goal_p
        With --goal-k: for this share of the people; 0.8 if not given.
    every
        With --goal-k: how often z is tuned; 30m if not given.
    tuner
        With --goal-k: how z is found: search (binary search, if not given), incremental, model.
    z0
        With --goal-k: the first z; --z is the floor that it never goes below, and the first if this is not given.
    exact
        Without a policy: generalize nothing: what too few people showed as it stands is withheld.
    noise
        Without a policy: release what misses z by at most so many people, or below 1 by such a share of z, with
        invented events beside it. Fewer than z real people may then stand behind a value.
    """

    z: MaybeWhole = None
    window: str | None = None
    time: str | None = None
    subject: str | None = None
    value: str | None = None
    hierarchy: str | None = None
    unit: Unit | None = None
    late: str | None = None
    goal_k: MaybeWhole = None
    goal_p: float | None = None
    every: str | None = None
    tuner: Literal["search", "incremental", "model"] | None = None
    z0: MaybeWhole = None
    exact: Flag = False
    noise: float | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Running:
    """How the stream runs.

    Parameters
    ----------
    keys
        A key ring; without it SHOAL_KEYS and SHOAL_KEY_… say. Without any key a random one serves this run only.
    snapshot
        A file: continue from it if it exists, and leave the state in it at the end or when asked to stop. It knows
        how far its input file was read: the same file goes on after that, any other input from its start.
        Beside it, in FILE.ticks, stands until then when the clock moved on though no event came.
    synthetic
        A file for the operator only: one line per released event, its number, or -1 if it was invented.
    figures
        z-anonymity only: a folder for what was really released over time, as CSV and pictures: volume by level, z, p_k,
        entropy and residual information.
    figures_every
        With --figures: how often that is measured, in event time; 5m if not given.
    report
        Also write how the run ended: .html with pictures (over time with --figures), .json or .txt.
    seed
        The same seed and key give the same release; 0 if not given.
    strict
        Stop at the first event that cannot be used.
    trust_times
        Release though another unit would make the times dates of our days: they count from another moment than 1970.
    verify
        Judge this share of what is released, from 0 to 1, by code that knows no method, before it is written. A broken
        promise ends the stream with exit code 1.
    """

    keys: str | None = None
    snapshot: str | None = None
    synthetic: str | None = None
    figures: str | None = None
    figures_every: str | None = None
    report: str | None = None
    seed: MaybeWhole = None
    strict: Flag = False
    trust_times: Flag = False
    verify: float | None = None


def stream(
    events: File = "-",
    *,
    output: Output = None,
    by: ByPolicy = ByPolicy(),
    about: OfEvents = OfEvents(),
    run: Running = Running(),
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
    json
        The figures at the end as JSON, on stderr.
    """
    from pathlib import Path

    from shoal.core.keys import DEFAULT, KeyRing
    from shoal.release.job import job_of
    from shoal.release.stream import StreamJob

    ring = KeyRing.load(Path(run.keys) if run.keys else None)
    job = job_of(wishes(by, **_asked(about, by), keys=ring, seed=run.seed))
    if not isinstance(job, StreamJob):
        raise UsageError(
            "the view names no stream method", where=by.policy, hint="shoal anonymize or shoal view release it"
        )
    if run.snapshot and DEFAULT not in ring.keys:
        raise UsageError(
            "a snapshot needs a key that outlives this run",
            where="--snapshot",
            hint="shoal keys new default --ring keys.json",
        )
    if run.figures_every is not None and run.figures is None:
        raise UsageError("has no effect without --figures", where="--figures-every", hint="give --figures, too")
    return _run(job, events, output or "-", run, json)


def _asked(about: OfEvents, by: ByPolicy) -> dict[str, Any]:
    """The options about events as wishes."""
    asked = {f.name: getattr(about, f.name) for f in fields(about)}
    goal, share, every = asked.pop("goal_k"), asked.pop("goal_p"), asked.pop("every")
    tuner, first = asked.pop("tuner"), asked.pop("z0")
    only_with(goal is not None, "--goal-k", goal_p=share, every=every, tuner=tuner, z0=first)
    if goal is not None:
        asked["tune"] = {
            "goal": {"k": goal, "probability": 0.8 if share is None else share},
            "every": every or "30m",
            "by": tuner or "search",
            "start": first,
        }
    if asked["hierarchy"] is not None:
        asked["hierarchy"] = hierarchy_word(asked["hierarchy"])
    if by.policy is None and (about.z is None or about.window is None):
        raise UsageError("nothing is promised", where="stream", hint="give --policy, or --z and --window")
    return asked


def _run(job: StreamJob, events: str, output: str, how: Running, json: bool) -> int:
    import signal
    from pathlib import Path

    from shoal.connect.events import Events, Sink
    from shoal.connect.files import write_text
    from shoal.core.known import doubts
    from shoal.core.originals import keep_apart
    from shoal.release import position as positions
    from shoal.release.doubts import examined
    from shoal.release.stream import QUIET, LocalRunner, figures
    from shoal.release.ticks import TickLog
    from shoal.report.model import ending

    keep_apart([output, how.synthetic, how.report], [events])
    ending(how.report)
    key = job.key()
    file = positions.snapshot_file(Path(how.snapshot), key) if how.snapshot else None
    stopped = positions.read(file) if file is not None else None
    at = positions.Position.of(events, key).after(stopped.position if stopped is not None else None, key)
    if stopped is not None:
        say(_where(events, at, stopped.position))
    types = (job.view or job).schema.types()
    source = Events(events, job.columns, strict=how.strict, beat=QUIET, types=types)
    sink = Sink(output, append=stopped is not None)
    marks = Path(how.synthetic).open("a") if how.synthetic else None  # noqa: SIM115
    runner = LocalRunner(
        job,
        key,
        sink.write,
        seed=job.seed or 0,
        snapshot=stopped.state if stopped is not None else None,
        strict=how.strict,
        marks=(lambda numbers: marks.writelines(f"{n}\n" for n in numbers)) if marks else None,
        ticks=TickLog(file.path.with_name(file.path.name + ".ticks"), key, file.number) if file is not None else None,
        verify=how.verify,
    )
    watching = _watched(runner, how.figures_every or "5m") if how.figures else None
    stop: list[int] = []

    def asked(number: int, _: object) -> None:
        stop.append(number)
        if source.waiting:
            raise StoppedError

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, asked)
    trusted = examined(source, job, say, trust=how.trust_times, where="columns.time.unit" if job.view else "--unit")
    live, begun = Live(runner, positions.unread(trusted, at.read)), runner.first
    whole = False
    try:
        ended = runner.run(live, lambda: bool(stop)) if file is None else _drain(runner, live, stop)
        _refuse_absent(job, source.unseen, runner.first - begun)
        whole = True
    finally:
        sink.close(whole=whole)
        if marks:
            marks.close()
    if file is not None:
        positions.write(file, at.moved(runner.first - begun), runner.snapshot())
        runner.forget_ticks()
    live.line(end=True)
    if source.bad:
        where = ", ".join(f"{line:,}" for line in source.first_bad)
        say(f"warning: {source.bad:,} lines cannot be read, first of them: {where} (--strict stops at the first)")
    for doubt in doubts(runner.method.known):
        say(f"warning: {doubt}")
    rows = watching.finish() if watching is not None else []
    if watching is not None and how.figures:
        say(f"written: {len(_save(rows, watching.k, Path(how.figures)))} files in {how.figures}")
    if how.report is not None:
        write_text(_page(job, runner, rows, watching.k if watching is not None else 2, how.report), how.report)
        say(f"report: {how.report}")
    if runner.beside is not None:
        say(str(runner.beside))
    if stop:
        say(f"stopped after event {runner.first:,}" + ("; the snapshot continues there" if file is not None else ""))
    found = {**figures(runner), "seed": job.seed or 0, "unreadable_lines": source.bad, "ended": ended and not stop}
    if json:
        say(as_json(found))
    return 0


def _save(rows: Any, k: int, folder: Path) -> list[Path]:
    """Figures, pictures, and a page of them."""
    from shoal.connect.files import write_text
    from shoal.report.stream_figures import save
    from shoal.report.stream_page import figures_page

    made = save(rows, k, folder)
    if made:
        made.append(folder / "page.html")
        write_text(figures_page(rows, k), str(made[-1]))
    return made


def _page(job: StreamJob, runner: LocalRunner, rows: Any, k: int, file: str) -> str:
    """How the run ended, as a file of this name."""
    from shoal.core.known import doubts
    from shoal.release.stream import figures
    from shoal.report.model import ending
    from shoal.report.stream_page import reasons, run_page

    kind, counters = ending(file), runner.method.counters
    if kind == ".json":
        return as_json(figures(runner))
    if kind == ".html":
        return run_page(job.title, job.method.use, counters, notes=doubts(runner.method.known), rows=rows, k=k)
    told = [f"{count:,} withheld: {words}" for words, count in reasons(counters)]
    return "\n".join([f"{job.title}: {counters['released']:,} of {counters['events']:,} events released", *told]) + "\n"


def _where(events: str, position: Position, stopped: Position | None) -> str:
    """How a stream goes on from its snapshot."""
    name = "standard input" if events == "-" else events
    if position.read:
        return f"continuing {name} after its event {position.read:,}, where the snapshot stopped"
    if stopped is not None and stopped.name == position.name != "-":
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


def _refuse_absent(job: StreamJob, unseen: set[str], count: int) -> None:
    """A column that no event had cannot be what was meant."""
    counted = [n for n in job.schema.columns if job.schema[n].role in ("time", "subject", "quasi")]
    made = job.schema.derived
    needed = [s for n in counted for s in (made[n].sources if n in made else (n,)) if s in unseen]
    if count and needed:
        from shoal.core.errors import InputError

        raise InputError(
            f"none of {count:,} events has a value in the column {needed[0]!r}",
            where="stream",
            hint="compare the names of columns in the events with the policy or the options",
        )
