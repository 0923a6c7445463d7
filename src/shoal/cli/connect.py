"""``shoal connect``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from shoal.cli.options import only_with
from shoal.cli.terminal import Whole, say

app = App(name="connect", help="Files into a topic, and a topic into Parquet: each record once, also after a kill.")


@app.command
def load(
    path: str,
    *,
    topic: str,
    properties: str | None = None,
    brokers: str | None = None,
    policy: str | None = None,
) -> None:
    """Send a file, or every file of a folder, to a topic. Run it again and it goes on where it stopped.

    The position commits in the transaction of its records, so a killed run loses and repeats nothing. NDJSON is read
    line by line, CSV and Parquet as a whole.

    Example: `shoal connect load patients/ --topic patients --properties admin.properties`.

    Parameters
    ----------
    path
        CSV, Parquet or NDJSON (CSV and NDJSON also with .gz), or a folder of them.
    topic
        The topic, which must exist.
    properties
        A file of client properties.
    brokers
        Where the brokers are; this counts if the properties say it, too.
    policy
        A policy whose column types CSV is read by.
    """
    from pathlib import Path

    from shoal.cli.clients import client, until_asked
    from shoal.policy.load import load as load_policy
    from shoal.runtime.kafka.tools.feed import Feeder

    types = load_policy(policy).types() if policy else None
    sent = Feeder(client(properties, brokers), topic, types=types).run(Path(path), until_asked())
    say(f"{sent:,} records sent to {topic}")


@app.command
def save(
    folder: str,
    *,
    topic: str,
    properties: str | None = None,
    brokers: str | None = None,
    group: str = "shoal-connect",
    rows: Whole = 100_000,
    every: float | None = None,
    follow: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Write a topic as Parquet files into a folder. Run it again and it goes on where it stopped.

    A file's name says which offsets it holds; files appear when they are whole. So the folder is the position.

    Example: `shoal connect save nurse/ --topic patients.nurse --properties ward1.properties --group nurse.files`.

    Parameters
    ----------
    folder
        Where the files go.
    topic
        The topic, a view for example.
    properties
        A file of client properties.
    brokers
        Where the brokers are; this counts if the properties say it, too.
    group
        A consumer group; a role may only use names that begin with its own, like `nurse.files`.
    rows
        A file is closed when it has this many rows.
    every
        With --follow: seconds between two files; 30 if not given.
    follow
        Go on at the end, until stopped.
    """
    from pathlib import Path

    from shoal.cli.clients import client, until_asked
    from shoal.runtime.kafka.tools.collect import Collector

    only_with(follow, "--follow", every=every)
    collector = Collector(client(properties, brokers), topic, Path(folder), group=group, rows=rows)
    written = collector.run(follow=follow, every=30.0 if every is None else every, stop=until_asked())
    say(f"{written:,} records written to {folder}")
