"""Recovery of role views, measured: taking over by partitions and by size of state, and how long a role waits."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

import msgspec
import numpy as np
import polars as pl
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from benchmarks import table
from benchmarks.kafka_bench import COLUMNS, KEYS, RESEARCH, SECRET, VIEW, VISITS, Bench, patients, timed
from shoal.connect.kafka import internal
from shoal.policy.load import load
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.output import Disguise
from shoal.runtime.kafka.serve.stateful import KEY, OFFSET, MethodRunner
from shoal.runtime.kafka.serve.worker import Worker
from shoal.runtime.kafka.state.changelog import VERSION, Changelog, Position, Seal, Snapshot, key_of, name_of, pieces_of

COMMIT = 0.5
SESSION = 6.0
EVENTS = int(os.environ.get("SHOAL_BENCH_STATE", "4000000"))


class KilledError(Exception):
    """Ends a worker without a last word."""


def restore(bench: Bench) -> None:
    """How long a worker needs to take over from a killed one, by partitions: all state read, all input replayed."""
    rows: list[list[Any]] = []
    for partitions in (6, 36, 144):
        count, topic = 200 * partitions, bench.topic(partitions)
        records = patients(count)
        file = bench.policy(COLUMNS + RESEARCH, topic)
        for part in (records[: count // 2], records[count // 2 :]):
            bench.fill(topic, part, partitions)
            worker = Worker(load(file), KEYS, commit_every=COMMIT)

            def killed(worker: Worker = worker, part: int = len(part)) -> bool:
                now = worker.counters
                if now.read >= part and now.commits and not sum(now.lag.values()):
                    raise KilledError
                return False

            with contextlib.suppress(KilledError):
                worker.run(killed)
        worker = Worker(load(file), KEYS, commit_every=COMMIT)
        used, _ = timed(lambda worker=worker: worker.run(lambda: not worker.counters.restoring))  # type: ignore[misc]
        rows.append([partitions, worker.counters.restore_seconds, used, worker.counters.replayed])
    table(
        "A worker that takes over all partitions from a killed one, a view with k=5",
        ["partitions", "restore, s", "CPU s of the start", "records read again"],
        rows,
    )


def state(bench: Bench) -> None:
    """The state of a z-anonymity view on its changelog: read, opened, put together, at work again (goal: 2 CPU s)."""
    topic = bench.topic()
    policy = load(bench.policy(VISITS, topic))
    disguise, seal, rows = Disguise(policy.views["market"], topic, 1, KEYS), Seal(KEYS), []
    for which, events in enumerate((EVENTS // 8, EVENTS * 3 // 8)):
        runner = stateful.start(policy, "market", 0, KEYS, disguise, None)
        assert isinstance(runner, MethodRunner)
        for start in range(0, events, 500_000):
            number = np.arange(start, min(start + 500_000, events))
            texts = pl.Series(number.astype(str))
            frame = pl.DataFrame({"time": number / 2000.0, "subject": "u" + texts, "value": "v" + texts})
            carried = [
                pl.Series(OFFSET, number),
                pl.Series(KEY, [None], dtype=pl.String).new_from_index(0, len(number)),
            ]
            runner._runner.feed(frame.with_columns(pl.col("time").cast(pl.String), *carried))
        taken = Snapshot(VERSION, events, 0, runner.snapshot())
        view = f"market{which}"
        at = key_of(view, "position"), msgspec.msgpack.encode(Position(events, 0, 0))
        writer = Producer({**bench.login, "linger.ms": 5})
        for key, value in (*pieces_of(view, name_of(view, taken), taken), at):
            writer.produce(internal(topic, "changelog"), seal.close(value, key, 0), key, 0)
        assert writer.flush(120) == 0

        def taken_over(view: str = view) -> None:
            changelog = Changelog({**bench.login, "log_level": 0}, internal(topic, "changelog"), KEYS)
            found = changelog.read({0: ""}, [view])[0][view].snapshot
            assert found is not None
            stateful.start(policy, "market", 0, KEYS, disguise, found.data)

        used = min(timed(taken_over)[0] for _ in range(3))
        rows.append([events, len(taken.data) / 1e6, used, used / (len(taken.data) / 80e6)])
    table(
        "A z-anonymity state taken over from its changelog; goal 2 CPU s for 80 MB",
        ["events", "MB", "CPU s", "CPU s for 80 MB"],
        rows,
    )


def stall(bench: Bench) -> None:
    """How long nothing of a partition comes after one of two workers leaves, or is killed (3 s, session + 3 s)."""
    rows: list[list[Any]] = []
    topic = bench.topic(4)
    file = bench.policy(COLUMNS + VIEW.replace("ROLE", "ward") + RESEARCH, topic)
    words = [sys.executable, "-m", "shoal", "serve", "run", str(file), "--commit-every", str(COMMIT)]
    env = {**os.environ, "SHOAL_KEY": SECRET}
    records = patients(2000)
    for how, goal in ((signal.SIGTERM, 3.0), (signal.SIGKILL, SESSION + 3.0)):
        team = [
            subprocess.Popen([*words, "--session", str(SESSION)], env=env, stderr=subprocess.DEVNULL) for _ in range(2)
        ]
        sending, seen = threading.Event(), {p: [time.monotonic()] for p in range(4)}
        sender = threading.Thread(target=_steadily, args=(bench, topic, records, sending))
        sender.start()
        reader = Consumer({**bench.login, "group.id": f"bench-{uuid.uuid4().hex}", "isolation.level": "read_committed"})
        reader.assign([TopicPartition(f"{topic}.ward", p, OFFSET_END) for p in range(4)])
        try:
            _watch(reader, seen, 20.0)
            team[0].send_signal(how)
            begun = time.monotonic()
            _watch(reader, seen, 25.0)
        finally:
            sending.set()
            sender.join()
            reader.close()
            for process in team:
                process.terminate()
            for process in team:
                process.wait(60)
        after = [[begun, *(at for at in times if at >= begun)] for times in seen.values()]
        longest = max(float(np.diff(times).max()) if len(times) > 1 else 25.0 for times in after)
        rows.append([how.name, longest, goal])
    table(
        f"One of two workers goes, session {SESSION:.0f} s: the longest silence of any partition of the source (wall)",
        ["", "seconds", "goal"],
        rows,
    )


def _steadily(bench: Bench, topic: str, records: list[bytes], enough: threading.Event) -> None:
    """A hundred records a second on each of four partitions."""
    writer, at = Producer({**bench.login, "linger.ms": 5}), 0
    while not enough.is_set():
        for partition in range(4):
            # a view's partition draws from all of the source: the record says where it came from
            writer.produce(topic, records[at % len(records)][:-2] + b"%d}" % partition, partition=partition)
            at += 1
        writer.poll(0.01)
    writer.flush(30)


def _watch(reader: Consumer, seen: dict[int, list[float]], seconds: float) -> None:
    """When records come, by their partition of the source."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for message in reader.consume(1000, 0.05):
            if message.error() is None:
                seen[msgspec.json.decode(message.value())["sent"]].append(time.monotonic())
