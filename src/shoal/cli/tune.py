"""``shoal tune``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from shoal.cli.options import Reading, read_for, spell
from shoal.cli.terminal import File, Json, MaybeWhole, Names, answer, as_json, names, progress, say
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from shoal.release.base import Job


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Goals:
    """What a proposal must keep.

    Parameters
    ----------
    max_loss
        Lose at most this share of the cells' detail, 0 to 1.
    max_risk
        The mean chance that someone is found again is at most this.
    max_delay
        Of a stream with delay: at most so many events pass before one is released.
    """

    max_loss: float | None = None
    max_risk: float | None = None
    max_delay: MaybeWhole = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Tried:
    """What is tried.

    Parameters
    ----------
    methods
        Which methods; all that fit if not given.
    k
        Which k; the policy's and larger ones if not given.
    z
        Of z-anonymity: which z; the policy's and larger ones if not given.
    window
        Of z-anonymity: which windows; the policy's, a half and a quarter of it if not given.
    delay
        Of a stream with delay: which delays, in events; the policy's (or --max-delay) and parts of it if not given.
    rows
        How many rows to use; 10,000 if not given. Of a stream the first, of a table people from all over it.
    """

    methods: Names = None
    k: Names = None
    z: Names = None
    window: Names = None
    delay: Names = None
    rows: MaybeWhole = None


def tune(
    policy: str,
    data: File,
    *,
    view: str | None = None,
    goals: Goals = Goals(),
    tried: Tried = Tried(),
    report: str | None = None,
    seed: MaybeWhole = None,
    reading: Reading = Reading(),
    json: Json = False,
) -> int:
    """Propose k, z, window, delay and method for a goal: each point is released, verified and measured.

    Example: `shoal tune policy.yaml patients.csv --max-loss 0.1`. No release is written. The policy is the floor: only
    stronger promises are tried. Of the points that meet the goal, the one that loses least is proposed; with
    --max-loss, the one with the least risk. Every point of the frontier has the command that takes it. Exit code 1 if
    no point meets the goal.

    Parameters
    ----------
    policy
        The policy.
    data
        A table, curves or events, as the view says.
    view
        Which view of the policy; needed if several promise something.
    report
        Also draw loss against risk: .html with the table, or .svg.
    seed
        The same seed gives the same figures. Without it one is drawn in secret for each point, as for a release.
    json
        All points as JSON.
    """
    from shoal.connect import files
    from shoal.connect.formats import title_of
    from shoal.core.originals import keep_apart
    from shoal.release.job import job_of
    from shoal.release.tune import Varied
    from shoal.release.tune import tune as run
    from shoal.release.tuned import Goal
    from shoal.release.wishes import Wishes
    from shoal.report.chart import draw

    if tried.rows is not None and tried.rows < 1:
        raise UsageError("expected at least 1 row", where="--rows", hint="leave it out for 10,000")
    varied = Varied(
        methods=names(tried.methods),
        k=_wholes(tried.k, "--k"),
        z=_wholes(tried.z, "--z"),
        window=names(tried.window),
        delay=_wholes(tried.delay, "--delay"),
    )
    goal = Goal(_share(goals.max_loss, "--max-loss"), _share(goals.max_risk, "--max-risk"), goals.max_delay)
    asked = {"policy": policy, "view": view, "seed": seed}
    job = job_of(Wishes(asked, spell=spell))
    keep_apart([report], [policy, data])
    if report is not None and not report.endswith((".html", ".svg")):
        raise UsageError("expected a name that ends in .html or .svg", where="--report")
    frame = read_for(job, data, reading)

    def command(job: Job, settings: dict[str, Any]) -> dict[str, str]:
        return _command(job, settings, [data, "--policy", policy, *_given("--view", view)], reading, seed)

    with progress("tuning") as tell:
        found = run(frame, asked, varied, goal, rows=tried.rows or 10_000, spell=spell, command=command, progress=tell)
    if report is not None:
        drawn = found.page(f"Tuning of {title_of(data)}") if report.endswith(".html") else draw(found.chart())
        files.write_text(drawn, report)
        say(f"report: {report}")
    answer(as_json({"best": found.best, "tuning": found}) if json else found.text())
    return 0 if found.best is not None else 1


def _command(
    job: Job, settings: dict[str, Any], start: list[str], reading: Reading, seed: int | None
) -> dict[str, str]:
    """The command that takes a point, and which of its options are the point's."""
    import shlex

    from shoal.release.stream import StreamJob

    zero = isinstance(job, StreamJob) and not job.method.groups  # `shoal stream` has no option for methods
    method = settings.get("method")
    inner = {n: v for n, v in method.items() if n != "use"} if isinstance(method, dict) else {}
    own = _given("--method", method["use"] if isinstance(method, dict) else method)
    own += [word for name, value in inner.items() for word in ("--set", f"{name}={value}")]
    own += [word for name in ("k", "z", "window") for word in _given(f"--{name}", settings.get(name))]
    end = _given("--seed", seed)
    if not zero:
        end += [word for kind in reading.type_ or [] for word in ("--type", kind)]
        end += _given("--separator", reading.separator)
    words = ["shoal", "stream" if zero else "anonymize", *start, *own, *end]
    output = ["-o", "released.ndjson" if zero else "released.csv"]
    return {"command": shlex.join([*words, *output]), "options": shlex.join(own)}


def _given(option: str, value: Any) -> list[str]:
    return [] if value is None else [option, str(value)]


def _wholes(values: list[str] | None, option: str) -> list[int]:
    try:
        found = [int(word) for word in names(values)]
    except ValueError:
        raise UsageError("expected whole numbers", where=option, hint=f"for example {option} 5,10") from None
    if any(n < 1 for n in found):
        raise UsageError("expected whole numbers from 1 on", where=option, hint=f"for example {option} 5,10")
    return found


def _share(value: float | None, option: str) -> float | None:
    if value is not None and not 0 <= value <= 1:
        raise UsageError("expected a share from 0 to 1", where=option, hint="for example 0.1")
    return value
