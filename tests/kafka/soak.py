"""A service through a long day: blows of every kind, again and again, and everything checked at the end.

``make soak`` (an hour; MINUTES and SEED change it). Workers are killed and leave, brokers are lost, `apply` is
interrupted after every step, the key is rotated, the group's offsets are deleted, senders' clocks jump, workers are
paused; at last the source is deleted and made again. After each blow: was it said? At the end: every record once, one
form each, every promise kept over all a role can observe.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from stage import GUARD, KEYS, SECRET, Stage

from shoal.cli.consume import _judge
from shoal.core.keys import KeyRing
from shoal.policy.load import load
from shoal.runtime.kafka.provision import backfill as filling
from shoal.runtime.kafka.provision.audit import Steps
from shoal.runtime.kafka.provision.control import send as order
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.provision.status import status
from shoal.runtime.kafka.tools.watch import Watch

PARTITIONS = 2
OFFICES = ("[number]", "[number, diag]")  # a view that changes, and changes back: a new version each time
POLICY = """
dataset: visits
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  time: {role: time, late: 5s}
  number: {role: plain, type: int}
  client: {role: subject, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  diag: {role: sensitive, type: str}
views:
  ward:
    show: [number, client]
    masks: {client: {use: pseudonym}}
  office:
    show: OFFICE
  research:
    show: [number, age, diag]
    promises: [{use: k-anonymity, k: 5}, {use: l-diversity, l: 2, column: diag}]
    method: {use: batches, delay: 100}
"""
STEPS = ("begun", "made", "paused", "filled", "switched", "ended")
BLOWS = ("kill", "leave", "apply", "rotate", "offsets", "clock", "pause", "broker")


class KilledError(BaseException):
    """As SIGKILL: no clean-up runs after it."""


@dataclass
class Soak:
    """One run; ``wrong`` collects what was not as promised."""

    stage: Stage
    seed: int
    burst: int = 2000
    workers: int = 2
    blows: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    sent: int = 0
    office: int = 0
    epochs: int = 1

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.steps = itertools.cycle(STEPS)
        self.people: dict[int, str] = {}
        self.secret = SECRET
        self.keys = KEYS
        self.team: list[Any] = []

    def run(self, kinds: list[str], until: float) -> list[str]:
        """Each kind of blow once, then again in any order while there is time; then the last one, and the check."""
        print(f"soak: seed {self.seed}", flush=True)
        self._team()
        for kind in itertools.chain(kinds, self._more(kinds, until)):
            before = self.stage.committed()
            self._send()
            self.stage.until(lambda before=before: self._team() and self.stage.committed() > before)
            getattr(self, f"_{kind}")()
            self.blows[kind] += 1
            print(f"soak: {kind} ({self.blows.total()}), {self.sent:,} records, {len(self.wrong)} wrong", flush=True)
        self.stage.until(lambda: self._team() and self.stage.committed() >= self.sent)
        time.sleep(1)
        self._check()
        self._source()
        return self.wrong

    def _more(self, kinds: list[str], until: float) -> Any:
        while time.monotonic() < until:
            yield self.chance.choice(kinds)

    def _team(self) -> bool:
        """As many workers as there should be: whoever is gone is replaced."""
        self.team = [process for process in self.team if process.poll() is None]
        while len(self.team) < self.workers:
            self.team.append(self.stage.start(secret=self.secret))
        return True

    def _send(self, stamps: int = 0) -> None:
        """A burst; ``stamps`` is by how many milliseconds the sender's clock is wrong."""
        writer = Producer({**self.stage.cluster.login(), "linger.ms": 5})
        now = int(time.time() * 1000)
        for number in range(self.sent, self.sent + self.burst):
            person = int(self.chance.paretovariate(0.4)) % 2000
            self.people[number] = f"person{person}"
            value = {
                "time": 1_000 + number / 100,
                "number": number,
                "client": self.people[number],
                "age": person % 90,
                "diag": self.chance.choice(["E10", "E11", "E12"]),
            }
            place = person % PARTITIONS
            writer.produce(self.stage.topic, msgspec.json.encode(value), partition=place, timestamp=now + stamps)
        assert writer.flush(GUARD) == 0
        self.sent += self.burst

    def _kill(self) -> None:
        victim = self.chance.choice(self.team)
        victim.kill()
        victim.wait()

    def _leave(self) -> None:
        victim = self.team[0]  # the oldest: one that has hardly begun to start cannot leave in order
        victim.terminate()
        self._expect(victim.wait(GUARD) == 0, "a worker did not leave in order")

    def _broker(self) -> None:
        node = self.chance.choice(sorted(self.stage.cluster.running))
        self.stage.cluster.kill(node, self.chance.choice([signal.SIGKILL, signal.SIGTERM]))
        time.sleep(self.chance.uniform(1, 5))
        self.stage.cluster.launch(node)

    def _clock(self) -> None:
        """Senders whose clocks are a day slow or fast."""
        for stamps in (-86_400_000, 3_000_000):
            self._send(stamps)

    def _pause(self) -> None:
        order(self.stage.cluster.login(), self.stage.topic, "pause")
        self._send()
        found = status(Provisioner(load(self.stage.file)))
        self._expect(found.paused and not found.well, "status does not say that workers stand still")
        order(self.stage.cluster.login(), self.stage.topic, "resume")

    def _apply(self) -> None:
        """An apply of a changed view that is killed after a step, and the one that mends it."""
        after, written = next(self.steps), Steps._write
        self.office += 1
        self.stage.write_policy(POLICY.replace("OFFICE", OFFICES[self.office % 2]))

        def killed(steps: Steps, step: str, **more: Any) -> None:
            if step == after == "ended":
                raise KilledError
            written(steps, step, **more)
            if step == after:
                raise KilledError

        try:
            with (
                mock.patch.object(Steps, "_write", killed),
                mock.patch.object(filling.Rest, "__exit__", return_value=None),
            ):
                self.stage.apply(allow_wider=True, keys=self.keys)
        except KilledError:
            found = status(Provisioner(load(self.stage.file)))
            self._expect(found.left is not None and not found.well, f"status is silent: an apply was killed at {after}")
        self.stage.apply(allow_wider=True, keys=self.keys)
        found = status(Provisioner(load(self.stage.file)))
        self._expect(found.left is None and not found.paused, f"an apply killed at {after} was not mended")
        self.blows[f"apply killed after {after}"] += 1

    def _rotate(self) -> None:
        """A new epoch, worker by worker."""
        self.epochs += 1
        secrets = {epoch: f"{epoch:02x}" * 32 if epoch > 1 else SECRET for epoch in range(1, self.epochs + 1)}
        self.secret = ",".join(f"{epoch}:{secrets[epoch]}" for epoch in sorted(secrets, reverse=True))
        self.keys = KeyRing({"default": {epoch: bytes.fromhex(text) for epoch, text in secrets.items()}})
        for process in list(self.team):
            process.terminate()
            process.wait(GUARD)
            self._team()
        self.stage.apply(keys=self.keys)

    def _offsets(self) -> None:
        """The group's offsets are gone, as after a long rest: said, and nothing twice."""
        for process in self.team:
            process.terminate()
            process.wait(GUARD)
        reached, said = self.stage.committed(), len(self.stage.processes)
        Provisioner(load(self.stage.file)).cluster.delete_group(f"shoal-{self.stage.topic}", idle=True)
        self._send()
        self._team()
        self.stage.until(lambda: self._team() and self.stage.committed() > reached)
        logs = "".join(
            (self.stage.folder / f"worker{at}.log").read_text() for at in range(said, len(self.stage.processes))
        )
        self._expect("offset is gone" in logs, "nobody said that the group's offsets are gone")

    def _source(self) -> None:
        """The last blow: the source is deleted and made again. The workers stop loudly, an apply begins anew."""
        for future in self.stage.admin.delete_topics([self.stage.topic]).values():
            future.result(60)
        self.stage.until(lambda: self.stage.topic not in self.stage.admin.list_topics(timeout=30).topics)
        for future in self.stage.admin.create_topics([NewTopic(self.stage.topic, PARTITIONS, -1)]).values():
            future.result(60)
        self.stage.until(lambda: self.stage.topic in self.stage.admin.list_topics(timeout=30).topics)
        for process in self.team:
            self._expect(process.wait(GUARD) != 0, "a worker did not notice that its source is another")
        found = status(Provisioner(load(self.stage.file)))
        self._expect(not found.well, "status does not say that the source is another")
        self.stage.apply(allow_wider=True, keys=self.keys)
        first, self.sent = self.sent, 0
        self._send()
        self.stage.until(lambda: self._team() and self.stage.committed() >= self.sent)
        time.sleep(1)
        topic = Provisioner(load(self.stage.file)).plan().served["ward"].topic
        seen = Counter(msgspec.json.decode(m.value())["number"] for m in self.stage.drain(topic))
        self._expect(sorted(seen) == list(range(self.sent)) and max(seen.values()) == 1, "views did not begin anew")
        self.stage.stop()
        self.sent = first

    def _check(self) -> None:
        """Everything the topics say against the promises."""
        policy = load(self.stage.file)
        served = {role: one.topic for role, one in Provisioner(policy).plan().served.items()}
        for role in ("ward", "office"):
            seen = Counter(msgspec.json.decode(m.value())["number"] for m in self.stage.drain(served[role]))
            self._expect(len(seen) == self.sent, f"{role}: {self.sent - len(seen):,} records missing")
            self._expect(max(seen.values()) == 1, f"{role}: {sum(n > 1 for n in seen.values()):,} records repeated")
        forms = defaultdict(set)
        for m in self.stage.drain(served["research"], "read_uncommitted"):
            forms[msgspec.json.decode(m.value())["number"]].add(m.value())
        several = sum(len(found) > 1 for found in forms.values())
        self._expect(not several, f"research: {several:,} records in several forms")
        times = Counter(msgspec.json.decode(m.value())["number"] for m in self.stage.drain(served["research"]))
        self._expect(max(times.values()) == 1, f"research: {sum(n > 1 for n in times.values()):,} repeated")
        judge = _judge(policy, "research")
        watched = Watch(policy, "research", self.stage.cluster.login(), judge=judge).run(to_end=True)
        self._expect(bool(watched.kept), f"research: a promise is broken over what a role observes: {watched.findings}")
        people = defaultdict(set)
        for m in self.stage.drain(served["research"]):
            row = msgspec.json.decode(m.value())
            people[row["age"], m.partition(), m.timestamp()[1]].add(self.people[row["number"]])
        few = sum(len(who) < 5 for who in people.values())
        self._expect(not few, f"research: {few} groups below k")

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.wrong.append(otherwise)
            print(f"soak: WRONG: {otherwise}", flush=True)


def main() -> int:
    """The whole day, on three brokers of its own."""
    from scripts.kafka.broker import Cluster

    words = argparse.ArgumentParser()
    words.add_argument("--minutes", type=float, default=60.0)
    words.add_argument("--seed", type=int, default=int(time.time()))
    words.add_argument("--brokers", type=int, default=3)
    asked = words.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="shoal-soak-"))
    cluster, stage = Cluster(folder / "kafka", asked.brokers).start(), None
    try:
        stage = Stage(cluster, folder, POLICY.replace("OFFICE", OFFICES[0]), PARTITIONS)
        soak = Soak(stage, asked.seed)
        kinds = list(BLOWS) if asked.brokers > 1 else list(BLOWS[:-1])
        began = time.monotonic()
        wrong = soak.run(kinds, began + 60 * asked.minutes)
        print(f"soak: {time.monotonic() - began:.0f} s, {soak.sent:,} records, {dict(soak.blows)}")
        print("\n".join(wrong) or "soak: nothing lost, nothing twice, every promise kept, everything said")
        return 1 if wrong else 0
    finally:
        if stage is not None:
            stage.stop(signal.SIGKILL)
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
