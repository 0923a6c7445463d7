"""Curves from the command line: ``shoal anonymize --series``, and views that promise kP-anonymity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shoal.cli.terminal import answer, pairs, progress, say
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from shoal.policy.document import Policy, View
    from shoal.report.series_report import SeriesReport
    from shoal.series.release import SeriesRelease

READING = ("aggregate",)  # words of --set that say how curves are read, what their patterns are, how values are altered
PATTERN = ("word", "levels", "nested")
ALTERING = ("step", "most")


def curves_of(path: str, view: str | None) -> tuple[Policy, View] | None:
    """The policy and its view, if the view promises something about curves."""
    from shoal.policy.load import load
    from shoal.release.curves import series_promise

    policy = load(path)
    chosen = policy.view(view)
    return (policy, chosen) if series_promise(chosen) is not None else None


def asked_of_curves(
    method: str | None, settings: Sequence[str], every: str | None, missing: str | None, *, perturb: bool
) -> dict[str, Any]:
    """How curves are read and grouped, in the words of :func:`shoal.series.release.anonymize_series`."""
    import yaml

    from shoal.series.perturb import Perturb
    from shoal.series.release import DEFAULT_METHOD
    from shoal.series.sax import Sax

    given = {name: yaml.safe_load(value) for name, value in pairs(list(settings), "--set").items()}
    asked: dict[str, Any] = {name: given.pop(name) for name in READING if name in given}
    pattern = {name: given.pop(name) for name in PATTERN if name in given}
    altering = {name: given.pop(name) for name in ALTERING if name in given}
    if altering and not perturb:
        raise UsageError("nothing is altered", where="--set", hint="`step` and `most` belong to --perturb")
    if pattern:
        asked["pattern"] = _spec(Sax, pattern)
    if perturb:
        asked["perturb"] = _spec(Perturb, altering)
    if method is not None or given:
        asked["method"] = {"use": method or DEFAULT_METHOD, **given}
    if every is not None:
        asked["every"] = float(every) if every.replace(".", "", 1).isdigit() else every
    if missing is not None:
        asked["missing"] = missing
    return asked


def _spec(kind: Any, given: dict[str, Any]) -> Any:
    import msgspec

    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise UsageError(str(error), where="--set") from None


def release_curves(
    data: str, title: str, separator: str | None, weights: dict[str, float], asked: dict[str, Any], **to: Any
) -> None:
    """Curves of a file, grouped, verified and written."""
    from shoal.connect import files
    from shoal.release.curves import anonymize_series

    frame = files.read(data, separator=separator)
    if weights:
        instants = [c for c in frame.columns if c not in (asked["id"], *asked["sensitive"])]
        unknown = [name for name in weights if name not in instants]
        if unknown or asked["time"] is not None:
            raise UsageError(
                f"{unknown[0]!r} is not an instant" if unknown else "a long table has no instant columns",
                where="--weight",
                hint="weights are given per instant of a wide table: `W0=2`",
            )
        asked = {**asked, "weights": [weights.get(name, 1.0) for name in instants]}
    with progress("anonymizing") as tell:
        made = anonymize_series(frame, title=title, progress=tell, **asked)
    write_curves(*made, **to)


def release_curves_view(data: str, about: tuple[Policy, View], separator: str | None, seed: int, **to: Any) -> None:
    """Curves of a file as a view of a policy says."""
    from shoal.release.curves import anonymize_series_view

    with progress("anonymizing") as tell:
        told = anonymize_series_view(data, *about, separator=separator, seed=seed, progress=tell)
    write_curves(*told, **to)


def write_curves(
    release: SeriesRelease,
    told: SeriesReport,
    *,
    output: str,
    report: str | None,
    cells: str,
    dry_run: bool,
    json: bool,
) -> None:
    """The release and its report; both are made before anything is written."""
    from shoal.connect import files

    page = None if report is None else told.page(report, release)
    data = release.frame(typed=True) if cells == "struct" else release.data
    if not dry_run:
        if report is not None and page is not None:
            files.write_text(page, report)
        files.write(data, output)
    (answer if json and (output != "-" or dry_run) else say)(told.json() if json else told.text())
    if dry_run:
        say("dry run: nothing was written")
    elif report is not None:
        say(f"report: {report}")
