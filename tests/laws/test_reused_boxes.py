"""Boxes that are given again: every promise holds of all the people a box was ever given to, each counted once.

The twin remembers who got which box and with which value, and judges by counting people one by one; it uses none of
the library's promises or kernels, only the numbers of the boxes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.streams import STREAM_METHODS
from shoal.streams.base import Running
from tests.laws.delayed_streams import DELAYED, KEY, SCHEMA, batch, methods, streams

KINDS = ("distinct", "entropy", "recursive", "frequency")
Pairs = set[tuple[str, str | None]]


class Watched:
    """Who was given which box, over each box's whole life."""

    def __init__(self, running: Any, frame: pl.DataFrame) -> None:
        self.who, self.value = frame["who"].to_list(), frame["diag"].to_list()
        self.life: dict[int, Pairs] = defaultdict(set)
        self.touched: set[int] = set()
        told = running._told

        def spy(task: Any, *rest: Any) -> Any:
            released, named = task.released, running.kept.published.named
            slot_of = {int(b): slot for slot, b in enumerate(named.tolist()) if b >= 0}
            for row in np.flatnonzero(released.box >= 0).tolist():
                slot = slot_of.get(int(released.box[row]))
                if slot is not None and not released.again[row]:
                    self.life[slot] = set()  # a box begins with its group
            for row in np.flatnonzero(released.box >= 0).tolist():
                slot = slot_of.get(int(released.box[row]))
                if slot is not None:
                    event = int(task.event[row])
                    self.life[slot].add((self.who[event], self.value[event]))
                    self.touched.add(slot)
            return told(task, *rest)

        running._told = spy


def diverse(pairs: Pairs, kind: str, l: float, c: float = 3.0) -> bool:
    """The worst pick of one value per person, by trying the values that an attacker would count first."""
    holders: dict[str, set[str]] = defaultdict(set)
    for who, value in pairs:
        if value is not None:
            holders[value].add(who)
    people = set().union(*holders.values()) if holders else set()
    if not people:
        return l <= 1
    if kind == "distinct":
        most = (set().union(*chosen) for chosen in combinations(holders.values(), min(len(holders), int(l) - 1)))
        return not any(len(covered) >= len(people) for covered in most)
    counts, left = [], len(people)
    for count in sorted((len(h) for h in holders.values()), reverse=True):
        counts.append(min(count, left))
        left -= counts[-1]
    if kind == "frequency":
        return counts[0] * l <= len(people)
    if kind == "recursive":
        return counts[0] < c * sum(counts[int(l) - 1 :])
    shares = [n / len(people) for n in counts if n]
    return -sum(p * math.log(p) for p in shares) >= math.log(l) - 1e-9


def far(pairs: Pairs, overall: dict[str | None, float]) -> float:
    """How far the shares of people who hold each value are from the shares of all that arrived."""
    people = len({who for who, _ in pairs})
    held = Counter(value for _, value in pairs)
    gaps = [held[v] / people - overall.get(v, 0.0) for v in {*held, *overall}]
    return max(sum(g for g in gaps if g > 0), -sum(g for g in gaps if g < 0))


def run(running: Running, frame: pl.DataFrame, check: Any) -> int:
    watched = Watched(running, frame)
    for at in range(frame.height + 1):
        watched.touched.clear()
        running.push(batch(frame[at : at + 1], at)) if at < frame.height else running.flush()
        for slot in watched.touched:
            check(watched.life[slot], at)
    return running.counters["again"]


def alike(rows: list[tuple[str, str | None]]) -> pl.DataFrame:
    """Everyone with the same quasi values: one box for all, as long as it may be given again."""
    frame = pl.DataFrame(rows, schema={"who": pl.String, "diag": pl.String}, orient="row")
    return frame.with_columns(age=pl.lit(3), zip=pl.lit("10"), kind=pl.lit("covid"), same=pl.lit("x"), care=pl.lit("x"))


@st.composite
def repeating(draw: st.DrawFn) -> pl.DataFrame:
    """Few people who come often, most with a value of their own."""
    if draw(st.booleans()):
        return draw(streams(60))
    people = draw(st.integers(2, 9))
    own = draw(st.lists(st.sampled_from("abc"), min_size=people, max_size=people))
    other = st.sampled_from(["a", "b", "c", None])
    odd = draw(st.sampled_from([0, 0, 1, 5]))  # of ten events so many show another value
    one = st.tuples(st.integers(0, people - 1), st.integers(0, 9), other)
    came = draw(st.lists(one, min_size=2, max_size=70))
    return alike([(f"p{who}", value if dice < odd else own[who]) for who, dice, value in came])


@given(st.data())
def test_a_box_is_diverse_in_all_the_people_it_was_given_to(data: st.DataObject) -> None:
    frame = data.draw(repeating())
    kind = data.draw(st.sampled_from(KINDS))
    l = data.draw(st.sampled_from([2, 3] if kind in ("distinct", "recursive") else [1.5, 2, 3]))
    method: Any = data.draw(methods(4, reuse=data.draw(st.sampled_from(["forever", 20]))))
    running = method.start(SCHEMA, [KAnonymity(2), LDiversity(l, "diag", kind=kind)], key=KEY)
    run(running, frame, lambda pairs, _: None if diverse(pairs, kind, l) else pytest.fail(f"{kind} {l}: {pairs}"))


@given(st.data())
def test_a_box_is_close_in_all_the_people_it_was_given_to(data: st.DataObject) -> None:
    frame = data.draw(repeating())
    t = data.draw(st.sampled_from([0.3, 0.5]))
    method: Any = data.draw(methods(4, reuse="forever"))
    running = method.start(SCHEMA, [KAnonymity(2), TCloseness(t, "diag")], key=KEY)
    good = frame["who"].is_not_null() & (frame["age"].is_null() | (frame["age"] <= 20))

    def check(pairs: Pairs, at: int) -> None:
        came = frame[: at + 1].filter(good[: at + 1])["diag"].to_list()
        assert far(pairs, {v: came.count(v) / len(came) for v in came}) <= t + 1e-9

    run(running, frame, check)


@pytest.mark.parametrize("name", DELAYED)
@pytest.mark.parametrize("kind", KINDS[1:])
def test_one_person_again_and_again_is_one_person(name: str, kind: str) -> None:
    """Two people show a and b again and again: by events c stays rare then, by people most come to have it."""
    more = [row for i in range(9) for row in (("p1", "a"), ("p2", "b"), (f"q{i}", "c"))]
    frame = alike([("p1", "a"), ("p2", "b"), ("p3", "c"), *more])
    method: Any = STREAM_METHODS.decode({"use": name, "delay": 2, "reuse": "forever"})
    promise = LDiversity(2, "diag", kind=kind, c=1.5)
    running = method.start(SCHEMA, [KAnonymity(3), promise], key=KEY)
    again = run(running, frame, lambda pairs, _: None if diverse(pairs, kind, 2, 1.5) else pytest.fail(str(pairs)))
    assert name == "castle" or again >= 6  # whom it was given to before may have it again; castle finds company
