"""``shoal view``."""

from __future__ import annotations

from shoal.cli.anonymize import check_output, deliver
from shoal.cli.options import How, Promised, Reading, To, read_for, wishes, with_tables
from shoal.cli.terminal import progress


def view(
    policy: str,
    data: str,
    *,
    role: str,
    to: To = To(),
    promised: Promised = Promised(),
    how: How = How(),
    keys: str | None = None,
    reading: Reading = Reading(),
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
    keys
        A key ring; without it SHOAL_KEYS and SHOAL_KEY_… say.
    """
    from pathlib import Path

    from shoal.core.keys import KeyRing
    from shoal.core.originals import keep_apart
    from shoal.release.job import job_of

    data, to = with_tables(data, to)
    ring = KeyRing.load(Path(keys) if keys else None)
    job = job_of(wishes(to, promised, how, policy=policy, view=role, keys=ring))
    keep_apart([to.output, to.report], [data, policy])
    check_output(to)
    frame = read_for(job, data, reading)
    with progress(f"the view of {role}") as tell:
        made = job.run(frame, progress=tell)
    deliver(made, job, to, reading.split, data=data)
