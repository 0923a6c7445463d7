"""What the adversary and the check beside a stream cost, in CPU seconds of the release they belong to.

``python -m benchmarks.bench_trust [tables streams]``: both without words. At most 20 % are asked for on Adult
(30,162 rows) and on one million events.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

import shoal
from benchmarks import data, table
from shoal.core.schema import Column, Schema
from shoal.promises.z_anonymity import ZAnonymity
from shoal.release.adversary import Adversary
from shoal.release.stream import LocalRunner, StreamJob
from shoal.streams import STREAM_METHODS

EVENTS = 1_000_000
MOST = 20.0  # per cent


@contextmanager
def timed(owner: Any, names: list[str]) -> Iterator[list[float]]:
    """CPU seconds spent in methods of a class, while the block runs."""
    spent, before = [0.0], {name: getattr(owner, name) for name in names}

    def wrapped(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return plain(*given, **named)
            finally:
                spent[0] += time.process_time() - began

        return call

    for name, plain in before.items():
        setattr(owner, name, wrapped(plain))
    try:
        yield spent
    finally:
        for name, plain in before.items():
            setattr(owner, name, plain)


def released(title: str, frame: pl.DataFrame, **given: Any) -> list[Any]:
    """A line: the release, the adversary in it, its share."""
    shoal.anonymize(frame.head(2000), **given)  # compiles
    with timed(Adversary, ["demand", "demand_beside", "together"]) as spent:
        began = time.process_time()
        shoal.anonymize(frame, **given)
        whole = time.process_time() - began
    return [title, frame.height, whole, spent[0], 100 * spent[0] / whole, MOST]


def tables() -> None:
    """Adult with plain columns, with rows that belong to people, and a million events as a table."""
    adult = data.adult()
    quasi = ["age", "workclass", "education", "marital-status", "race", "sex"]
    quasi = [name for name in quasi if name in adult.columns]
    plain = [name for name in adult.columns if name not in quasi and name != "occupation"][:3]
    given: dict[str, Any] = {"quasi": quasi, "sensitive": ["occupation"], "k": 5}
    people = adult.with_columns(who=pl.int_range(pl.len()) // 2)
    rng = np.random.default_rng(1)
    events = pl.DataFrame(
        {
            "who": rng.integers(0, 250_000, EVENTS),
            "age": rng.integers(18, 90, EVENTS),
            "place": rng.integers(0, 200, EVENTS),
            "what": rng.integers(0, 30, EVENTS),
            "note": rng.integers(0, 1000, EVENTS),
        }
    )
    waive = ["linked-rows", "unique-plain"]
    rows = [
        released("Adult, local", adult, plain=plain, waive=waive, **given),
        released("Adult, mondrian", adult, plain=plain, waive=waive, method="mondrian", **given),
        released("Adult, two rows each", people, plain=plain, subject="who", waive=waive, method="mondrian", **given),
        released(
            "events, mondrian", events, subject="who", quasi=["age", "place"], sensitive=["what"], plain=["note"], k=5,
            method="mondrian", waive=waive,
        ),
    ]  # fmt: skip
    table("The adversary", ["release", "rows", "CPU s", "adversary CPU s", "%", "asked %"], rows)


def streams() -> None:
    """A million events of z-anonymity and of batches, with a share judged beside the run."""
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "time": np.arange(EVENTS) // 200,
            "who": rng.integers(0, 20_000, EVENTS).astype(str),
            "page": (rng.zipf(1.3, EVENTS) % 5000).astype(str),
        }
    )
    schema = Schema({"time": Column("time"), "who": Column("subject"), "page": Column("quasi")})
    method: Any = STREAM_METHODS.decode({"use": "z-anonymity"})
    job = StreamJob(schema=schema, promises=(ZAnonymity(10, "10m"),), method=method)
    rows, alone = [], 0.0
    for share in (None, 0.01, 0.1, 1.0):
        runner = LocalRunner(job, bytes(32), lambda part: None, verify=share)
        began = time.process_time()
        for part in frame.iter_slices(10_000):
            runner.feed(part)
        runner.finish()
        seconds = time.process_time() - began
        alone = alone or seconds
        rows.append(["none" if share is None else share, EVENTS, seconds, 100 * (seconds - alone) / alone])
    table("z-anonymity, judged beside the run", ["share", "events", "CPU s", "more %"], rows)


if __name__ == "__main__":
    for name in sys.argv[1:] or ["tables", "streams"]:
        {"tables": tables, "streams": streams}[name]()
