"""What the topics of a soak run say against its promises: everything a role can observe is read again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from stage import Stage, undisturbed

from shoal.cli.consume import _judge
from shoal.policy.load import load
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.tools.watch import Watch

GROUPED = ("research", "clinic", "meeting")  # with reused boxes and without, and by regions


class Sent(NamedTuple):
    """What was sent: how many records; by number, whose they are, and their partition and window."""

    count: int
    people: dict[int, str]
    places: dict[int, tuple[int, int]]


def wrong_in(stage: Stage, sent: Sent) -> Iterator[str]:
    """Everything the topics say against the promises."""
    served = {role: one.topic for role, one in Provisioner(load(stage.file)).plan().served.items()}
    for role in ("ward", "office"):
        seen = Counter(msgspec.json.decode(m.value())["number"] for m in stage.drain(served[role]))
        if len(seen) != sent.count:
            yield f"{role}: {sent.count - len(seen):,} records missing"
        if max(seen.values()) > 1:
            yield f"{role}: {sum(n > 1 for n in seen.values()):,} records repeated"
    for role in (*GROUPED, "market", "pulse"):
        yield from _once(stage, role, served[role])
    for role in GROUPED:
        yield from _groups(stage, role, served[role], sent)
    yield from _windows(stage, served["pulse"], sent)
    asked, found = undisturbed(stage, "market"), Counter(m.value() for m in stage.drain(served["market"]))
    more, less = (found - asked).total(), (asked - found).total()
    if more or less:
        yield f"market: not the undisturbed run, {more:,} more and {less:,} less"


def _once(stage: Stage, role: str, topic: str) -> Iterator[str]:
    """One form of each record, also in what was never committed, and once."""
    forms = defaultdict(set)
    for m in stage.drain(topic, "read_uncommitted"):
        forms[msgspec.json.decode(m.value())["number"]].add(m.value())
    if several := sum(len(found) > 1 for found in forms.values()):
        yield f"{role}: {several:,} records in several forms"
    times = Counter(msgspec.json.decode(m.value())["number"] for m in stage.drain(topic))
    if not times or max(times.values()) > 1:
        yield f"{role}: {sum(n > 1 for n in times.values()):,} of {len(times):,} records repeated"


def _groups(stage: Stage, role: str, topic: str, sent: Sent) -> Iterator[str]:
    """k people behind all that a reader can tell records apart by, and the judge's word."""
    policy = load(stage.file)
    watched = Watch(policy, role, stage.cluster.login(), judge=_judge(policy, role)).run(to_end=True)
    if not watched.kept:
        yield f"{role}: a promise is broken over what a role observes: {watched.findings}"
    people = defaultdict(set)
    for m in stage.drain(topic):
        row = msgspec.json.decode(m.value())
        people[row["age"], m.partition(), m.timestamp()[1]].add(sent.people[row["number"]])
    if few := sum(len(who) < 5 for who in people.values()):
        yield f"{role}: {few} groups below k"


def _windows(stage: Stage, topic: str, sent: Sent) -> Iterator[str]:
    """Every window shows one mean, of at least five people."""
    means, people = defaultdict(set), defaultdict(set)
    for m in stage.drain(topic):
        row = msgspec.json.decode(m.value())
        means[sent.places[row["number"]]].add(row["age"])
        people[sent.places[row["number"]]].add(sent.people[row["number"]])
    if several := sum(len(found) > 1 for found in means.values()):
        yield f"pulse: {several} windows have several means"
    if few := sum(len(who) < 5 for who in people.values()):
        yield f"pulse: {few} of {len(people)} windows show fewer than five people"
