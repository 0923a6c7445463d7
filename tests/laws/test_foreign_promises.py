"""Promises of other packages: every table method keeps them, and findings report them rightly."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shoal.api import anonymize
from shoal.core.errors import PromiseError, UsageError
from shoal.core.groups import Groups
from shoal.core.schema import Column, Schema
from shoal.core.table import code
from shoal.promises.base import Promise, Rule
from shoal.promises.k_anonymity import KAnonymity
from shoal.streams.batches import Batches
from shoal.tables import TABLE_METHODS


class Spread(Promise, frozen=True, tag="spread"):
    """The numbers of every group lie at least ``least`` apart: nobody's is known to a smaller interval."""

    least: float
    column: str

    @property
    def asked(self) -> float:
        return self.least

    @property
    def sensitive(self) -> str:
        return self.column

    def measure(self, groups: Groups):
        frame = pl.DataFrame({"group": groups.labels, "value": groups.sensitive[self.column]})
        ends = frame.group_by("group").agg(pl.col("value").max() - pl.col("value").min()).sort("group")
        reached = ends["value"].to_numpy().astype(np.float64)
        return reached, reached >= self.least


class Share(Promise, frozen=True, tag="share"):
    """No value is shared by more than ``most`` of a group's rows; every group has ``people`` people."""

    higher_is_worse: ClassVar[bool] = True

    most: float
    column: str
    people: int = 1

    @property
    def asked(self) -> float:
        return self.most

    @property
    def sensitive(self) -> str:
        return self.column

    def rule(self) -> Rule:
        return Rule(k=self.people, complete=False)

    def measure(self, groups: Groups):
        group, _, count, _ = groups.counts(self.column)
        top = np.zeros(groups.count)
        np.maximum.at(top, group, count)
        reached = top / np.bincount(group, weights=count, minlength=groups.count)
        return reached, (reached <= self.most) & (groups.sizes() >= self.people)


class Five(Promise, frozen=True, tag="five"):
    """A promise with a complete rule of its own."""

    @property
    def asked(self) -> float:
        return 5

    def rule(self) -> Rule:
        return Rule(k=5)

    def measure(self, groups: Groups):
        return groups.sizes().astype(np.float64), groups.sizes() >= 5


ROW = st.tuples(
    st.integers(0, 30), st.sampled_from("abc"), st.integers(0, 9), st.sampled_from("xyz"), st.integers(0, 9)
)
FRAMES = st.lists(ROW, min_size=2, max_size=40).map(
    lambda rows: pl.DataFrame(rows, schema=["age", "town", "pay", "ill", "who"], orient="row")
)
ASKED = st.sampled_from(
    [
        [Spread(3, "pay")],
        [Share(0.6, "ill")],
        [KAnonymity(2), Spread(4, "pay")],
        [KAnonymity(3), Share(0.5, "ill"), Spread(2, "pay")],
        [Share(0.7, "ill", people=3)],
        [Five()],
    ]
)


@pytest.mark.parametrize("name", TABLE_METHODS.names())
@settings(max_examples=25)
@given(frame=FRAMES, promises=ASKED, people=st.booleans(), suppress=st.booleans())
def test_every_table_method_keeps_promises_it_never_heard_of(name, frame, promises, people, suppress):
    kind = TABLE_METHODS.get(name)
    method = kind(suppress=0.2) if suppress and "suppress" in kind.__struct_fields__ else kind()
    columns = {"age": Column("quasi"), "town": Column("quasi"), "pay": Column("sensitive"), "ill": Column("sensitive")}
    schema = Schema(columns | ({"who": Column("subject")} if people else {}))
    try:
        # a sensitive value that only one person has links their rows: not what this is about
        release = anonymize(frame, schema=schema, promises=promises, method=method, seed=0, waive=["linked-rows"])
    except PromiseError as error:
        if error.where != "promises":  # refused by the verifier: the method did not keep it
            raise
        assume(False)
    assert release.data.height >= 0.8 * frame.height
    assert all(finding.kept for finding in release.report.findings)


def test_what_the_whole_table_cannot_reach_is_refused_with_the_right_figures():
    frame = pl.DataFrame({"age": [1, 2, 3], "pay": [5, 6, 7]})
    table = code(frame, Schema({"age": Column("quasi"), "pay": Column("sensitive")}))
    with pytest.raises(PromiseError, match=r"spread cannot be reached: asked 3, the whole table .* reaches 2"):
        TABLE_METHODS.decode("local").group(table, [Spread(3, "pay")])
    with pytest.raises(UsageError, match="'ill' is not a sensitive column"):
        TABLE_METHODS.decode("mondrian").group(table, [Spread(3, "ill")])


def test_the_worst_group_is_the_one_on_the_promises_worse_side():
    groups = Groups(np.array([0, 0, 1, 1], np.int32), {"ill": pl.Series(["x", "y", "x", "x"])})
    assert Share(0.9, "ill").judge(groups).reached == 1.0
    assert not Share(0.9, "ill").judge(groups).kept
    numbers = Groups(np.array([0, 0, 1, 1], np.int32), {"pay": pl.Series([1, 9, 4, 5])})
    assert Spread(2, "pay").judge(numbers).reached == 1.0


def test_a_stream_keeps_a_foreign_promise_with_a_complete_rule_and_refuses_others_truthfully():
    schema = Schema({"town": Column("quasi"), "ill": Column("sensitive")})
    running = Batches(delay=20).start(schema, [Five()], key=bytes(32))
    assert running is not None
    with pytest.raises(UsageError, match="share has no complete compiled rule"):
        Batches(delay=20).start(schema, [Share(0.5, "ill")], key=bytes(32))
