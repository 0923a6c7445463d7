"""``shoal check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from shoal.cli.options import Reading, only_with, read_table
from shoal.cli.terminal import Json, answer, as_json, say

if TYPE_CHECKING:
    import polars as pl

    from shoal.core.keys import KeyRing
    from shoal.policy.document import Policy
    from shoal.release.roles import Uncompared


def check(
    policy: str,
    data: str | None = None,
    *,
    together: int | None = None,
    threshold: Annotated[float | None, Parameter(name="--threshold")] = None,
    rows: int | None = None,
    keys: str | None = None,
    reading: Reading = Reading(),
    json: Json = False,
) -> int:
    """Is the policy whole, and safe? With data also: a dry run of every view, and what roles learn together.

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
    from shoal.views.explain import explain

    loaded = load(policy)
    explain(loaded)
    ring = KeyRing.load(Path(keys) if keys else None)
    lacking = _keys(loaded, ring)
    only_with(data is not None, "data", together=together, threshold=threshold, rows=rows)
    only_with(data is not None, "data", separator=reading.separator, type=reading.type_)
    if data is None:
        found = {"views": len(loaded.views), "keys_missing": lacking}
        answer(as_json(found) if json else f"{policy}: {len(loaded.views)} views, all well formed")
        for name in lacking:
            say(f"warning: the key {name!r} is not at hand")
        return 0
    frame = read_table(data, reading, loaded.schema.columns, loaded.types())
    return _together(loaded, frame.head(rows or 10_000), ring, together or 2, threshold, json)


def _together(
    policy: Policy, frame: pl.DataFrame, ring: KeyRing, most: int, threshold: float | None, json: bool
) -> int:
    from shoal.core.errors import UsageError
    from shoal.core.known import doubts, refuse_few
    from shoal.release.roles import known, notes, pools

    counts = known(frame, policy, keys=ring)
    for doubt in doubts(counts):
        say(f"warning: {doubt}")
    refuse_few(counts)
    found, failed = pools(frame, policy, keys=ring, most=most)
    if json:
        answer(
            as_json(
                {
                    "pools": [{"share": p.share, "pool": p} for p in found],
                    "failed": _reasons(failed, made=False),
                    "uncompared": _reasons(failed, made=True),
                }
            )
        )
    else:
        for pool in found:
            answer(str(pool))
    for note in notes(frame, policy, keys=ring):
        say(f"warning: {note}")
    broken = _reasons(failed, made=False)
    say(f"{len(policy.views) - len(broken)} of {len(policy.views)} views made from {frame.height:,} rows")
    for role, reason in broken.items():
        say(f"warning: the view {role!r} could not be made: {reason}")
    for role, reason in _reasons(failed, made=True).items():
        say(f"the view {role!r} was made and not compared: {reason}")
    worst = max((p for p in found if p.new), key=lambda p: p.share, default=None)
    if worst is not None and worst.linked and not json:
        say(f"warning: {' + '.join(worst.roles)} can put {worst.share:.1%} of the records together")
    if broken and len(broken) == len(policy.views):
        raise UsageError("no view could be made from this sample", where=policy.path)
    if threshold is not None and worst is not None and worst.share > threshold:
        say(f"that is more than the threshold of {threshold:.1%}")
        return 1
    return 0


def _reasons(failed: dict[str, Uncompared], *, made: bool) -> dict[str, str]:
    return {role: found.reason for role, found in failed.items() if found.made is made}


def _keys(policy: Policy, ring: KeyRing) -> list[str]:
    """The keys the policy names that are not at hand."""
    named = {m.key for v in policy.views.values() for ms in v.masks.values() for m in ms if m.keyed}  # type: ignore[attr-defined]
    return sorted(name for name in named if name not in ring.keys)
