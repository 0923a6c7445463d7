"""Whatever is listed in a family keeps the laws that plug-ins are held to, and these laws notice who does not."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import numpy as np
import pytest

from shoal.core.groups import Groups
from shoal.core.hierarchy import HIERARCHIES
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.spec import Family
from shoal.masks import MASKS
from shoal.masks.condition import Condition
from shoal.promises import PROMISES
from shoal.promises.base import Rule
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.promises.z_anonymity import ZAnonymity
from shoal.series import SERIES_METHODS
from shoal.series.banded import Banded
from shoal.series.method import SeriesGrouping
from shoal.streams import STREAM_METHODS
from shoal.streams.base import Outcomes
from shoal.streams.batches import Batches, RunningBatches
from shoal.tables import TABLE_METHODS
from shoal.tables.base import Grouping
from shoal.tables.mondrian import Mondrian
from shoal.testing import (
    HandClock,
    ListSink,
    check_hierarchy,
    check_mask,
    check_promise,
    check_series_method,
    check_stream_method,
    check_table_method,
)

DATES = [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1), datetime.date(1999, 12, 31)]
# family → member → its parameters, and what its law is called with; a member without parameters needs no entry
GIVEN: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "hierarchy": {
        "tree": ({"nodes": {"a": ["x", "y"], "b": ["z"]}}, {}),
        "range": ({"min": 0, "max": 40}, {}),
        "intervals": ({"borders": (10, 20)}, {"values": [1, 12, 15, 25]}),
        "prefix": ({"length": 5}, {}),
        "path": ({"depth": 2}, {"values": ["a.x", "a.y", "b", "b.x.y"]}),
        "calendar": ({}, {"values": DATES}),
        "grid": ({"sizes": (100, 500, 1000)}, {"values": ["52.5,13.4", "52.5001,13.4", "48.1,11.6"]}),
        "custom": ({"function": lambda v, at: str(v // 10**at), "levels": 3}, {"values": [1, 12, 17, 345]}),
    },
    "promise": {
        "k-anonymity": ({"k": 3}, {}),
        "l-diversity": ({"l": 2, "column": "s"}, {}),
        "t-closeness": ({"t": 0.3, "column": "s"}, {}),
        "alpha-k-anonymity": ({"alpha": 0.6, "k": 3, "column": "s"}, {}),
        "beta-likeness": ({"beta": 1, "column": "s"}, {}),
        "k-map": ({"k": 9}, {}),
        "delta-presence": ({"most": 0.6}, {}),
        "trajectory-anonymity": ({"k": 2}, {}),
        "z-anonymity": ({"z": 3, "window": "1h"}, {}),
        "kP-anonymity": ({"k": 4, "p": 2}, {}),
    },
    "mask": {
        "substitute": ({"value": "someone"}, {}),
        "tokenize": ({}, {}),
        "generalize": ({"level": 1}, {"hierarchy": Prefix(4)}),
        "bucket": ({"width": 10}, {"kind": "int"}),
        "noise": ({"spread": 2.5}, {"kind": "float"}),
        "date-shift": ({"days": 30}, {"kind": "date"}),
        "conditional": ({"when": Condition(matches="^[0-9]+$"), "then": "*"}, {}),
        "aggregate": ({"function": "mean", "k": 2}, {"kind": "float"}),
        "microaggregate": ({"k": 3}, {"kind": "int"}),
        "shuffle": ({"k": 2}, {"kind": "int"}),
        "rank-swap": ({"k": 2}, {"kind": "int"}),
        "round": ({"to": 10}, {"kind": "int"}),
        "clip": ({"max": 65}, {"kind": "int"}),
        "time-part": ({"part": "month"}, {"kind": "date"}),
        "replace": ({"find": "[0-9]+"}, {}),
        "pram": ({"values": ("10115", "K15489")}, {}),
    },
    "stream_method": {
        "z-anonymity": ({}, {"promises": [ZAnonymity(3, "1h")]}),
        "batches": ({"delay": 12}, {}),
        "castle": ({"delay": 12}, {}),
        "fads": ({"delay": 12}, {}),
        "curves": ({"window": "10ms", "every": "5ms", "missing": "previous"}, {"promises": [KPAnonymity(3, 2)]}),
    },
}
CHECKS = [
    (HIERARCHIES, check_hierarchy),
    (PROMISES, check_promise),
    (MASKS, check_mask),
    (TABLE_METHODS, check_table_method),
    (STREAM_METHODS, check_stream_method),
    (SERIES_METHODS, check_series_method),
]
MEMBERS = [(family, check, name) for family, check in CHECKS for name in family.names()]


@pytest.mark.parametrize(("family", "check", "name"), MEMBERS, ids=[f"{f.name}-{n}" for f, _, n in MEMBERS])
def test_every_listed_member_keeps_its_laws(family: Family, check, name):
    parameters, words = GIVEN.get(family.name, {}).get(name, ({}, {}))
    kind = family.get(name)
    needed = [f.name for f in msgspec.structs.fields(kind) if f.required and f.name not in parameters]
    assert not needed, f"GIVEN[{family.name!r}] lacks {name!r}: say its {', '.join(needed)}"
    check(kind(**parameters), **words)


class Fixed(Tree, frozen=True, tag="fixed"):
    """A tree that is built from the data and says that it stays as it is."""

    @property
    def grows(self) -> None:
        return None


def test_a_hierarchy_whose_labels_depend_on_other_values_is_noticed():
    with pytest.raises(AssertionError, match="fixed: value 0 has the same labels alone as among others"):
        check_hierarchy(Fixed(children=2))


def test_a_hierarchy_that_forgets_values_is_noticed():
    class Forgets(Suppress, frozen=True, tag="forgets"):
        def compile(self, values, *, where="hierarchy"):
            levels, codes = super().compile(values)
            return levels, np.where(np.arange(len(codes)) == 0, -1, codes)

    with pytest.raises(AssertionError, match="forgets: the values it was given are known"):
        check_hierarchy(Forgets())


class Even(KAnonymity, frozen=True, tag="even"):
    """Not closed under union: exactly k people."""

    def rule(self) -> Rule:
        return Rule(complete=False)

    def measure(self, groups: Groups):
        sizes = groups.sizes()
        return sizes.astype(np.float64), sizes == self.k


class Lax(KAnonymity, frozen=True, tag="lax"):
    """Its definition asks for one person more than its rule."""

    def measure(self, groups: Groups):
        sizes = groups.sizes()
        return sizes.astype(np.float64), sizes > self.k


def test_promises_that_methods_cannot_trust_are_noticed():
    with pytest.raises(AssertionError, match="even: two groups that keep it also keep it together"):
        check_promise(Even(5))
    with pytest.raises(AssertionError, match="lax: a complete rule accepts no group that breaks it"):
        check_promise(Lax(3))


class Pairs(Mondrian, frozen=True, tag="pairs"):
    """Groups of two, whatever was promised."""

    def group(self, table, promises, *, seed=0, progress=None):
        super().form(table, promises, seed=seed)
        return Grouping((np.arange(table.size) // 2).astype(np.int32))


def test_a_table_method_that_breaks_promises_is_noticed():
    with pytest.raises(AssertionError, match="pairs: the verifier accepts what it releases"):
        check_table_method(Pairs())


class RunningLoss(RunningBatches):
    """Forgets the events of its first answer."""

    def flush(self) -> Outcomes:
        out = super().flush()
        return Outcomes(None, withheld=out.withheld, reasons=out.reasons)


class Loses(Batches, frozen=True, tag="loses"):
    def start(self, schema, promises, *, key, seed=0, snapshot=None):
        return RunningLoss(self.bounds(), schema, promises, key, snapshot)


def test_a_stream_method_that_loses_events_is_noticed():
    with pytest.raises(AssertionError, match="loses: "):
        check_stream_method(Loses(delay=20))


class Singles(Banded, frozen=True, tag="singles"):
    def group(self, values, encoded, k, p, *, seed=0, progress=None):
        found = super().group(values, encoded, k, p, seed=seed)
        return SeriesGrouping(np.arange(len(values), dtype=np.int32), found.word)


def test_a_series_method_that_groups_nobody_is_noticed():
    with pytest.raises(AssertionError, match="singles: the verifier accepts what it releases"):
        check_series_method(Singles())


def test_a_clock_moved_by_hand_does_not_go_back():
    with pytest.raises(ValueError, match="does not go back"):
        HandClock().move(-1)
    assert ListSink().frame.is_empty()
