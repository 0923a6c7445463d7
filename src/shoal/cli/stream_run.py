"""How ``shoal stream`` runs: inputs and outputs opened, one pass over the events, what is said at the end."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.cli.live import Live, StoppedError
from shoal.cli.options import only_with
from shoal.cli.terminal import as_json, say
from shoal.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from shoal.cli.stream import Reads, Running
    from shoal.cli.stream_metrics import StreamMetrics
    from shoal.connect.events import Events
    from shoal.connect.sink import Lines, Sink
    from shoal.core.originals import Folder
    from shoal.release.checkpoints import Checkpoints, Stopped
    from shoal.release.position import Position
    from shoal.release.stream import LocalRunner, StreamJob
    from shoal.runtime.kafka.serve.metrics import Page


@dataclass(frozen=True)
class Asked:
    """What was asked for: a job and a file per view (the first under the empty name), and how they run."""

    jobs: Mapping[str, StreamJob]
    events: str
    outputs: Mapping[str, str]
    reads: Reads
    run: Running
    json: bool


def passed(asked: Asked) -> int:
    """One pass over the events."""
    from shoal.cli.stream_end import figures_of, report, save_figures, say_more
    from shoal.connect.events import Events
    from shoal.connect.pipes import CutOffError
    from shoal.connect.typed_lines import needs_of
    from shoal.core.originals import keep_apart
    from shoal.release import position as positions
    from shoal.release.checkpoints import sliced
    from shoal.release.doubts import examined
    from shoal.release.stream import QUIET
    from shoal.release.stream_needs import needed
    from shoal.report.model import ending

    how, job = asked.run, asked.jobs[""]
    keep_apart([*asked.outputs.values(), *_beside(asked)], [asked.events])
    ending(how.report)
    # drawn once: without a ring of keys each call would draw another, and state and pseudonyms must have the same
    keys = {view: one.key() for view, one in asked.jobs.items()}
    # events are read before anything is opened for writing, so that a wrong name leaves nothing behind
    only_with(bool((job.view or job).schema.of("time")), "a time column", trust_times=how.trust_times)
    source = Events(
        asked.events,
        list(dict.fromkeys(name for one in asked.jobs.values() for name in one.columns)),
        strict=how.strict,
        beat=QUIET,
        types={name: kind for one in asked.jobs.values() for name, kind in (one.view or one).schema.types().items()},
        kind=asked.reads.format,
        follow=asked.reads.follow,
        needs=needs_of([needed(one) for one in asked.jobs.values()]),
    )
    out = _Outputs(asked)
    saved, stopped = _checkpoints(asked, keys[""], out)
    at = saved.at if saved is not None else positions.Position.of(asked.events, keys[""])
    # all views of one pass: each has its own state, and the same events in the same order
    runners = {view: _runner(asked, view, keys[view], out, saved, stopped) for view in asked.jobs}
    runner = runners[""]
    if saved is not None:
        saved.begin(runners)
    watching = _watched(runner, how.figures_every or "5m") if how.figures else None
    stop = _stops(source)  # only now: until here Ctrl-C ends the command like any other
    where = "columns.time.unit" if job.view else "--unit"
    trusted = examined(source, job, say, trust=how.trust_times, where=where)
    live, begun = Live(runner, sliced(positions.unread(trusted, at.read))), runner.first
    whole, cut = False, None
    if how.watch:
        live.watch(job.title, lambda: source.bad)
    page: Page | None = None
    try:
        page, metrics = _metrics(how.metrics, runners, source, saved)
        try:
            ended = _drained(runners, live, stop, saved, metrics)
        except CutOffError as error:
            cut, ended = error, False
            if saved is not None:
                saved.at = positions.Position()  # what stands in the file now is read from its first event
        # with a snapshot the stream may go on: what is held waits there for the rest of its group
        if ended and (saved is None or how.flush):
            for one in runners.values():
                one.finish()
        _refuse_absent(job, source.unseen, runner.first - begun)
        if saved is not None:
            saved.write()
        whole = True  # only such a run leaves a file where nothing was released
    except BaseException as error:
        live.failed(error)
        raise
    finally:
        if page is not None:
            page.close()
        out.close(whole=whole)
    live.line(end=True)
    say_more(asked, source, runners)
    rows = watching.finish() if watching is not None else []
    if watching is not None and how.figures:
        say(f"written: {len(save_figures(rows, watching.k, how.figures))} files in {how.figures}")
    report(asked, runners, rows, watching.k if watching is not None else 2)
    if runner.beside is not None:
        say(str(runner.beside))
    if stop:
        say(f"stopped after event {runner.first:,}" + ("; the snapshot continues there" if saved is not None else ""))
    if asked.json:
        say(as_json(figures_of(asked, source, runners, ended=ended)))
    if cut is not None:  # only now: what was answered before stays, and stands in the snapshot
        raise cut
    return 0


class _Outputs:
    """The files of a run, by what they are for."""

    def __init__(self, asked: Asked) -> None:
        from shoal.connect.sink import Lines, Sink

        kind = asked.reads.output_format
        self.sinks: dict[str, Sink] = {view: Sink(path, kind=kind) for view, path in asked.outputs.items()}
        how = asked.run
        # they say which released event is which of the input, so only their owner may read them
        self.marks = Lines(how.synthetic, private=True) if how.synthetic else None
        self.withheld = Lines(how.withheld, private=True) if how.withheld else None

    @property
    def files(self) -> dict[str, Lines]:
        beside = {"synthetic": self.marks, "withheld": self.withheld}
        return {
            **{f"output {view}".strip(): sink.lines for view, sink in self.sinks.items()},
            **{name: lines for name, lines in beside.items() if lines is not None},
        }

    def told(self, view: str) -> Callable[[Sequence[int], Sequence[int]], None] | None:
        """Says which events a view withholds, and why."""
        import msgspec

        from shoal.streams.base import Reason

        lines = self.withheld
        if lines is None:
            return None
        beside = {"view": view} if view else {}

        def tell(events: Sequence[int], reasons: Sequence[int]) -> None:
            told = [
                {"event": event, "reason": Reason(reason).name.lower(), **beside}
                for event, reason in zip(events, reasons, strict=True)
            ]
            lines.write(b"".join(msgspec.json.encode(one) + b"\n" for one in told))

        return tell

    def close(self, *, whole: bool) -> None:
        with ExitStack() as every:  # one that cannot be written leaves no other open
            for lines in self.files.values():
                every.callback(lines.close, whole=whole)


def _checkpoints(asked: Asked, key: bytes, out: _Outputs) -> tuple[Checkpoints | None, Stopped | None]:
    """Where checkpoints go, and the newest there is; outputs are cut back to it."""
    from pathlib import Path

    from shoal.core.time import duration
    from shoal.release import checkpoints, position
    from shoal.release.definition import definition_of, resumed

    how = asked.run
    if how.snapshot is None:
        return None, None
    file = position.snapshot_file(Path(how.snapshot), key)
    stopped = checkpoints.read(file)
    before = stopped.position if stopped is not None else None
    at = position.Position.of(asked.events, key).after(before, key, again=how.again)
    every = checkpoints.EVERY if how.checkpoint is None else duration(how.checkpoint, where="--checkpoint") / 1e6
    saved = checkpoints.Checkpoints(file, key, at, out.files, every=every)
    if stopped is not None:
        # the snapshot holds the state of each further view: one that is new could not know what went before
        if set(stopped.others) != set(asked.jobs) - {""}:
            raise UsageError(
                "the snapshot was made with other further views",
                where="--also",
                hint="give the same ones, or start without the snapshot",
            )
        # before outputs are cut back: a run that is refused leaves everything as it was
        for view, one in asked.jobs.items():
            resumed(stopped.of(view) or b"", definition_of(one), where=_place(how.snapshot, view))
        say(_where(asked.events, at, stopped.position))
        for name in saved.resume(stopped):
            say(f"the {name} is not the file of the snapshot: what is released from here on goes there")
    return saved, stopped


def _place(snapshot: str, view: str) -> str:
    return f"{snapshot}, view {view}" if view else snapshot


def _runner(
    asked: Asked, view: str, key: bytes, out: _Outputs, saved: Checkpoints | None, stopped: Stopped | None
) -> LocalRunner:
    from shoal.release.stream import LocalRunner
    from shoal.release.ticks import TickLog

    how, job, marks = asked.run, asked.jobs[view], out.marks
    ticks = None
    if saved is not None:
        ticks = TickLog(_ticks(saved.file.path, view), key, saved.file.number)
    runner = LocalRunner(
        job,
        key,
        out.sinks[view].write,
        seed=job.seed or 0,
        snapshot=stopped.of(view) if stopped is not None else None,
        strict=how.strict,
        marks=(lambda numbers: marks.write(b"".join(b"%d\n" % n for n in numbers))) if marks and not view else None,
        ticks=ticks,
        verify=how.verify,
    )
    runner.tell = out.told(view)
    return runner


def _ticks(snapshot: Path, view: str) -> Path:
    """Where the ticks of a view's clock stand, beside the snapshot."""
    return snapshot.with_name(f"{snapshot.name}{'.' + view if view else ''}.ticks")


def _beside(asked: Asked) -> list[str | Folder | None]:
    """All that a run writes beside what it releases."""
    from pathlib import Path

    from shoal.core.originals import Folder
    from shoal.core.sealed_state import state_files
    from shoal.report.stream_figures import FIGURES

    how = asked.run
    ticks = [] if how.snapshot is None else [str(_ticks(Path(how.snapshot), view)) for view in asked.jobs]
    figures = Folder(how.figures, FIGURES) if how.figures else None
    return [how.synthetic, how.withheld, how.report, figures, *state_files(how.snapshot), *ticks]


def _stops(source: Events) -> list[int]:
    """Signals that ask to stop, as they come; what waits for input is woken."""
    import signal

    stop: list[int] = []

    def asked(number: int, _: object) -> None:
        stop.append(number)
        if source.waiting:  # in the middle of a batch the flag is enough: what was read is answered first
            raise StoppedError

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, asked)
    return stop


def _metrics(
    address: str | None, runners: Mapping[str, LocalRunner], source: Events, saved: Checkpoints | None
) -> tuple[Page | None, StreamMetrics | None]:
    if address is None:
        return None, None
    from shoal.cli.stream_metrics import StreamMetrics
    from shoal.runtime.kafka.serve.metrics import Page

    metrics = StreamMetrics(runners, source, saved)
    page = Page(address, metrics.counters)
    say(f"metrics and health on port {page.port}")
    return page, metrics


def _drained(
    runners: Mapping[str, LocalRunner],
    source: Live,
    stop: list[int],
    saved: Checkpoints | None,
    metrics: StreamMetrics | None,
) -> bool:
    """All events; False if it was stopped before the end. What a method still holds stays held."""
    for frame in source:
        for runner in runners.values():
            runner.feed(frame)
        if metrics is not None:
            metrics.look()
        if stop:
            return False  # the caller writes the last checkpoint, at this very event
        if saved is not None:
            saved.look()
    return not stop


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


def _refuse_absent(job: StreamJob, unseen: set[str], count: int) -> None:
    """A column that no event had cannot be what was meant."""
    counted = [n for n in job.schema.columns if job.schema[n].role in ("time", "subject", "quasi")]
    made = job.schema.derived
    needed = [s for n in counted for s in (made[n].sources if n in made else (n,)) if s in unseen]
    if count and needed:
        raise InputError(
            f"none of {count:,} events has a value in the column {needed[0]!r}",
            where="stream",
            hint="compare the names of columns in the events with the policy or the options",
        )
