"""What the laws of methods with delay share: random streams, an observer who hears every outcome, and the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

from shoal.core.cells import read
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column, Schema
from shoal.streams import STREAM_METHODS
from shoal.streams.base import Batch, Outcomes, Running, StreamMethod

KEY = bytes(range(32))
TREE = {"lungs": ["covid", "asthma"], "blood": ["diabetes", "anaemia"]}
PARENT = {leaf: node for node, leaves in TREE.items() for leaf in leaves}
QUASI = ("age", "zip", "kind", "same")
SCHEMA = Schema(
    {
        "who": Column("subject"),
        "age": Column("quasi", hierarchy=Range(min=0, max=20), type="int"),
        "zip": Column("quasi", hierarchy=Prefix(2), weight=2.0),
        "kind": Column("quasi", hierarchy=Tree(nodes=TREE)),
        "same": Column("quasi", hierarchy=Suppress()),
        "diag": Column("sensitive"),
        "care": Column("sensitive"),
        "at": Column("time", unit="us", ahead="1d"),
    }
)
DELAYED = ("batches", "castle", "fads")


@dataclass
class Told:
    """What an observer saw, push by push."""

    events: list[int] = field(default_factory=list)
    frames: list[pl.DataFrame] = field(default_factory=list)
    pushes: list[int] = field(default_factory=list)  # the push in which each event was decided
    boundary: list[int] = field(default_factory=list)
    withheld: dict[int, int] = field(default_factory=dict)

    def hear(self, out: Outcomes, push: int) -> None:
        for event, reason in zip(out.withheld.tolist(), out.reasons.tolist(), strict=True):
            assert event not in self.withheld
            self.withheld[event] = reason
        if out.released is not None and out.released.height:
            assert out.released.height == len(out.events)
            self.frames.append(out.released)
            self.events.extend(out.events.tolist())
            self.pushes.extend([push] * len(out.events))
            self.boundary.append(len(self.events))

    @property
    def data(self) -> pl.DataFrame:
        return pl.concat(self.frames) if self.frames else pl.DataFrame()


@st.composite
def streams(draw: st.DrawFn, most: int = 45) -> pl.DataFrame:
    n = draw(st.integers(1, most))
    people = draw(st.integers(1, 12))
    one = st.fixed_dictionaries(
        {
            "who": st.one_of(
                st.integers(0, people).map(lambda i: f"p{i}"), st.none() if draw(st.booleans()) else st.just("p0")
            ),
            "age": st.one_of(st.integers(0, 20), st.none(), st.just(99)),
            "zip": st.sampled_from(["10", "11", "20", "2", None]),
            "kind": st.sampled_from([*PARENT, None]),
            "diag": st.sampled_from(["a", "b", "c"]),
            "care": st.sampled_from(["x", "y", None]),
        }
    )
    rows = draw(st.lists(one, min_size=n, max_size=n))
    types = {"who": pl.String, "age": pl.Int64} | dict.fromkeys(("zip", "kind", "diag", "care"), pl.String)
    return pl.DataFrame(rows, schema=types).with_columns(same=pl.lit("x"), number=pl.int_range(pl.len()))


@st.composite
def methods(draw: st.DrawFn, least: int, **more: Any) -> StreamMethod:
    name = draw(st.sampled_from(DELAYED))
    given_ = {"use": name, "delay": draw(st.integers(least, least + 12)), **more}
    if "reuse" not in given_:
        given_["reuse"] = draw(st.sampled_from(["never", "forever", 7, 30]))
    if name == "castle":
        given_ |= {"beta": draw(st.integers(1, 4)), "mu": 3}
    return STREAM_METHODS.decode(given_)


def batch(frame: pl.DataFrame, first: int, times: Any = None) -> Batch:
    shown = frame.drop("who", "number", strict=False)
    return Batch(shown, np.arange(first, first + frame.height) if times is None else times, frame["who"], first)


def play(running: Running, frame: pl.DataFrame, size: int = 1, first: int = 0, told: Told | None = None) -> Told:
    told = told or Told()
    for start in range(0, frame.height, size):
        part = frame[start : start + size]
        told.hear(running.push(batch(part, first + start)), first + start + part.height - 1)
    return told


def finish(running: Running, told: Told, frame: pl.DataFrame) -> Told:
    told.hear(running.flush(), frame.height - 1)
    assert running.held == 0
    return told


def usable(frame: pl.DataFrame) -> pl.Series:
    return frame["who"].is_not_null() & (frame["age"].is_null() | (frame["age"] <= 20))


def covered(column: str, value: Any, text: str | None) -> bool:
    """Whether a published cell tells the truth; written without any of the library's hierarchies."""
    if text == "*":
        return True
    if value is None or text is None:
        return value is None and text is None
    if column == "age":
        cell = read(text)
        return cell.covers(value) if cell.kind == "interval" else text == str(value)
    if column == "kind":
        return text in (value, PARENT[value])
    if column == "zip":
        return text in (value, value[:1] + "*" * (len(value) - 1)) or (
            text.endswith("*") and value.startswith(text[:1])
        )
    return bool(text == value)


def seen_within(told: Told, frame: pl.DataFrame, reuse: int | str, now: int) -> list[set[str]]:
    """For each tuple of the latest emission: the people who got the same cells then, or within the horizon."""
    count = usable(frame).cast(pl.Int64).cum_sum()
    data = told.data.select(QUASI).rows()
    current = [i for i, p in enumerate(told.pushes) if p == now]
    out = []
    for i in current:
        crowd = set()
        for j, cells in enumerate(data):
            if cells != data[i]:
                continue
            age = int(count[now] - count[told.pushes[j]])
            if told.pushes[j] == now or (reuse != "never" and (reuse == "forever" or age < int(reuse))):
                crowd.add(frame["who"][told.events[j]])
        out.append(crowd)
    return out
