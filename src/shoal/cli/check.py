"""``shoal check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from shoal.cli.options import Reading, only_with, read_table
from shoal.cli.terminal import Json, MaybeWhole, answer, as_json, say
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from shoal.policy.document import Policy
    from shoal.release.checked import Checked


def check(
    policy: str,
    data: str | None = None,
    *,
    together: MaybeWhole = None,
    threshold: Annotated[float | None, Parameter(name="--threshold")] = None,
    rows: MaybeWhole = None,
    keys: str | None = None,
    reading: Reading = Reading(),
    json: Json = False,
) -> int:
    """Is the policy complete and safe? With data also: a dry run of every view, what roles learn together, and
    how many people a stream brings together.

    Example: `shoal check policy.yaml patients.csv --together 3 --threshold 0.05`.

    Parameters
    ----------
    policy
        The policy.
    data
        A sample of the data: nothing of it is written or shown.
    together
        The largest set of roles that may pool their views; 2 if not given.
    threshold
        Exit with 1 if roles can link more than this share of the records exactly.
    rows
        How many rows of the sample to use; 10,000 if not given.
    keys
        A key ring; without it SHOAL_KEYS and SHOAL_KEY_… say.
    json
        Findings as JSON.
    """
    from pathlib import Path

    from shoal.core.keys import KeyRing
    from shoal.policy.load import load
    from shoal.release.checked import checked

    if threshold is not None and not 0 <= threshold <= 1:
        raise UsageError("expected a share from 0 to 1", where="--threshold", hint="for example 0.05")
    if rows is not None and rows < 1:
        raise UsageError("expected at least 1 row", where="--rows", hint="leave it out for 10,000")
    loaded = load(policy)
    ring = KeyRing.load(Path(keys) if keys else None)
    only_with(data is not None, "data", together=together, threshold=threshold, rows=rows)
    only_with(data is not None, "data", separator=reading.separator, type=reading.type_)
    if data is None:
        found = checked(loaded, keys=ring)
        told = {"views": found.views, "keys_missing": found.keys_missing}
        answer(as_json(told) if json else f"{policy}: {found.views} views, all well formed")
        for name in found.keys_missing:
            say(f"warning: the key {name!r} is not available")
        return 0
    frame = read_table(data, reading, loaded.schema.columns, loaded.types()).head(rows or 10_000)
    found = checked(loaded, frame, keys=ring, together=2 if together is None else together)
    return _together(loaded, found, threshold, json)


def _together(policy: Policy, found: Checked, threshold: float | None, json: bool) -> int:
    if json:
        answer(
            as_json(
                {
                    "pools": [{"share": p.share, "pool": p} for p in found.pools],
                    "failed": found.failed,
                    "uncompared": found.uncompared,
                    "carries": found.carries,
                }
            )
        )
    else:
        for pool in found.pools:
            answer(str(pool))
        for role, carried in found.carries.items():
            answer(f"{role}: {carried}")
    for note in found.notes:
        say(f"warning: {note}")
    say(f"{found.views - len(found.failed)} of {found.views} views made from {found.rows or 0:,} rows")
    for role, reason in found.failed.items():
        say(f"warning: the view {role!r} could not be made: {reason}")
    for role, reason in found.uncompared.items():
        say(f"the view {role!r} was made and not compared: {reason}")
    worst = found.worst
    if worst is not None and worst.linked and not json:
        say(f"warning: {' + '.join(worst.roles)} can put {worst.share:.1%} of the records together")
    if found.failed and len(found.failed) == found.views:
        raise UsageError("no view could be made from this sample", where=policy.path)
    if threshold is not None and worst is not None and worst.share > threshold:
        say(f"that is more than the threshold of {threshold:.1%}")
        return 1
    return 0
