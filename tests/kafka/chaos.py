"""Chaos: workers killed at random moments, rebalances, brokers lost, and every promise checked over the whole log.

Two of the views are repartitioned: their records go through both stages.

The whole run: ``make chaos``, a million records and 50 kills. Each run prints its seed; ``make chaos SEED=…`` gives the
same records and the same order of blows again (not the same moments: those are the machine's).
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
from stage import GUARD, KEYS, Stage, undisturbed

from shoal.policy.load import load
from shoal.runtime.kafka.provision.served import served_now
from shoal.runtime.kafka.regions.blocks import BlockSeal, block_of
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.output import Disguise, Record
from shoal.runtime.kafka.state.changelog import Seal, Tick

PARTITIONS = 4
K, L = 5, 2
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
    show: [number, diag]
  market:
    show: [number, domain]
    promises: [{use: z-anonymity, z: 5, window: 60s}]
    method: z-anonymity
    service: {repartition: 3}
  research:
    show: [number, age, domain, diag]
    promises: [{use: k-anonymity, k: 5}, {use: l-diversity, l: 2, column: diag}]
    method: {use: batches, delay: 200, reuse: 1000}
  timed:
    show: [number, age, domain, diag]
    promises: [{use: k-anonymity, k: 5}, {use: l-diversity, l: 2, column: diag}]
    method: {use: batches, delay: 1000, delay_time: 5s}
    service: {repartition: 2}
  pulse:
    show: [number, age]
    masks: {age: {use: aggregate, function: mean, window: {use: tumbling, size: 3s}, k: 5}}
"""
# market and timed go through two stages, by region; the clock of timed and pulse moves in quiet moments, too
ROLES = ("market", "research", "timed", "pulse")


@dataclass
class Chaos:
    """One run: what was done to the service, and what came out wrong (nothing, if all is well)."""

    stage: Stage
    records: int
    kills: int
    seed: int
    workers: int = 2
    between: tuple[float, float] = (0.5, 2.0)  # seconds between two blows
    lose_brokers: bool = False
    protocol: str = "classic"
    blows: Counter[str] = field(default_factory=Counter)
    people: dict[int, str] = field(default_factory=dict)

    def run(self) -> list[str]:
        """Serve all records under blows; answers what is wrong afterwards."""
        chance = random.Random(self.seed)
        print(f"chaos: seed {self.seed}, {self.records:,} records, {self.kills} kills, {self.protocol}", flush=True)
        bursts = iter(self._bursts(random.Random(self.seed)))
        team = [self.stage.start("--protocol", self.protocol) for _ in range(self.workers)]
        while self.blows["kill"] < self.kills:
            time.sleep(chance.uniform(*self.between))
            self._at_work(list(next(bursts, [])))
            time.sleep(chance.uniform(0, 0.6))
            self._blow(chance, team)
        for burst in bursts:
            self.stage.send(burst)
        self.stage.until(lambda: self._team(team) and self.stage.committed() >= self.records)
        self.stage.until(lambda: self._team(team) and not self.stage.unread_blocks())
        time.sleep(1)
        self.stage.stop()
        print(f"chaos: {dict(self.blows)}; checking", flush=True)
        return self.wrong()

    def _at_work(self, burst: list[tuple[bytes, bytes, int]]) -> None:
        """A burst first, and until some of it is committed: the blow shall hit work, not a worker that starts."""
        before = self.stage.committed()
        self.stage.send(burst)
        if burst:
            self.stage.until(lambda: self.stage.committed() > before)

    def _blow(self, chance: random.Random, team: list[Any]) -> None:
        count = self.blows.total()
        kind = "broker" if self.lose_brokers and count % 7 == 1 else "leave" if count % 5 == 4 else "kill"
        victim = chance.choice(team)
        if kind == "broker":
            node = chance.choice(sorted(self.stage.cluster.running))
            self.stage.cluster.kill(node, chance.choice([signal.SIGKILL, signal.SIGTERM]))
            time.sleep(chance.uniform(1, 8))
            self.stage.cluster.launch(node)
        elif victim.poll() is None:
            victim.send_signal(signal.SIGKILL if kind == "kill" else signal.SIGTERM)
            self._gone(victim)
        else:
            return
        self.blows[kind] += 1
        self._team(team)

    def _gone(self, victim: Any) -> None:
        try:
            victim.wait(GUARD)
        except subprocess.TimeoutExpired:
            victim.send_signal(signal.SIGABRT)  # says where it hangs
            victim.wait()
            log = (self.stage.folder / f"worker{self.stage.processes.index(victim)}.log").read_text()
            raise RuntimeError(f"seed {self.seed}: a worker did not leave:\n{log[-3000:]}") from None

    def _team(self, team: list[Any]) -> bool:
        """Workers that are gone are replaced."""
        for at, process in enumerate(team):
            if process.poll() is not None:
                team[at] = self.stage.start("--protocol", self.protocol)
        return True

    def _bursts(self, chance: random.Random) -> Iterator[list[tuple[bytes, bytes, int]]]:
        size = -(-self.records // (self.kills + 1))
        for first in range(0, self.records, size):
            yield [self._visit(chance, n) for n in range(first, min(first + size, self.records))]

    def _visit(self, chance: random.Random, number: int) -> tuple[bytes, bytes, int]:
        person = int(chance.paretovariate(0.4)) % 5000
        self.people[number] = f"person{person}"
        value = {
            "time": 1_000 + number / 100 - (chance.random() * 7 if chance.random() < 0.1 else 0),
            "number": number,
            "client": self.people[number],
            "age": person % 90,
            "domain": f"d{person % 7}.s{chance.randrange(9)}",
            "diag": chance.choice(["E10", "E11", "E12"]),
        }
        return msgspec.json.encode(value), b"k%d" % person, person % PARTITIONS

    def wrong(self) -> list[str]:
        """Everything the log says against the promises."""
        out: list[str] = []
        topic = self.stage.topic
        ward = Counter(msgspec.json.decode(m.value())["number"] for m in self.stage.drain(f"{topic}.ward"))
        out += [f"ward: {self.records - len(ward)} records missing"] if len(ward) != self.records else []
        out += [f"ward: {sum(n > 1 for n in ward.values())} records repeated"] if max(ward.values()) > 1 else []
        for role in ROLES:
            committed = [m.value() for m in self.stage.drain(f"{topic}.{role}")]
            ever = [m.value() for m in self.stage.drain(f"{topic}.{role}", "read_uncommitted")]
            self.blows[f"{role}: aborted records"] = len(ever) - len(committed)
            forms = defaultdict(set)
            for value in ever:
                forms[msgspec.json.decode(value)["number"]].add(value)
            several = sum(len(f) > 1 for f in forms.values())
            out += [f"{role}: {several} records in several forms"] if several else []
            times = Counter(msgspec.json.decode(v)["number"] for v in committed)
            out += [f"{role}: {sum(n > 1 for n in times.values())} repeated"] if max(times.values()) > 1 else []
            if role in self._alike:
                asked, found = self._alike[role](role), Counter(committed)
                more, less = (found - asked).total(), (asked - found).total()
                out += [f"{role}: not the uninterrupted run, {more} more and {less} less"] if more or less else []
            self.blows[f"{role}: released"] = len(committed)
        for where in (topic, f"{topic}.shoal.regions"):
            changelog = self.stage.drain(f"{where}.shoal.changelog")
            self.blows[f"ticks of {where}"] = sum(b"/tick/" in m.key() for m in changelog)
        return out + self._groups("research") + self._groups("timed")

    def _groups(self, role: str) -> list[str]:
        people, kinds = defaultdict(set), defaultdict(set)
        for message in self.stage.drain(f"{self.stage.topic}.{role}", "read_uncommitted"):
            row = msgspec.json.decode(message.value())
            people[row["age"], row["domain"]].add(self.people[row["number"]])
            kinds[row["age"], row["domain"]].add(row["diag"])
        few, alike = sum(len(p) < K for p in people.values()), sum(len(d) < L for d in kinds.values())
        out = [f"{role}: {few} of {len(people)} groups below k"] if few else []
        return out + ([f"{role}: {alike} groups below l"] if alike else [])

    @property
    def _alike(self) -> dict[str, Callable[[str], Counter[bytes]]]:
        """The views that must be as one worker would make them that nobody disturbs: those whose ticks are known."""
        regional = dict.fromkeys(("market", "timed"), self._undisturbed_regions)
        return {**regional, "research": partial(undisturbed, self.stage)}

    def _undisturbed_regions(self, role: str) -> Counter[bytes]:
        """What one worker makes of the blocks and ticks that were committed; each record of the source is in one."""
        policy, topic = load(self.stage.file), f"{self.stage.topic}.shoal.regions"
        name, blocks, seal = served_now(policy)[role].name, BlockSeal(KEYS), Seal(KEYS)
        steps: dict[int, list[tuple[int, int, Any]]] = defaultdict(list)  # a tick comes before the block at its offset
        for m in self.stage.drain(topic):
            block = Record(m.partition(), m.offset(), None, m.value(), 0)
            steps[m.partition()].append((m.offset(), 0, block))
        for m in self.stage.drain(f"{topic}.shoal.changelog"):
            if m.key().startswith(f"{name}/tick/".encode()):
                tick = msgspec.msgpack.decode(seal.open(m.value(), m.key(), m.partition()), type=Tick)
                steps[m.partition()].append((tick.next, tick.number - (1 << 40), tick))
        out: Counter[bytes] = Counter()
        once: Counter[tuple[int, int]] = Counter()
        for region, mine in steps.items():
            disguise = Disguise(policy.views[role], self.stage.topic, PARTITIONS, KEYS)
            view = stateful.start(policy, role, region, KEYS, disguise, None, None, name)
            for _, _, step in sorted(mine, key=itemgetter(0, 1)):
                made = view.tick(step.now) if isinstance(step, Tick) else view.push([step])[0]
                out.update(o.value for o in made if o.value is not None)
                if isinstance(step, Record) and (block := block_of(blocks.unsealed(step.value))).view == name:
                    once.update((entry.partition, entry.offset) for entry in block.entries)
        if len(once) != self.records or max(once.values()) > 1:
            out[f"{len(once)} records of the source in blocks, at most {max(once.values())} times".encode()] += 1
        return out


def main() -> int:
    """The whole run, on three brokers of its own."""
    from scripts.kafka.broker import Cluster

    words = argparse.ArgumentParser()
    words.add_argument("--records", type=int, default=1_000_000)
    words.add_argument("--kills", type=int, default=50)
    words.add_argument("--seed", type=int, default=int(time.time()))
    words.add_argument("--protocol", default="classic")
    words.add_argument("--brokers", type=int, default=3)
    asked = words.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="shoal-chaos-"))
    cluster = Cluster(folder / "kafka", asked.brokers).start()
    try:
        stage = Stage(cluster, folder, POLICY, PARTITIONS)
        run = Chaos(stage, asked.records, asked.kills, asked.seed, lose_brokers=True, protocol=asked.protocol)
        began = time.monotonic()
        wrong = run.run()
        print(f"chaos: {time.monotonic() - began:.0f} s, {dict(run.blows)}")
        print("\n".join(wrong) or "chaos: every record once, one form each, every group kept its promise")
        return 1 if wrong else 0
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
