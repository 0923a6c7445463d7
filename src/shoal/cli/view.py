"""``shoal view``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from shoal.cli.terminal import Separator, progress, say


def view(
    policy: str,
    data: str,
    *,
    role: str,
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    keys: str | None = None,
    method: str | None = None,
    separator: Separator = None,
    seed: int = 0,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Write what one role sees of a file: masks, then the method if the view promises something.

    Example: `shoal view policy.yaml --role nurse patients.csv -o nurse.csv`.

    Parameters
    ----------
    policy
        The policy.
    data
        CSV (also .gz), Parquet or NDJSON; `-` is standard input.
    role
        Whose view.
    output
        Where it goes; by its name CSV, Parquet or NDJSON. `-` (the default) is standard output.
    keys
        A key ring; without it SHOAL_KEYS and SHOAL_KEY_… say.
    method
        Another table method than the policy's.
    separator
        The CSV separator, if it is not a comma.
    seed
        The same seed gives the same release.
    dry_run
        Do everything, write nothing.
    """
    from pathlib import Path

    from shoal.connect import files
    from shoal.core.keys import KeyRing
    from shoal.core.originals import keep_apart
    from shoal.policy.load import load
    from shoal.release import roles as role_views

    keep_apart([output], [data, policy])
    separator = "\t" if separator == "TAB" else separator
    loaded = load(policy)
    loaded.view(role)
    ring = KeyRing.load(Path(keys) if keys else None)
    frame = files.read(data, separator=separator, types=loaded.types(), exact=loaded.exact(loaded.view(role)))
    with progress(f"the view of {role}") as tell:
        made = role_views.view(frame, loaded, role, keys=ring, method=method, seed=seed, progress=tell)
    if not dry_run:
        files.write(made.data, output or "-", separator=separator or ",")
    for note in made.notes:
        say(f"note: {note}")
    word = f"{role}: {len(made.rows):,} of {frame.height:,} rows"
    say(f"{word}, {made.withheld:,} withheld" if made.withheld else word)
    if made.release is not None:
        for finding in made.release.report.findings:
            say(f"verified: {finding}")
    if dry_run:
        say("dry run: nothing was written")
