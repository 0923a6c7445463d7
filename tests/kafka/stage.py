"""A policy over a fresh topic on a real broker, and hands to work it: send, serve, kill, read everything."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from shoal.connect.kafka import READ_NOW
from shoal.core.keys import KeyRing
from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.regions.stages import Staged, worker_of
from shoal.runtime.kafka.regions.wish import routed
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.output import Disguise, Record
from shoal.runtime.kafka.serve.worker import Worker

NUMBER = itertools.count()
GUARD = 600.0  # seconds after which a test that hangs is given up: no measure of speed
OPEN = 2.0  # seconds until who asks where a group stands hears that a transaction is open: then we ask again
SECRET = "ab" * 32
KEYS = KeyRing({"default": {1: bytes.fromhex(SECRET)}})
WARD = """
dataset: patients
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  number: {role: plain, type: int}
  name: {role: identifier, type: str}
  diag: {role: sensitive, type: str}
views:
  ward: {show: [number, diag]}
"""  # one view that remembers nothing; more may be added at its end


def threads() -> int:
    """How many threads this process has, those of clients among them."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def drain(cluster: Any, topic: str, isolation: str = "read_committed") -> list[Any]:
    """Everything a topic holds; by default what was committed."""
    settings = {"group.id": "test", "enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0}
    reader = Consumer({**cluster.login(), **settings, **READ_NOW, "isolation.level": isolation})
    partitions = len(reader.list_topics(topic, timeout=30).topics[topic].partitions)
    if isolation == "read_committed":
        settle(cluster, topic, partitions)
    reader.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    out: list[Any] = []
    ended: set[int] = set()
    end = time.monotonic() + GUARD
    while len(ended) < partitions and time.monotonic() < end:
        for message in reader.consume(10_000, 0.1):
            if message.error() is None:
                out.append(message)
            else:
                ended.add(message.partition())
    reader.close()
    assert len(ended) == partitions
    return out


def settle(cluster: Any, topic: str, partitions: int) -> None:
    """Wait until no transaction is open: a commit is marked on its partitions a moment after it has happened."""
    admin = AdminClient(cluster.login())
    end = time.monotonic() + GUARD

    def ends(isolation: IsolationLevel) -> list[int]:
        asked = {TopicPartition(topic, p): OffsetSpec.latest() for p in range(partitions)}
        found = admin.list_offsets(asked, isolation_level=isolation, request_timeout=30)
        return [future.result().offset for future in found.values()]

    while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
        assert time.monotonic() < end, "a transaction stays open"
        time.sleep(0.1)


def undisturbed(stage: Stage, role: str) -> Counter[bytes]:
    """What one worker that nobody disturbs publishes of a view: the same view over the same partitions."""
    policy, order = load(stage.file), defaultdict(list)
    for m in stage.drain(stage.topic):
        order[m.partition()].append(Record(m.partition(), m.offset(), m.key(), m.value(), 0))
    out: Counter[bytes] = Counter()
    for partition, records in order.items():
        disguise = Disguise(policy.views[role], stage.topic, stage.partitions, KEYS)
        view = stateful.start(policy, role, partition, KEYS, disguise, None)
        for at in range(0, len(records), 7001):
            out.update(o.value for o in view.push(records[at : at + 7001])[0] if o.value is not None)
    return out


class Stage:
    """One source topic, one policy about it (``{topic}`` in its text is filled in), applied."""

    def __init__(
        self, cluster: Any, folder: Path, policy: str, partitions: int, only: str | None = None, **configs: str
    ) -> None:
        self.cluster, self.folder, self.partitions, self.only = cluster, folder, partitions, only
        self.topic = f"stage{next(NUMBER)}"
        self.admin = AdminClient(cluster.login())
        for future in self.admin.create_topics([NewTopic(self.topic, partitions, -1, config=configs)]).values():
            future.result(30)
        self.until(lambda: self.topic in self.admin.list_topics(timeout=30).topics)  # a busy broker shows it later
        (folder / "admin.properties").write_text("".join(f"{k}={v}\n" for k, v in cluster.login().items()))
        self.file = folder / f"{self.topic}.yaml"
        self.processes: list[subprocess.Popen[bytes]] = []
        self._readers: dict[str, Consumer] = {}
        self.write_policy(policy)
        self.apply()

    def write_policy(self, text: str) -> None:
        self.file.write_text(text.replace("{topic}", self.topic))

    def apply(self, **how: Any) -> None:
        service = Provisioner(load(self.file), only=self.only)
        service.apply(service.plan(), **how)

    def delete(self, topic: str) -> None:
        for future in self.admin.delete_topics([topic]).values():
            future.result(30)
        self.until(lambda: topic not in self.admin.list_topics(timeout=30).topics)

    def make(self, topic: str) -> None:
        """A topic of one partition."""
        for future in self.admin.create_topics([NewTopic(topic, 1, -1)]).values():
            future.result(30)
        self.until(lambda: topic in self.admin.list_topics(timeout=30).topics)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        self._hang_up()
        del self.admin
        Provisioner(load(self.file)).destroy(audit=True)

    def send(self, records: Iterable[tuple[Any, ...]], topic: str | None = None) -> None:
        """(value, key) or (value, key, partition)."""
        # it lives on a little: what it says of a broker that has ended meanwhile is of no interest
        writer = Producer({**self.cluster.login(), "linger.ms": 5, "log_level": 0})
        for number, (value, key, *place) in enumerate(records):
            while True:
                try:
                    writer.produce(topic or self.topic, value, key, *place)
                    break
                except BufferError:
                    writer.poll(0.1)
            if number % 5000 == 0:
                writer.poll(0)
        assert writer.flush(GUARD) == 0

    def drain(self, topic: str, isolation: str = "read_committed") -> list[Any]:
        """See :func:`drain`."""
        return drain(self.cluster, topic, isolation)

    def worker(self, **how: Any) -> Worker | Staged:
        return worker_of(load(self.file), KEYS, **{"commit_every": 0.2, **how})

    def serve(self, **how: Any) -> Counters:
        """One worker in this process, until all the source holds is committed."""
        worker = self.worker(**how)
        end, looked = time.monotonic() + GUARD, -1

        def done() -> bool:
            nonlocal looked
            assert time.monotonic() < end, "it did not happen in time"
            if looked == worker.counters.commits:
                return False
            looked = worker.counters.commits
            return self.committed() >= self.written()

        read = float("inf")

        def all_done() -> bool:
            """Both stages, and nothing waits for a partition any more."""
            nonlocal read
            if self.committed() < self.written() or self.unread_blocks():
                read = float("inf")
                return False
            # a stage counts what it holds after its commit: by its next turn it has
            read = min(read, time.monotonic())
            return worker.regions.beat > read and not sum(worker.counters.held[role] for role in zero_delay)

        regions = routed(load(self.file))
        zero_delay = [role for role in regions if not load(self.file).views[role].method.groups]
        return worker.run(all_done if regions else done)

    def start(self, *words: str, secret: str = SECRET) -> subprocess.Popen[bytes]:
        """One worker as a process of its own."""
        command = [sys.executable, "-X", "faulthandler", "-m", "shoal", "serve", "run", str(self.file)]
        command += ["--commit-every", "0.2", *words]
        with (self.folder / f"worker{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, env={**os.environ, "SHOAL_KEY": secret}, stderr=log)
        self.processes.append(process)
        return process

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        alive = [p for p in self.processes if p.poll() is None]
        for process in alive:
            process.send_signal(how)
        for process in alive:
            process.wait(GUARD)
        self._hang_up()

    def _ask(self, group: str, question: Callable[[Consumer], int], isolation: str = "read_committed") -> int:
        """One client for all questions of a group: to log in anew each time costs both sides more than the answer."""
        name = f"{group} {isolation}"
        if name not in self._readers:
            settings = {"group.id": group, "isolation.level": isolation, "log_level": 0}
            self._readers[name] = Consumer({**self.cluster.login(), **settings})
        try:
            return question(self._readers[name])
        except KafkaException:  # what it knows may be wrong by now: the next one begins anew
            self._readers.pop(name).close()
            raise

    def _hang_up(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def written(self) -> int:
        """How many offsets the source has."""
        places = [TopicPartition(self.topic, p) for p in range(self.partitions)]
        return self._ask("test", lambda reader: sum(reader.get_watermark_offsets(p, 30)[1] for p in places))

    def committed(self) -> int:
        """How many offsets of the source the group has behind it."""
        places = [TopicPartition(self.topic, p) for p in range(self.partitions)]

        def behind(reader: Consumer) -> int:
            return sum(max(0, p.offset) for p in reader.committed(places, timeout=OPEN))

        try:
            return self._ask(f"shoal-{self.topic}", behind)
        except KafkaException:  # the group is just being found
            return 0

    def unread_blocks(self) -> int:
        """How many offsets of the topic of regions the second stage has before it."""
        topic = f"{self.topic}.shoal.regions"

        def places(reader: Consumer) -> list[TopicPartition]:
            count = len(reader.list_topics(topic, timeout=30).topics[topic].partitions)
            return [TopicPartition(topic, p) for p in range(count)]

        def ends(reader: Consumer) -> int:
            return sum(reader.get_watermark_offsets(p, 30)[1] for p in places(reader))

        def behind(reader: Consumer) -> int:
            return sum(max(0, p.offset) for p in reader.committed(places(reader), timeout=OPEN))

        try:
            # a commit is marked on its partitions a moment after it has happened: until then, who reads only what is
            # committed would see no unread blocks
            return self._ask("test", ends, "read_uncommitted") - self._ask(f"shoal-{self.topic}-regions", behind)
        except KafkaException:  # the group is just being found
            return 1

    def until(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + GUARD
        while not done():
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.2)
