"""Role views on a real broker: one worker beside the same client passing bytes on, and beside Kafka's own tools.

CPU seconds are this process's (all threads of the client library included); the broker shares the machine and is not
counted. ``python -m benchmarks.bench_kafka``; SHOAL_BENCH_RECORDS changes the 500,000 records: of 200,000, a quarter of
the time would be a worker's start.
"""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, Producer, TopicPartition

from benchmarks import table
from benchmarks.kafka_bench import (
    COLUMNS,
    DIVERSE,
    KEYS,
    OWN,
    RESEARCH,
    SECRET,
    VIEW,
    VISITS,
    WINDOWS,
    Bench,
    patients,
    running_bench,
    timed,
)
from benchmarks.kafka_recovery import restore, stall, state
from scripts.kafka.broker import ROOT, available
from shoal import api
from shoal.datasets.streams import stream
from shoal.policy.load import load
from shoal.runtime.kafka.serve.transactions import LINGER
from shoal.runtime.kafka.serve.worker import Worker
from shoal.runtime.kafka.tools.send import lines
from shoal.runtime.kafka.tools.watch import Watch

ASKED = {"1 view": 0.78, "3 views alike": 0.4, "3 views, each its own": 0.4, "means of 100 records": 0.5}
ASKED["batches, k=5 l=2"] = 0.4
RECORDS = int(os.environ.get("SHOAL_BENCH_RECORDS", "500000"))
COMMIT = 0.5


def pass_through(bench: Bench, topic: str, count: int, linger: int = 5) -> None:
    """Peer (a): the same client, consuming and producing bytes untouched, offsets in the transaction.

    With a ``linger`` of a few milliseconds, which people take for small delays, the client spends two fifths of its CPU
    time on asking whether it is over; with the worker's own it is as cheap as it can be.
    """
    out = bench.topic()
    settings = {"group.id": f"peer-{out}", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    reader = Consumer({**bench.login, **settings, "isolation.level": "read_committed"})
    writer = Producer({**bench.login, "transactional.id": out, "linger.ms": linger})
    writer.init_transactions(30)
    reader.subscribe([topic])
    done, last, open_ = 0, time.monotonic(), False
    while done < count:
        messages = [m for m in reader.consume(1000, 0.2) if m.error() is None]
        if messages and not open_:
            writer.begin_transaction()
            open_ = True
        for message in messages:
            while True:
                try:
                    writer.produce(out, message.value(), partition=0)
                    break
                except BufferError:
                    writer.poll(0.1)
        done += len(messages)
        if open_ and (time.monotonic() - last >= COMMIT or done >= count):
            place = TopicPartition(topic, 0, messages[-1].offset() + 1) if messages else None
            writer.send_offsets_to_transaction([place] if place else [], reader.consumer_group_metadata(), 30)
            writer.commit_transaction(30)
            open_, last = False, time.monotonic()
    reader.close()


def serve(file: Path, count: int) -> None:
    worker = Worker(load(file), KEYS, commit_every=COMMIT)
    worker.run(lambda: worker.counters.read >= count)


def throughput(bench: Bench) -> float:
    """One worker, views of several kinds, beside (a) and (b). Answers its records a second (wall) with one view."""
    records = patients(RECORDS)
    best: dict[str, tuple[float, float]] = {}
    kinds = {
        "1 view": VIEW.replace("ROLE", "ward"),
        "3 views alike": "".join(VIEW.replace("ROLE", f"role{n}") for n in range(3)),
        "3 views, each its own": OWN,
        "means of 100 records": WINDOWS,
        "batches, k=5 l=2": DIVERSE,
    }
    ratios: dict[str, list[tuple[float, float, float]]] = {name: [] for name in kinds}
    for _ in range(3):
        for name in kinds:
            topic = bench.topic()
            bench.fill(topic, records)
            file = bench.policy(COLUMNS + kinds[name], topic)
            # one right after the other: on a busy machine the same work may cost twice as much a minute later
            base = timed(lambda topic=topic: pass_through(bench, topic, RECORDS))  # type: ignore[misc]
            found = timed(lambda file=file: serve(file, RECORDS))  # type: ignore[misc]
            same = timed(lambda topic=topic: pass_through(bench, topic, RECORDS, LINGER))  # type: ignore[misc]
            ratios[name].append((base[0] / found[0], same[0] / found[0], base[1] / found[1]))
            best[name] = min(best.get(name, found), found)
            best["untouched"] = min(best.get("untouched", base), base)
            best["untouched, the worker's settings"] = min(best.get("untouched, the worker's settings", same), same)
    middle = {name: tuple(map(statistics.median, zip(*pairs, strict=True))) for name, pairs in ratios.items()}
    rows = [
        [
            name,
            1e6 * used / RECORDS,
            RECORDS / used,
            RECORDS / wall,
            *middle.get(name, ("", "", "")),
            ASKED.get(name, ""),
        ]
        for name, (used, wall) in best.items()
    ]
    table(
        f"One worker, {RECORDS:,} records, a plain view has five masks; ratio to the same client untouched, right "
        "before and after, the median of three",
        [
            "",
            "CPU µs/record",
            "records/CPU s",
            "records/s",
            "ratio of CPU",
            "by its settings",
            "ratio of wall",
            "asked",
        ],
        rows,
    )
    tools(bench, len(records[0]), best)
    return RECORDS / best["1 view"][1]


def tools(bench: Bench, size: int, best: dict[str, tuple[float, float]]) -> None:
    """Peer (b): Kafka's own ProducerPerformance and ConsumerPerformance on the same broker."""
    java = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{ROOT}/.cache/kafka/lib/*"]
    config = bench.folder / "java.properties"
    jaas = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    login = bench.login
    config.write_text(
        f"bootstrap.servers={login['bootstrap.servers']}\nsecurity.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism=SCRAM-SHA-256\nacks=all\n"
        f'sasl.jaas.config={jaas} username="{login["sasl.username"]}" password="{login["sasl.password"]}";\n'
    )
    topic = bench.topic()
    package = "org.apache.kafka.tools"
    words = ["--topic", topic, "--num-records", str(RECORDS), "--record-size", str(size), "--throughput", "-1"]
    made, used = child([*java, f"{package}.ProducerPerformance", *words, "--producer.config", str(config)])
    sent = float(re.findall(r"([\d.]+) records/sec", made)[-1])
    words = ["--bootstrap-server", login["bootstrap.servers"], "--topic", topic, "--messages", str(RECORDS)]
    read, used_too = child([*java, f"{package}.ConsumerPerformance", *words, "--consumer.config", str(config)])
    rate = float(read.strip().splitlines()[-1].split(",")[5]) or float("nan")  # a busy broker gave it nothing in time
    ours = RECORDS / best["1 view"][1]
    table(
        "The same broker under Kafka's own tools (both: CPU of the whole JVM, its start included)",
        ["", "records/s", "CPU s", "1 view / this"],
        [
            ["ProducerPerformance, acks=all", sent, used, ours / sent],
            ["ConsumerPerformance", rate, used_too, ours / rate],
            ["both in turn", 1 / (1 / sent + 1 / rate), used + used_too, ours * (1 / sent + 1 / rate)],
        ],
    )


def child(words: list[str]) -> tuple[str, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(done.stderr[-500:])
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def latency(bench: Bench, rates: list[float], seconds: float = 15.0) -> None:
    """From sending to reading, at a small load and at half load, through the worker and straight from the source."""
    rows: list[list[Any]] = []
    topic, plain = bench.topic(), bench.topic()
    file = bench.policy(COLUMNS + VIEW.replace("ROLE", "ward"), topic)
    words = [sys.executable, "-m", "shoal", "serve", "run", str(file), "--commit-every", str(COMMIT)]
    for rate in rates:
        straight = percentiles(bench, plain, plain, rate, seconds)
        process = subprocess.Popen(words, env={**os.environ, "SHOAL_KEY": SECRET}, stderr=subprocess.DEVNULL)
        try:
            bench.fill(topic, patients(100))
            time.sleep(8)  # until the worker has joined its group
            through = percentiles(bench, topic, f"{topic}.ward", rate, seconds)
        finally:
            process.terminate()
            process.wait(60)
        rows.append([f"{rate:,.0f}/s, plain Kafka", *straight, ""])
        rows.append([f"{rate:,.0f}/s, a view", *through, through[3] - straight[3]])
    table(
        f"Latency in ms, commit every {COMMIT * 1000:.0f} ms; goal for p99: {COMMIT * 1000 + 50:.0f} ms more, at most",
        ["", "records", "p50", "p95", "p99", "max", "p99 added"],
        rows,
    )


def percentiles(bench: Bench, source: str, view: str, rate: float, seconds: float) -> list[float]:
    records = [r[:-2] for r in patients(5_000)]  # without the time of sending
    total = int(rate * seconds)
    settings = {"group.id": f"bench-{uuid.uuid4().hex}", "isolation.level": "read_committed"}
    reader = Consumer({**bench.login, **settings, "fetch.wait.max.ms": 20})
    reader.assign([TopicPartition(view, 0, OFFSET_END)])
    reader.consume(1, 2.0)

    def send() -> None:
        writer = Producer({**bench.login, "linger.ms": 5})
        start, sent = time.monotonic(), 0
        while sent < total:
            due = min(total, int((time.monotonic() - start) * rate))
            stamp = b"%d}" % (time.time_ns() // 1000)
            for number in range(sent, due):
                writer.produce(source, records[number % len(records)] + stamp, partition=0)
            sent = due
            writer.poll(0.005)
        writer.flush(30)

    sender = threading.Thread(target=send)
    sender.start()
    late: list[float] = []
    end = time.monotonic() + seconds + 30
    while len(late) < total and time.monotonic() < end:
        messages = reader.consume(2000, 0.02)
        now = time.time_ns() // 1000
        late += [(now - msgspec.json.decode(m.value())["sent"]) / 1000 for m in messages if m.error() is None]
    sender.join()
    reader.close()
    settled = late[len(late) // 10 :]  # the first tenth warms up
    return [len(late), *map(float, np.percentile(settled, [50, 95, 99, 100]))]


def visits(bench: Bench) -> None:
    """A z-anonymity worker: events per CPU second (goal 100,000)."""
    frame = stream("domains", RECORDS / 11_000_000, seed=2)
    records = lines(frame)
    rates, base = [], float("inf")
    for _ in range(2):
        topic = bench.topic()
        bench.fill(topic, records)
        base = min(base, timed(lambda topic=topic: pass_through(bench, topic, len(records)))[0])  # type: ignore[misc]
        file = bench.policy(VISITS, topic)
        used, wall = timed(lambda file=file: serve(file, len(records)))  # type: ignore[misc]
        rates.append([len(records) / used, len(records) / wall, 1e6 * used / len(records), base / used])
    table(
        f"A z-anonymity worker (z=20, 1 h, generalizing), {len(records):,} events; goal 100,000 per CPU s, ratio 1",
        ["", "events/CPU s", "events/s", "CPU µs/event", "ratio of CPU to untouched"],
        [[f"run {at}", *row] for at, row in enumerate(rates, 1)],
    )


def scaling(bench: Bench) -> None:
    """One, two and four workers on four partitions: time until all is committed; every record once."""
    rows: list[list[Any]] = []
    records = patients(RECORDS)
    for workers in (1, 2, 4):
        topic = bench.topic(4)
        file = bench.policy(COLUMNS + VIEW.replace("ROLE", "ward") + RESEARCH, topic)
        words = [sys.executable, "-m", "shoal", "serve", "run", str(file), "--commit-every", str(COMMIT)]
        env = {**os.environ, "SHOAL_KEY": SECRET}
        bench.fill(topic, records[:400], 4)
        running = [subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL) for _ in range(workers)]
        try:
            until(lambda topic=topic: reached(bench, topic) >= 400)  # type: ignore[misc]
            time.sleep(6)  # until the group has settled
            bench.fill(topic, records, 4)
            start = time.perf_counter()
            before = reached(bench, topic)
            until(lambda topic=topic: reached(bench, topic) >= RECORDS + 400)  # type: ignore[misc]
            wall = time.perf_counter() - start
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait(60)
        once = whole(bench, f"{topic}.ward", RECORDS + 400)
        rows.append([workers, (RECORDS + 400 - before) / wall, once, judged(bench, file)])
    for row in rows:
        row.append(row[1] / rows[0][1])
    table(
        "Workers on four partitions, a view with five masks and one with k=5; two cores that the broker shares",
        ["workers", "records/s", "every record once", "k over all partitions, verified", "to one worker"],
        rows,
    )


def judged(bench: Bench, file: Path) -> str:
    """The verifier over everything the research view published, whichever worker did."""
    loaded = load(file)

    def judge(frame: Any) -> Any:
        return api.verify(frame, quasi=["age", "sex"], promises=loaded.views["research"].promises).findings

    seen = Watch(loaded, "research", bench.login, judge=judge).run(to_end=True)
    return f"{'kept' if seen.kept else 'BROKEN'}, {seen.records:,} records"


def reached(bench: Bench, topic: str) -> int:
    reader = Consumer({**bench.login, "group.id": f"shoal-{topic}"})
    places = reader.committed([TopicPartition(topic, p) for p in range(4)], timeout=30)
    reader.close()
    return sum(max(0, p.offset) for p in places)


def whole(bench: Bench, topic: str, count: int) -> str:
    settings = {"group.id": "count", "enable.partition.eof": True, "isolation.level": "read_committed"}
    reader = Consumer({**bench.login, **settings})
    reader.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(4)])
    seen, ended = 0, set()
    while len(ended) < 4:
        for message in reader.consume(5000, 0.5):
            if message.error() is None:
                seen += 1
            else:
                ended.add(message.partition())
    reader.close()
    return "yes" if seen == count else f"{seen:,} of {count:,}"


def until(done: Callable[[], bool], seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise TimeoutError("it did not happen in time")
        time.sleep(0.1)


def main() -> None:
    why = available()
    if why is not None:
        print(f"no Kafka benchmark: {why}")
        return
    chosen = sys.argv[1:] or ["throughput", "latency", "visits", "restore", "state", "stall", "scaling"]
    load_before = os.getloadavg()
    with running_bench() as bench:
        rate = throughput(bench) if "throughput" in chosen else 40_000.0
        if "visits" in chosen:
            visits(bench)
        if "restore" in chosen:
            restore(bench)
        if "state" in chosen:
            state(bench)
        if "stall" in chosen:
            stall(bench)
        if "latency" in chosen:
            latency(bench, [2_000.0, min(rate / 2, 20_000.0)])
        if "scaling" in chosen:
            scaling(bench)
    print(f"load of the machine before: {statistics.mean(load_before):.1f}, after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
