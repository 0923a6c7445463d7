"""Role views, measured (Allgöwer 2023, chapter 5): throughput, waiting and loss by scope, window size, k and delay.

Its scopes are: a value, a tuple, a window of tuples, a table. Everything is measured on one age and one
glucose column of invented patients, without a broker: what the broker adds is in ``benchmarks/bench_kafka.py``.

*Loss* is the uncertainty left about the number, as a share of its range: the width of a published interval; twice the
distance for a number that was moved; 1 for what is withheld or replaced. *Waiting* is counted in records that come
before one is published.
"""

from __future__ import annotations

import io
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from shoal.core.keys import KeyRing
from shoal.core.schema import Schema
from shoal.datasets.hospital import hospital
from shoal.datasets.streams import stream
from shoal.experiments.progress import say
from shoal.policy.document import Policy
from shoal.policy.load import parse
from shoal.report.chart import Axis, Lines, Series, draw, write
from shoal.streams.base import Batch, StreamMethod
from shoal.streams.z_stream import z_anonymity
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView
from shoal.views.windows import WindowGate

RECORDS = 20_000
WINDOWS = (10, 30, 100, 300, 1000)
KS = (2, 5, 10, 20)
DELAYS = (50, 100, 200, 500, 1000)
PARTITIONS = (1, 2, 4, 8, 16)
LOW, HIGH = 0, 120
KEY = bytes(range(32))

POLICY = """
dataset: patients
columns:
  pid:  {{role: subject, type: int}}
  age:  {{role: quasi, type: int, hierarchy: {{use: range, min: 0, max: 120}}}}
  sex:  {{role: quasi, type: str, hierarchy: suppress}}
  diag: {{role: sensitive, type: str}}
views:
  role:
    show: [pid, age, diag]
{rest}
"""


def run(out: Path, shared: Path | None = None) -> pl.DataFrame:
    """Three tables (scopes, table methods, partitions) and their pictures, into ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    frame = hospital(RECORDS, seed=3, visits=1.5).select("pid", "age", "sex", "diag")
    say("[1/3] masks by scope and window …")
    scopes = pl.DataFrame([*_values(frame), *_windows(frame)], infer_schema_length=None)
    scopes.write_csv(out / "scopes.csv")
    say("[2/3] tables by k and delay …")
    tables = pl.DataFrame(_tables(frame))
    tables.write_csv(out / "tables.csv")
    say("[3/3] partitions …")
    partitions = pl.DataFrame([*_partitioned_k(frame), *_partitioned_z()])
    partitions.write_csv(out / "partitions.csv")
    for chart in (*_window_charts(scopes), *_table_charts(tables), *_partition_charts(partitions)):
        write(draw(chart), out / f"{chart.name}.svg")
    return pl.concat([scopes, tables.select(pl.col(c) for c in scopes.columns if c in tables.columns)], how="diagonal")


def _policy(rest: str) -> Policy:
    return parse(POLICY.format(rest=rest), "views.yaml")


def _records(frame: pl.DataFrame) -> list[bytes]:
    text = io.BytesIO()
    frame.write_ndjson(text)
    return text.getvalue().splitlines()


def _row(scope: str, mask: str, size: int, seconds: float, waits: Iterable[float], losses: Iterable[float]) -> Any:
    waited, lost = np.asarray(list(waits), float), np.asarray(list(losses), float)
    return {
        "scope": scope,
        "mask": mask,
        "size": size,
        "records_per_cpu_second": RECORDS / max(seconds, 1e-9),
        "wait_mean": float(waited.mean()) if len(waited) else 0.0,
        "wait_p99": float(np.percentile(waited, 99)) if len(waited) else 0.0,
        "loss": float(lost.mean()),
    }


def _values(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Masks of a value and of a tuple: nothing waits."""
    masks = {
        ("value", "suppress"): "age: suppress",
        ("value", "bucket of 10"): "age: {use: bucket, width: 10}",
        ("value", "bucket of 30"): "age: {use: bucket, width: 30}",
        ("value", "noise"): "age: {use: noise, spread: 5}",
        ("tuple", "conditional"): "age: {use: conditional, when: {column: diag, equals: E10}, then: '*'}",
    }
    rows = []
    records, ages = _records(frame), frame["age"].to_list()
    for (scope, name), mask in masks.items():
        views = RecordGate([RoleView.of(_policy(f"    masks: {{{mask}}}"), "role")], _ring())
        views.many(records[:100])
        seconds, done = _timed(lambda views=views: views.many(records))  # type: ignore[misc]
        published = [msgspec.json.decode(r)["age"] for r in done.views[0]]
        losses = [_loss(p, age) for p, age in zip(published, ages, strict=True)]
        rows.append(_row(scope, name, 1, seconds, [0.0], losses))
    return rows


def _windows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Masks of a window: everybody waits for the window to end."""
    rows = []
    records, ages = _records(frame), frame["age"].to_list()
    for name, options in (("aggregate", "function: mean"), ("microaggregate", "k: 3"), ("shuffle", "k: 3")):
        for size in WINDOWS:
            mask = f"age: {{use: {name}, {options}, window: {{use: tumbling, size: {size}}}}}"
            view = WindowGate(RoleView.of(_policy(f"    masks: {{{mask}}}"), "role"), _ring())
            seconds, found = _timed(lambda view=view: _pushed(view, records))  # type: ignore[misc]
            waits = [at - o.number for at, o in found if o.record is not None]
            losses = [
                1.0 if o.record is None else _loss(msgspec.json.decode(o.record)["age"], ages[o.number])
                for _, o in found
            ]
            rows.append(_row("window", name, size, seconds, waits, losses))
    return rows


def _pushed(view: WindowGate, records: Sequence[bytes]) -> list[tuple[int, Any]]:
    found = [(at, outcome) for at, record in enumerate(records) for outcome in view.push(record)]
    return found + [(len(records), outcome) for outcome in view.flush()]


def _tables(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Methods of a table, on a stream: by k at one delay, and by delay at one k."""
    rows = []
    grid = [(k, 500) for k in KS] + [(5, d) for d in DELAYS if d != 500]
    for name in ("batches", "castle"):
        _release(frame.head(2000), name, 5, 100)  # what is compiled at its first use must not be timed
        for k, delay in grid:
            seconds, running = _timed(lambda: _release(frame, name, k, delay))  # noqa: B023
            figures, count = running.figures(), running.counters
            withheld = count["withheld"] / frame.height
            rows.append(
                {
                    "scope": "table",
                    "mask": name,
                    "size": delay,
                    "k": k,
                    "records_per_cpu_second": frame.height / max(seconds, 1e-9),
                    "wait_mean": float(figures["delay_mean"]),
                    "wait_most": float(figures["delay_most"]),
                    "loss": float(figures["loss"]) * (1 - withheld) + withheld,
                    "withheld": withheld,
                    "smallest": int(figures["smallest_group"]),
                }
            )
    return rows


def _release(frame: pl.DataFrame, name: str, k: int, delay: int) -> Any:
    policy = _policy(f"    promises: [{{use: k-anonymity, k: {k}}}]\n    method: {{use: {name}, delay: {delay}}}")
    view = policy.views["role"]
    assert isinstance(view.method, StreamMethod)
    running = view.method.start(Schema(policy.schema.columns), view.promises, key=KEY)
    shown = frame.select("age", "sex", "diag")
    for at in range(0, frame.height, 500):
        part = shown.slice(at, 500)
        times = np.arange(at, at + part.height)
        running.push(Batch(part, times, frame["pid"].slice(at, 500).cast(pl.String), at))
    running.flush()
    return running


def _partitioned_k(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Every partition keeps k by itself: what its crowd costs in loss."""
    rows = []
    for count in PARTITIONS:
        loss = withheld = 0.0
        for part in _sharded(frame, "pid", count):
            running = _release(part, "batches", 5, 500)
            gone = running.counters["withheld"]
            loss += float(running.figures()["loss"]) * (part.height - gone) + gone
            withheld += gone
        rows.append(_cost("k", "k=5, delay 500, keyed by person", count, loss / frame.height, withheld / frame.height))
    return rows


def _partitioned_z() -> list[dict[str, Any]]:
    """Every partition counts its own people: events keyed by person, and keyed by the value itself."""
    rows = []
    visits = stream("domains", RECORDS / 11_000_000 * 5, seed=3)
    for column, name in (("subject", "keyed by person"), ("value", "keyed by the value")):
        for count in PARTITIONS:
            lost = withheld = 0
            for part in _sharded(visits, column, count):
                made = z_anonymity(10, "1h", "path", key=KEY)
                made.push_many(part["time"], part["subject"], part["value"])
                withheld += made.counters["withheld"]
                lost += part.height - made.counters.get("level_0", 0)
            rows.append(_cost("z", f"z=10, 1 h, {name}", count, lost / visits.height, withheld / visits.height))
    return rows


def _cost(promise: str, setting: str, partitions: int, loss: float, withheld: float) -> dict[str, Any]:
    """For k the loss is as above; for z it is the share of events that are not released as they are."""
    return {"promise": promise, "setting": setting, "partitions": partitions, "loss": loss, "withheld": withheld}


def _sharded(frame: pl.DataFrame, column: str, count: int) -> list[pl.DataFrame]:
    """As a producer spreads records over partitions by their key; the same on every machine."""
    keys = frame[column].cast(pl.String).to_list()
    shard = pl.Series("shard", [zlib.crc32(k.encode()) % count for k in keys])
    return [frame.filter(shard == number) for number in range(count)]


def _loss(published: Any, true: int) -> float:
    """Uncertainty about a number, as a share of its range."""
    if isinstance(published, (int, float)):
        return min(1.0, 2 * abs(published - true) / (HIGH - LOW))
    if published is None or published == "*":
        return 1.0
    if published.lstrip("-").isdigit():
        return 0.0
    low, high = (float(p) for p in published.strip("[]()").split(","))
    return min(1.0, (high - low) / (HIGH - LOW))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def _ring() -> KeyRing:
    return KeyRing({"default": {1: KEY}})


def _lines(table: pl.DataFrame, by: str, x: str, y: str) -> list[Series]:
    return [
        Series(str(name), part[x].to_list(), part[y].to_list(), markers=True)
        for (name,), part in table.sort(x).group_by(by, maintain_order=True)
    ]


def _window_charts(scopes: pl.DataFrame) -> list[Lines]:
    rows = scopes.filter(pl.col("scope") == "window")
    size = Axis("records in a window", log=True)
    return [
        Lines(name="window-loss", title="Loss by window size", x=size, y=Axis("loss", form="percent", low=0),
              series=_lines(rows, "mask", "size", "loss")),
        Lines(name="window-wait", title="Waiting by window size", x=size, y=Axis("records waited, mean", log=True),
              series=_lines(rows, "mask", "size", "wait_mean")),
        Lines(name="window-speed", title="Throughput by window size", x=size, y=Axis("records per CPU second", low=0),
              series=_lines(rows, "mask", "size", "records_per_cpu_second")),
    ]  # fmt: skip


def _table_charts(tables: pl.DataFrame) -> list[Lines]:
    by_k, by_delay = tables.filter(pl.col("size") == 500), tables.filter(pl.col("k") == 5)
    loss, speed = Axis("loss", form="percent", low=0), Axis("records per CPU second", low=0)
    k, delay = Axis("k", form="whole"), Axis("delay in records", log=True)
    return [
        Lines(name="table-loss-k", title="Loss by k, delay 500", x=k, y=loss,
              series=_lines(by_k, "mask", "k", "loss")),
        Lines(name="table-loss-delay", title="Loss by delay, k = 5", x=delay, y=loss,
              series=_lines(by_delay, "mask", "size", "loss")),
        Lines(name="table-speed-delay", title="Throughput by delay, k = 5", x=delay, y=speed,
              series=_lines(by_delay, "mask", "size", "records_per_cpu_second")),
    ]  # fmt: skip


def _partition_charts(partitions: pl.DataFrame) -> list[Lines]:
    x = Axis("partitions", log=True, ticks=[(p, str(p)) for p in PARTITIONS])
    y = Axis("lost", form="percent", low=0)
    title = {"k": "Loss when each partition keeps k by itself", "z": "Events not released as they are, by partitions"}
    return [
        Lines(name=f"partitions-{promise}", title=title[promise], x=x, y=y,
              series=_lines(partitions.filter(pl.col("promise") == promise), "setting", "partitions", "loss"))
        for promise in ("k", "z")
    ]  # fmt: skip
