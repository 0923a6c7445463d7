"""``shoal stream``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import Parameter

from shoal.cli.options import ByPolicy, Flag, only_with, wishes
from shoal.cli.terminal import File, Json, MaybeWhole, Names, Output, pairs
from shoal.cli.words import hierarchy_word
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from shoal.core.keys import KeyRing
    from shoal.release.stream import StreamJob

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
class Reads:
    """What is read and written.

    Parameters
    ----------
    format
        What the events are, where no name says so: ndjson or csv. Without it the first line of standard input tells.
        What is compressed (gzip, zstd) is told by its first bytes.
    output_format
        What is written, where no name says so: ndjson (if not given) or csv.
    follow
        Read a file on as it grows, until the command is stopped. A file that was cut off or replaced ends it with an
        error.
    also
        A further view of the policy, made in the same pass: `VIEW=FILE`. May be given several times.
    """

    format: Literal["ndjson", "csv"] | None = None
    output_format: Literal["ndjson", "csv"] | None = None
    follow: Flag = False
    also: Names = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Running:
    """How the stream runs.

    Parameters
    ----------
    keys
        A key ring; without it SHOAL_KEYS and SHOAL_KEY_… say. Without any key a random one serves this run only.
    snapshot
        A file: continue from it if it exists, and leave the state in it now and then, at the end, and when asked to
        stop. It knows how far its input file was read and its outputs were written: the same file goes on after that,
        outputs are cut back to it, any other input is read from its start. So a run that is killed and started again
        releases every event once. Beside it, in FILE.ticks, stands when the clock moved on though no event came.
    checkpoint
        With --snapshot: how often, in seconds or as 10s, 5m; 30s if not given, and never more than 5 % of the time.
    flush
        With --snapshot: the stream ends with this input: decide what is still held, instead of keeping it.
    again
        With --snapshot: standard input or the socket brings its events again, from the first: those the snapshot knows
        are skipped.
    withheld
        A file for the operator: per withheld event its number in the stream and why, as NDJSON; never its values.
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
        Judge this share of what is released, from 0 to 1, by code that knows no method, before it is written: so many
        of the values (z-anonymity), groups or windows of curves. A broken promise ends the stream with exit code 1.
    watch
        Show how it goes on a page in the browser, of this machine only, by a link that works once. Needs the extra
        `web`.
    metrics
        An address for Prometheus, `:9100` (this machine only) or `0.0.0.0:9100`: /metrics with the names of
        `shoal serve`, /livez and /readyz, while the stream runs. Needs the extra `kafka`.
    """

    keys: str | None = None
    snapshot: str | None = None
    checkpoint: str | None = None
    flush: Flag = False
    again: Flag = False
    withheld: str | None = None
    synthetic: str | None = None
    figures: str | None = None
    figures_every: str | None = None
    report: str | None = None
    seed: MaybeWhole = None
    strict: Flag = False
    trust_times: Flag = False
    verify: float | None = None
    watch: Flag = False
    metrics: str | None = None


def stream(
    events: File = "-",
    *,
    output: Output = None,
    by: ByPolicy = ByPolicy(),
    about: OfEvents = OfEvents(),
    reads: Reads = Reads(),
    run: Running = Running(),
    json: Json = False,
) -> int:
    """Anonymize events as they come: NDJSON, CSV (also .gz, .zst) or Parquet in, NDJSON or CSV (also .gz, .zst) out.

    Examples: `shoal stream visits.ndjson --z 20 --window 1h --subject client --value domain -o out.ndjson`;
    `tail -f visits.ndjson | shoal stream --policy visits.yaml --view market`.

    Parameters
    ----------
    events
        The events; `-` (the default) is standard input: NDJSON, or CSV if its first line names the columns.
        `tcp://host:port` reads from whoever listens there, as from a pipe.
    output
        Where released events go; `-` (the default) is standard output.
    json
        The figures at the end as JSON, on stderr.
    """
    from shoal.cli.stream_run import Asked, passed
    from shoal.core.keys import DEFAULT

    ring = _ring(run)
    asked = _asked(about, by)
    # the view that the options name is "", those of --also have their names: all of them see each event once
    jobs = {"": _job(by, {**asked, "keys": ring, "seed": run.seed})}
    files = {"": output or "-"}
    for view, file in pairs(reads.also, "--also").items():
        if by.policy is None:
            raise UsageError("has no effect without --policy", where="--also", hint="views stand in a policy")
        jobs[view], files[view] = _job(ByPolicy(policy=by.policy, view=view), {"keys": ring, "seed": run.seed}), file
    if run.snapshot and DEFAULT not in ring.keys:
        raise UsageError(
            "a snapshot needs a key that outlives this run",
            where="--snapshot",
            hint="shoal keys new default --ring keys.json",
        )
    only_with(run.figures is not None, "--figures", figures_every=run.figures_every)
    kept = {"checkpoint": run.checkpoint, "flush": run.flush or None, "again": run.again or None}
    only_with(run.snapshot is not None, "--snapshot", **kept)
    from shoal.connect.pipes import is_pipe

    if run.again and not is_pipe(events):
        raise UsageError("has no effect on a file", where="--again", hint="a file is known by its name: leave it out")
    return passed(Asked(jobs, events, files, reads, run, json))


def _ring(run: Running) -> KeyRing:
    from pathlib import Path

    from shoal.core.keys import KeyRing

    return KeyRing.load(Path(run.keys) if run.keys else None)


def _job(by: ByPolicy, asked: dict[str, Any]) -> StreamJob:
    from shoal.release.job import job_of
    from shoal.release.stream import StreamJob

    job = job_of(wishes(by, **asked))
    if not isinstance(job, StreamJob):
        raise UsageError(
            "the view names no stream method", where=by.policy, hint="shoal anonymize or shoal view release it"
        )
    return job


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
