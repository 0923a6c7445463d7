"""``shoal verify``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cyclopts import Parameter

from shoal.cli.options import ByPolicy, Columns, Promised, Reading, only_with, read_table, wishes
from shoal.cli.terminal import File, Json, MaybeWhole, answer, as_json, names, say
from shoal.core.errors import UsageError

Unit = Literal["s", "ms", "us", "ns"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OfStream:
    """A released stream.

    Parameters
    ----------
    z
        Of a released stream: every event was released at a level that at least z people had shown. Needs --original.
    window
        Of a released stream: within which time before it, for example 1h.
    time
        Of a released stream: the time column; `time` if not given.
    unit
        Of a released stream: the unit of time: s (the default), ms, us, ns.
    original
        The original events beside a released stream: z-anonymity cannot be judged without them.
    """

    z: MaybeWhole = None
    window: str | None = None
    time: str | None = None
    unit: Unit | None = None
    original: str | None = None


def verify(
    released: File,
    *,
    by: ByPolicy = ByPolicy(),
    columns: Columns = Columns(),
    promised: Promised = Promised(),
    stream: OfStream = OfStream(),
    previous: str | None = None,
    certificate: str | None = None,
    public_key: str | None = None,
    reading: Reading = Reading(),
    json: Json = False,
) -> int:
    """Check released data against promises, with code independent of every method. Exit code 1 if a promise is broken.

    Examples: `shoal verify released.csv --quasi zip,sex,age --sensitive diag --k 5 --l 2`;
    `shoal verify curves.csv --sensitive W51 --k 16 --p 6`;
    `shoal verify out.ndjson --original visits.ndjson --quasi domain --subject client --z 20 --window 1h`.

    Of curves every column is an instant that --quasi names; without it, every column that is nothing else.

    Parameters
    ----------
    released
        The released file, as others would read it.
    previous
        An earlier release of the same people: what do both reveal together? Needs --subject in both.
    certificate
        The certificate beside the release: its signature must be right, and the files named here (the release,
        --policy, --original) must be those it certifies.
    public_key
        The publisher's public key (64 hex digits), from elsewhere: the certificate must be signed with it.
    json
        Findings as JSON.
    """
    from shoal.api import intersection
    from shoal.connect import files
    from shoal.promises.base import those_about
    from shoal.release.judges import judge_of

    judge = judge_of(wishes(by, columns, promised, stream))
    original = stream.original
    if original is not None and not those_about(judge.promises, "events"):
        raise UsageError("has no effect: only z-anonymity is judged beside the original", where="--original")
    if previous is not None and columns.subject is None:
        raise UsageError("two releases are compared by their people", where="--previous", hint="give --subject")
    only_with(certificate is not None, "--certificate", public_key=public_key)
    files_named = [released, by.policy, original]
    certified = None if certificate is None else certified_by(certificate, files_named, public_key)
    instants = list(judge.instants or ())
    # a release is text: to read `[20, 30]` as a number would judge something that nobody gets to see
    as_they_read = next((name for name in reading.types if original is None and name in judge.quasi), None)
    if as_they_read is not None:
        raise UsageError(
            f"has no effect on column {as_they_read!r}: quasi columns are judged as they read", where="--type"
        )
    frame = files.read_released(
        released, [*judge.quasi, *instants], separator=reading.split, types=reading.types if original is None else None
    )
    declared = judge.schema.types()
    events = None if original is None else read_table(original, reading, judge.schema.columns, declared)
    verdict = judge.judge(frame, original=events)
    together = None
    if previous is not None and columns.subject is not None:
        earlier = files.read_released(previous, judge.quasi, separator=reading.split, types=reading.types)
        together = intersection(earlier, frame, names(columns.quasi), columns.subject)
    if json:
        answer(
            as_json({"kept": verdict.kept, "verdict": verdict, "together_with_previous": together, **(certified or {})})
        )
    else:
        answer(str(verdict))
        if certified is not None:
            answer(
                "certificate: files unchanged: {files}, signed {made} by {signed_by}".format(**certified["certificate"])
            )
        if together is not None:
            answer(
                f"together with the previous release: {together['people']:,} people are in both, the smallest "
                f"intersection holds {together['smallest']:,}, {together['unique']:,} are alone in theirs"
            )
    if not verdict.kept:
        say("the release breaks its promise")
    return 0 if verdict.kept else 1


def certified_by(file: str, paths: Sequence[str | None], expected: str | None = None) -> dict[str, Any]:
    """What a certificate says of these files; an error, if it is not right or certifies others."""
    from pathlib import Path

    from shoal.core.errors import InputError
    from shoal.core.keys import KeyRing
    from shoal.release.certificate import KEY, check, public_key
    from shoal.release.certificate import File as Digest

    named = [path for path in paths if path is not None]
    if "-" in named:
        raise UsageError("certifies files, and standard input is none", where="--certificate")
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=file) from None
    wanted = None if expected is None else expected.strip().lower()
    found = check(data, public_key=wanted, files=[Path(path) for path in named])
    if Digest.of("", Path(named[0])).sha256 not in [known.sha256 for known in found.files if known.part == "output"]:
        raise InputError("this file is certified, but not as a release", where=named[0])
    keys = KeyRing.load()
    if wanted is not None:
        signed_by = "the publisher's key, as given"
    elif KEY in keys.keys and public_key(keys) == found.public_key:
        signed_by = "the key at hand"
    else:
        signed_by = f"{found.public_key} (compare it with the publisher's key)"
    return {"certificate": {"files": len(named), "made": found.made, "signed_by": signed_by, "kept": found.kept}}
