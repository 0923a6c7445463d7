"""``shoal replay``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from shoal.cli.terminal import Json, answer, as_json


def replay(policy: str, *, dry_run: Annotated[bool, Parameter(negative=())] = False, json: Json = False) -> None:
    """Find dead letters in the source, and queue again what the policy can mask now.

    The dead-letter topic holds pointers, never values. A record that fits is written to the end of the source once
    more, and the workers take it like any other; one that does not keeps its pointer, and so does one that some views
    have published; one that the source has deleted is counted as gone. Where the views have newer versions, those were
    filled from the log and have read it: the pointer is settled.

    Example: the schema registry was away for an hour; `shoal replay policy.yaml --dry-run`, then without it.

    Parameters
    ----------
    policy
        A policy whose source is Kafka.
    dry_run
        Look, but queue nothing.
    json
        For machines.
    """
    from shoal.core.keys import KeyRing
    from shoal.policy.load import load
    from shoal.runtime.kafka.tools.replay import Replay

    found = Replay(load(policy), KeyRing.load()).run(dry=dry_run)
    done = "would be queued again" if dry_run else "queued again"
    text = f"{found.pointers:,} dead letters: {found.ready:,} {done}, {found.still:,} still do not fit"
    rest = f"{found.partly:,} published in other views, {found.settled:,} settled, {found.gone:,} gone from the source"
    answer(as_json(found) if json else f"{text}, {rest}")
