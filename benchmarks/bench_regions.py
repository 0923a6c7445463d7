"""What the repartition step costs and gains on a real broker: 1, 4 and 16 partitions, with regions and without.

``make bench BENCH=regions``. CPU seconds of this process (client and worker); the withheld share of z-anonymity and the
loss of batches beside it. Goals: at 16 partitions at most 1.1 times what one withholds and loses, and records per CPU
second at least 0.6 of what one stage does with as many partitions. Of z-anonymity, one stage withholds most of 16
partitions, and what is not written costs nothing: so it also runs with a smaller z, with which it releases as much as
regions do. There are as many regions as partitions, as the page says; and 16 regions of one and of four partitions show
what more regions than that cost: batches become small.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from typing import Any

import msgspec
from confluent_kafka import Consumer, TopicPartition

from benchmarks.kafka_bench import KEYS, Bench, running_bench
from scripts.kafka.broker import available
from shoal.connect.kafka import produce
from shoal.policy.load import load
from shoal.runtime.kafka.regions.stages import worker_of

RECORDS = int(os.environ.get("SHOAL_BENCH_RECORDS", "1000000"))
POLICY = """
dataset: visits
source: {use: kafka, topic: TOPIC, properties: admin.properties}
columns:
  time: {role: time}
  number: {role: plain, type: int}
  client: {role: subject, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  domain: {role: quasi, type: str, hierarchy: {use: path, depth: 2}}
views:
"""
Z = 20
ALIKE = {4: 5, 16: 2}  # z with which partitions by themselves release what one of z = 20 does
VIEWS = {
    "market": """
  market:
    show: [number, domain]
    promises: [{use: z-anonymity, z: ZZ, window: 60s}]
    method: z-anonymity
""",
    "research": """
  research:
    show: [number, age, domain]
    promises: [{use: k-anonymity, k: 5}]
    method: {use: batches, delay: 200}
""",
}


def visits(count: int) -> tuple[list[bytes], list[int]]:
    chance, out, people = random.Random(1), [], []
    for number in range(count):
        people.append(chance.randrange(3000))
        domain = f"d{chance.randrange(24)}.s{int(chance.paretovariate(0.6)) % 60}"
        row = {"time": 1000 + number / 100, "number": number, "client": f"p{people[-1]}"}
        out.append(msgspec.json.encode({**row, "age": people[-1] % 90, "domain": domain}))
    return out, people


def fill(bench: Bench, topic: str, values: list[bytes], people: list[int], partitions: int) -> None:
    from confluent_kafka import Producer

    writer = Producer({**bench.login, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    for at, value in enumerate(values):
        produce(writer, topic, value, None, people[at] % partitions)
    assert writer.flush(120) == 0


def drain(bench: Bench, topic: str) -> list[dict[str, Any]]:
    settings = {"group.id": "count", "enable.partition.eof": True, "isolation.level": "read_committed"}
    reader = Consumer({**bench.login, **settings, "auto.offset.reset": "earliest"})
    count = len(reader.list_topics(topic, timeout=30).topics[topic].partitions)
    reader.assign([TopicPartition(topic, p, 0) for p in range(count)])
    out, ended = [], set()
    while len(ended) < count:
        for message in reader.consume(5000, 0.5):
            if message.error() is None:
                out.append(msgspec.json.decode(message.value()))
            else:
                ended.add(message.partition())
    reader.close()
    return out


def loss(rows: list[dict[str, Any]]) -> float:
    total = 0.0
    for row in rows:
        ends = [0.0, 100.0] if row["age"] == "*" else [float(x) for x in str(row["age"]).strip("[]").split(",")]
        total += (ends[-1] - ends[0]) / 100 + (1.0 if row["domain"] == "*" else 0.0 if "." in row["domain"] else 0.5)
    return total / 2 / max(1, len(rows))


def one(
    bench: Bench, role: str, partitions: int, regions: int, data: tuple[list[bytes], list[int]], z: int = Z
) -> list[float]:
    topic = bench.topic(partitions)
    service = f"    service: {{repartition: {regions}}}\n" if regions else ""
    file = bench.policy(POLICY + VIEWS[role].replace("ZZ", str(z)) + service, topic)
    fill(bench, topic, *data, partitions)
    worker = worker_of(load(file), KEYS)
    now, count = worker.counters, len(data[0])

    def stop() -> bool:
        # by the worker's own counters: every other question would cost this process a login
        waits = now.held[role] if role == "research" else 0
        return now.read >= count and now.written[role] + now.withheld[role] + waits >= count

    before = time.process_time()
    worker.run(stop)
    used = time.process_time() - before
    rows = drain(bench, f"{topic}.{role}")
    while len(rows) < now.written[role]:  # a broker marks a transaction as committed a little later than it says so
        time.sleep(0.5)
        rows = drain(bench, f"{topic}.{role}")
    figure = 1 - len(rows) / len(data[0]) if role == "market" else loss(rows)
    return [len(data[0]) / used, figure, len(rows)]


def main() -> None:
    why = available()
    if why is not None:
        print(f"no Kafka benchmark: {why}")
        return
    before = os.getloadavg()
    data = visits(RECORDS)
    with running_bench() as bench:
        for role, what in (("market", "withheld share"), ("research", "loss")):
            one(bench, role, 1, 0, (data[0][:2000], data[1][:2000]))  # compiled code is loaded once
            print(f"\n{role}, {RECORDS:,} records", flush=True)
            base: list[float] = []
            alone: dict[int, float] = {}  # records/CPU s of as many partitions without regions
            alike = {p: one(bench, role, p, 0, data, z) for p, z in ALIKE.items()} if role == "market" else {}
            for partitions, (rate, figure, count) in alike.items():
                print(
                    f"{partitions:3} partitions, no regions, z = {ALIKE[partitions]}: {rate:9,.0f} records/CPU s, "
                    f"{what} {figure:.4f}, {count:,.0f} released",
                    flush=True,
                )
            for partitions, regions in ((1, 0), (4, 0), (16, 0), (1, 1), (4, 4), (16, 16), (1, 16), (4, 16)):
                now = one(bench, role, partitions, regions, data)
                base = base or now
                same = now[0] / alone.setdefault(partitions, now[0])
                ratio = f"{now[0] / base[0]:.2f} of one partition, {same:.2f} of as many"
                if regions and partitions in alike:
                    ratio += f", {now[0] / alike[partitions][0]:.2f} of as many that release as much"
                print(
                    f"{partitions:3} partitions, {regions:2} regions: {now[0]:9,.0f} records/CPU s ({ratio}), "
                    f"{what} {now[1]:.4f} ({now[1] / base[1]:.2f}), {now[2]:,.0f} released",
                    flush=True,
                )
    print(f"load of the machine before: {statistics.mean(before):.1f}, after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
