"""A service through a long day: blows of every kind, again and again, and everything checked at the end.

``make soak`` (an hour; MINUTES and SEED change it; then a full disk). Workers are killed, leave and come, brokers are
lost, `apply` is interrupted after every step, the key is rotated, the group's offsets and a view's topic are deleted,
senders' clocks jump, workers are paused; at last the source is deleted and made again. After each blow: was it said,
and was the alarm raised? Every worker judges what it releases before it is published. At the end: every record once,
one form each, every promise kept over all a role can observe.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from alarms import raised, scraped
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from soak_checks import Sent, wrong_in
from stage import GUARD, KEYS, SECRET, Stage

from shoal.core.keys import KeyRing
from shoal.policy.load import load
from shoal.runtime.kafka.provision import backfill as filling
from shoal.runtime.kafka.provision.audit import Steps
from shoal.runtime.kafka.provision.control import send as order
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.provision.status import status

PARTITIONS = 3
OFFICES = ("[number]", "[number, diag]")  # a view that changes, and changes back: a new version each time
POLICY = """
dataset: visits
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  time: {role: time, late: 5s}
  number: {role: plain, type: int}
  client: {role: subject, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  domain: {role: quasi, type: str, hierarchy: {use: path, depth: 2}}
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
  clinic:
    show: [number, age, diag]
    promises: [{use: k-anonymity, k: 5}]
    method: {use: castle, delay: 100}
  meeting:
    show: [number, age, diag]
    promises: [{use: k-anonymity, k: 5}]
    method: {use: batches, delay: 100}
    service: {repartition: 2}
  market:
    show: [number, domain]
    promises: [{use: z-anonymity, z: 5, window: 60s}]
    method: z-anonymity
  pulse:
    show: [number, age]
    masks: {age: {use: aggregate, function: mean, window: {use: tumbling, size: WINDOWs}, k: 5}}
"""
JUMP = 7_200.0  # seconds by which the clock of an event may be wrong: further than any window or bound
WINDOW = 3  # seconds, of the view `pulse`
NEVER = {"ShoalRecordsLost", "ShoalStateLost", "ShoalDeadLetters", "ShoalSmallestGroup"}  # no blow may cause these
STEPS = ("begun", "made", "paused", "filled", "switched", "ended")
BLOWS = ("kill", "leave", "join", "apply", "rotate", "offsets", "topic", "clock", "pause", "broker")


PORT = re.compile(r"metrics and health on port (\d+)")


class KilledError(BaseException):
    """As SIGKILL: no clean-up runs after it."""


def policy_of(number: int) -> str:
    """The policy with the one or the other view of the office."""
    return POLICY.replace("OFFICE", OFFICES[number % 2]).replace("WINDOW", str(WINDOW))


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
        self.places: dict[int, tuple[int, int]] = {}  # partition and window of a record
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
            self.before = scraped(self._ports())
            false = raised(self.before, []) & NEVER
            self._expect(not false, f"an alarm for nothing: {false}")
            getattr(self, f"_{kind}")()
            self.blows[kind] += 1
            print(f"soak: {kind} ({self.blows.total()}), {self.sent:,} records, {len(self.wrong)} wrong", flush=True)
        self.stage.until(lambda: self._team() and self.stage.committed() >= self.sent)
        self.stage.until(lambda: self._team() and not any(status(Provisioner(load(self.stage.file))).regions.values()))
        time.sleep(1)
        for fault in wrong_in(self.stage, Sent(self.sent, self.people, self.places)):
            self._expect(False, fault)
        self._source()
        foreign = [line for p in self.stage.processes for line in self._log(p).splitlines() if not line.startswith("{")]
        self._expect(not foreign, f"{len(foreign)} lines of logs are no JSON: {foreign[:3]}")
        return self.wrong

    def _more(self, kinds: list[str], until: float) -> Any:
        while time.monotonic() < until:
            yield self.chance.choice(kinds)

    def _team(self) -> bool:
        """As many workers as there should be: whoever is gone is replaced."""
        self.team = [process for process in self.team if process.poll() is None]
        while len(self.team) < self.workers:
            self.team.append(self._worker())
        return True

    def _worker(self) -> Any:
        """One more worker: it judges what it releases, and says how it stands."""
        return self.stage.start("--metrics", ":0", "--log", "json", "--verify", "1", secret=self.secret)

    def _ports(self) -> list[int]:
        """Where the workers that run say how they stand."""
        logs = [self._log(p) for p in self.stage.processes if p.poll() is None]
        return [int(found[1]) for log in logs if (found := PORT.search(log)) is not None]

    def _log(self, process: Any) -> str:
        return (self.stage.folder / f"worker{self.stage.processes.index(process)}.log").read_text()

    def _alarm(self, name: str) -> None:
        """This alarm must be raised, sooner or later."""
        end = time.monotonic() + GUARD
        while name not in raised(scraped(self._ports()), self.before):
            if time.monotonic() > end:
                self._expect(False, f"the alarm {name} was not raised")
                return
            time.sleep(0.5)

    def _send(self, stamps: int = 0, ahead: float = 0.0, burst: int | None = None) -> None:
        """A burst; ``stamps`` is by how many milliseconds the sender's clock is wrong, ``ahead`` that of its events."""
        writer = Producer({**self.stage.cluster.login(), "linger.ms": 5})
        now, count = time.time(), burst or self.burst
        for number in range(self.sent, self.sent + count):
            # whose clock is wrong is wrong alone: what two people vouch for is the time
            person = int(self.chance.paretovariate(0.4)) % 2000 if not ahead else 7
            self.people[number] = f"person{person}"
            value = {
                "time": now + (number - self.sent) / count + ahead,
                "number": number,
                "client": self.people[number],
                "age": person % 90,
                "domain": f"d{person % 7}.s{self.chance.randrange(9)}",
                "diag": self.chance.choice(["E10", "E11", "E12"]),
            }
            place = person % PARTITIONS
            self.places[number] = place, int(value["time"] // WINDOW)
            stamp = int(now * 1000) + stamps
            writer.produce(self.stage.topic, msgspec.json.encode(value), partition=place, timestamp=stamp)
        assert writer.flush(GUARD) == 0
        self.sent += count

    def _kill(self) -> None:
        victim = self.chance.choice(self.team)
        victim.kill()
        victim.wait()

    def _leave(self) -> None:
        victim = self.team[0]  # the oldest: one that has hardly begun to start cannot leave in order
        victim.terminate()
        self._expect(victim.wait(GUARD) == 0, "a worker did not leave in order")

    def _join(self) -> None:
        """One more worker comes, gets its share, and goes."""
        more = self._worker()

        def shared() -> bool:
            members = status(Provisioner(load(self.stage.file))).workers
            return sum(bool(m.partitions) for m in members) == self.workers + 1

        self.stage.until(lambda: self._team() and (shared() or more.poll() is not None))
        before = self.stage.committed()
        self._send()
        self.stage.until(lambda: self._team() and self.stage.committed() > before)
        more.terminate()
        self._expect(more.wait(GUARD) == 0, "a worker that came did not leave in order")

    def _broker(self) -> None:
        node = self.chance.choice(sorted(self.stage.cluster.running))
        self.stage.cluster.kill(node, self.chance.choice([signal.SIGKILL, signal.SIGTERM]))
        time.sleep(self.chance.uniform(1, 5))
        self.stage.cluster.launch(node)

    def _clock(self) -> None:
        """Senders whose clocks are a day slow or fast, and events that are hours late or early."""
        for stamps in (-86_400_000, 3_000_000):
            self._send(stamps)
        for ahead in (-JUMP, JUMP):
            self._send(ahead=ahead, burst=20)
        self._alarm("ShoalClocks")

    def _pause(self) -> None:
        order(self.stage.cluster.login(), self.stage.topic, "pause")
        self._send()
        found = status(Provisioner(load(self.stage.file)))
        self._expect(found.paused and not found.well, "status does not say that workers stand still")
        self._alarm("ShoalPaused")
        order(self.stage.cluster.login(), self.stage.topic, "resume")

    def _apply(self) -> None:
        """An apply of a changed view that is killed after a step, and the one that mends it."""
        after, written = next(self.steps), Steps._write
        self.office += 1
        self.stage.write_policy(policy_of(self.office))

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
            if found.paused:
                self._alarm("ShoalPaused")
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
        self.stage.until(lambda: self._team() and self._used_epochs() == {float(self.epochs)})
        found = status(Provisioner(load(self.stage.file))).epochs
        self._expect(max(found["default"]) == self.epochs, "status does not say which epochs were applied")

    def _used_epochs(self) -> set[float]:
        return {sample.value for sample in scraped(self._ports()) if sample.name == "shoal_key_epoch"}

    def _topic(self) -> None:
        """Somebody deletes a view's topic: the workers stop loudly, an apply makes it again and fills it."""
        topic = Provisioner(load(self.stage.file)).plan().served["office"].topic
        for future in self.stage.admin.delete_topics([topic]).values():
            future.result(60)
        self._send()
        for process in self.team:
            self._expect(process.wait(GUARD) != 0, "a worker did not notice that a view's topic is gone")
            self._expect('"level":"error"' in self._log(process), "a worker did not say why it ended")
        self._alarm("ShoalNobodyServes")
        found = status(Provisioner(load(self.stage.file)))
        self._expect(not found.well, "status does not say that a view's topic is gone")
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
        loud = [line for line in logs.splitlines() if "offset is gone" in line and '"level":"warn"' in line]
        self._expect(bool(loud), "nobody said that the group's offsets are gone")

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
        self._alarm("ShoalNobodyServes")
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
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leave no brokers behind
    folder = Path(tempfile.mkdtemp(prefix="shoal-soak-"))
    cluster, stage = Cluster(folder / "kafka", asked.brokers).start(), None
    try:
        stage = Stage(cluster, folder, policy_of(0), PARTITIONS)
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
