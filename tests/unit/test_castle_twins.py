"""FADS and CASTLE beside slow twins: plain lists of tuples, one number and one tree, sums that are exact."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.cells import read
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column, Schema
from shoal.kernels.delay.castle_split import pick
from shoal.promises.k_anonymity import KAnonymity
from shoal.streams import STREAM_METHODS, castle
from shoal.streams.base import Batch
from shoal.streams.texts import Printer

KEY = bytes(range(32))
PEOPLE = Printer(KEY, "subject")
SALT = Printer(KEY, "castle").one("0")
FOUR = {"left": ["a", "b"], "right": ["c", "d"]}  # a node costs its share of the leaves: a half
FIVE = {"left": ["a", "b", "c"], "right": ["d", "e"]}  # as CASTLE counts, one less above and below: 2/4 and 1/4


@dataclass(eq=False)
class One:
    number: int
    who: str
    x: int
    y: str
    cluster: int = -1


Cells = tuple[float, float, str]


@dataclass
class Slow:
    """What the two twins share."""

    k: int
    delay: int
    tree: dict[str, list[str]]
    costs: dict[str, float]
    held: list[One] = field(default_factory=list)
    boxes: list[tuple[Cells, float]] = field(default_factory=list)
    out: dict[int, Cells | None] = field(default_factory=dict)

    def node(self, leaf: str) -> str:
        return next(node for node, leaves in self.tree.items() if leaf in leaves)

    def cells(self, members: list[One]) -> Cells:
        ys, nodes = {m.y for m in members}, {self.node(m.y) for m in members}
        y = ys.pop() if len(ys) == 1 else nodes.pop() if len(nodes) == 1 else "*"
        return min(m.x for m in members), max(m.x for m in members), y

    def loss(self, members: list[One]) -> float:
        low, high, y = self.cells(members)
        return (high - low) / 16 * 0.5 + self.costs.get(y, 0.0) * 0.5

    def people(self, members: list[One]) -> int:
        return len({m.who for m in members})

    def release(self, members: list[One], *, keep: bool = True) -> None:
        cells, loss = self.cells(members), self.loss(members)
        for m in members:
            self.out[m.number] = cells
            self.held.remove(m)
        if keep:
            self.boxes.append((cells, loss))

    def again(self, one: One) -> tuple[Cells, float] | None:
        able = [b for b in self.boxes if b[0][0] <= one.x <= b[0][1] and b[0][2] in (one.y, self.node(one.y), "*")]
        return min(able, key=lambda b: b[1]) if able else None

    def alone(self, one: One, cells: Cells | None) -> None:
        self.out[one.number] = cells
        self.held.remove(one)

    def run(self, stream: list[One]) -> dict[int, Cells | None]:
        for one in stream:
            self.arrive(one)
            while self.held and self.held[0].number + self.delay <= one.number:
                self.expire(self.held[0])
        while self.held:
            self.expire(self.held[0])
        return self.out

    def arrive(self, one: One) -> None:
        self.held.append(one)

    def expire(self, due: One) -> None:
        raise NotImplementedError


class SlowFads(Slow):
    def expire(self, due: One) -> None:
        group = [due]
        for m in sorted(self.held[1:], key=lambda m: self.loss([due, m])):
            if len(group) < self.k and m.who not in {g.who for g in group}:
                group.append(m)
        box = self.again(due)
        if len(group) >= self.k and (box is None or self.loss(group) < box[1]):
            self.release(group)
        else:
            self.alone(due, box[0] if box is not None else None)


@dataclass
class SlowCastle(Slow):
    beta: int = 2
    mu: int = 2
    most: int = 10**9  # a cluster of so many tuples leaves at once
    losses: list[float] = field(default_factory=list)
    span: dict[int, list[One]] = field(default_factory=dict)  # who ever was in a cluster: its box does not shrink

    @property
    def tau(self) -> float:
        last = self.losses[-self.mu :]
        return sum(last) / max(1, len(last))

    def members(self, c: int) -> list[One]:
        return [m for m in self.held if m.cluster == c]

    def bury(self) -> None:
        self.span = {c: span for c, span in self.span.items() if self.members(c)}

    def arrive(self, one: One) -> None:
        free = [c for c in range(self.beta) if c not in self.span]
        grown = {c: self.loss([*span, one]) - self.loss(span) for c, span in sorted(self.span.items())}
        least = [c for c in grown if grown[c] == min(grown.values())]
        fine = [c for c in least if self.loss([*self.span[c], one]) <= self.tau]
        if fine or not free:
            one.cluster = min(fine or least, key=lambda c: self.people(self.members(c)))
        else:
            one.cluster = free[0]
        self.span.setdefault(one.cluster, []).append(one)
        self.held.append(one)
        own = self.members(one.cluster)
        if len(own) % self.most == 0 and self.people(own) >= self.k:
            self.output(own)
            self.bury()

    def expire(self, due: One) -> None:
        own = self.members(due.cluster)
        box = self.again(due)
        sizes = {c: self.people(self.members(c)) for c in self.span}
        if self.people(own) >= self.k:
            self.output(own)
        elif box is not None:
            self.alone(due, box[0])
        elif 2 * sum(n > self.people(own) for n in sizes.values()) <= len(sizes) and self.people(self.held) >= self.k:
            left = [c for c in sorted(self.span) if c != due.cluster]
            while self.people(own) < self.k:
                left.remove(best := min(left, key=lambda c: self.loss(own + self.members(c))))
                own = own + self.members(best)
            self.output(own)
        else:
            self.alone(due, None)
        self.bury()

    def output(self, group: list[One]) -> None:
        for part in self.split(group):
            self.losses.append(self.loss(part))
            self.release(part, keep=self.loss(part) < self.tau)

    def split(self, group: list[One]) -> list[list[One]]:
        parts: list[list[One]] = []
        left = list(group)
        while self.people(group) >= 2 * self.k and self.people(left) >= self.k:
            seed = left[pick(SALT, PEOPLE.one(left[0].who) + len(parts), len(left))]
            part = [seed]
            for m in sorted(left, key=lambda m: self.loss([seed, m])):
                if len(part) < self.k and m.who not in {p.who for p in part}:
                    part.append(m)
            parts.append(part)
            left = [m for m in left if m not in part]
        if len(parts) < 2:
            return [group]
        for m in left:
            min(parts, key=lambda part: self.loss([*part, m]) - self.loss(part)).append(m)
        return parts


@st.composite
def arrivals(draw: st.DrawFn, leaves: str) -> list[One]:
    people = draw(st.integers(2, 30))
    one = st.tuples(st.integers(0, people), st.integers(0, 16), st.sampled_from(leaves))
    return [One(i, f"p{who}", x, y) for i, (who, x, y) in enumerate(draw(st.lists(one, min_size=1, max_size=40)))]


def published(stream: list[One], tree: dict[str, list[str]], size: int, k: int, **method: Any) -> dict[int, Any]:
    schema = Schema(
        {
            "who": Column("subject"),
            "x": Column("quasi", type="int", hierarchy=Range(min=0, max=16)),
            "y": Column("quasi", hierarchy=Tree(nodes=tree)),
        }
    )
    running = STREAM_METHODS.decode(method).start(schema, [KAnonymity(k)], key=KEY)
    outcomes = []
    for first in range(0, len(stream), size):
        part = stream[first : first + size]
        frame = pl.DataFrame({"x": [o.x for o in part], "y": [o.y for o in part]})
        outcomes.append(running.push(Batch(frame, np.arange(len(part)), pl.Series([o.who for o in part]), first)))
    out: dict[int, Any] = {}
    for told in [*outcomes, running.flush()]:
        out |= dict.fromkeys(told.withheld.tolist())
        for event, (x, y) in zip(
            told.events.tolist(), told.released.rows() if told.released is not None else [], strict=True
        ):
            cell = read(x)
            out[event] = (cell.low, cell.high, y) if cell.kind == "interval" else (int(x), int(x), y)
    return out


@settings(max_examples=120)
@given(arrivals("abcd"), st.integers(1, 4), st.integers(0, 12), st.integers(1, 9))
def test_fads_decides_as_its_slow_twin(stream: list[One], k: int, more: int, size: int) -> None:
    delay = max(1, k - 1 + more)
    slow = SlowFads(k, delay, FOUR, {"left": 0.5, "right": 0.5, "*": 1.0}).run(stream)
    assert published(stream, FOUR, size, k, use="fads", delay=delay) == slow


@settings(max_examples=120)
@given(arrivals("abcde"), st.integers(1, 4), st.integers(0, 12), st.integers(1, 4), st.integers(1, 9))
def test_castle_decides_as_its_slow_twin(stream: list[One], k: int, more: int, beta: int, size: int) -> None:
    delay = max(1, k - 1 + more)
    slow = SlowCastle(k, delay, FIVE, {"left": 0.5, "right": 0.25, "*": 1.0}, beta=beta).run(stream)
    assert published(stream, FIVE, size, k, use="castle", delay=delay, beta=beta, mu=2) == slow


@settings(max_examples=60)
@given(
    arrivals("abcde"), st.integers(1, 4), st.integers(4, 12), st.integers(1, 4), st.integers(1, 9), st.integers(2, 6)
)
def test_a_large_cluster_leaves_at_once(stream: list[One], k: int, more: int, beta: int, size: int, most: int) -> None:
    delay = k - 1 + more
    slow = SlowCastle(k, delay, FIVE, {"left": 0.5, "right": 0.25, "*": 1.0}, beta=beta, most=most).run(stream)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("SMALL", 0), ("LARGE", most), ("PIECE", castle.LATER), ("PEOPLE", 0)):
            patch.setattr(castle, name, value)
        assert published(stream, FIVE, size, k, use="castle", delay=delay, beta=beta, mu=2) == slow
