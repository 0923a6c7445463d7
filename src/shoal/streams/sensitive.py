"""Sensitive values of a stream as codes, and how often each was seen so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.comparable import comparable
from shoal.core.errors import UsageError
from shoal.core.levels import Levels
from shoal.core.schema import Schema
from shoal.kernels.shared.promises import DISTINCT, T_EQUAL, Rules
from shoal.promises.base import Promise, Rule
from shoal.promises.rules import KINDS, least_people
from shoal.streams.base import Reason
from shoal.streams.texts import Printer, number

VALUES = 65_536  # distinct values of a sensitive column that are told apart; what comes later is withheld
NONE = -1  # the fingerprint of a missing value


class Values:
    """One promise about one sensitive column: codes of its values, counts of all that arrived."""

    def __init__(self, use: str, rule: Rule, schema: Schema, key: bytes) -> None:
        name = rule.column
        if name not in schema.sensitive:
            raise UsageError(
                f"{name!r} is not a sensitive column",
                where=use,
                hint=f"the sensitive columns are: {', '.join(schema.sensitive) or 'none'}",
            )
        self.rule = rule
        self.column = name
        self.kind = KINDS[rule.check]
        self.counts = np.zeros(1, np.int64)
        self._printer = Printer(key, f"sensitive {name}")
        self._code: dict[int, int] = {}
        self.levels: Levels | None = None
        self._ends: tuple[float, float] | None = None
        hierarchy = schema[name].hierarchy
        if rule.check == "hierarchical":
            leaves = None if hierarchy is None else hierarchy.leaves()
            if hierarchy is None or leaves is None:
                raise UsageError(
                    f"hierarchical distance in a stream needs a tree of column {name!r} that is known beforehand",
                    where=use,
                    hint="declare `hierarchy: {use: tree, file: …}`, or use distance `equal`",
                )
            self.levels, codes = hierarchy.compile(leaves)
            self._code = dict(zip(self._printer.column(leaves).tolist(), codes.tolist(), strict=True))
        elif rule.check == "ordered":
            if hierarchy is None or hierarchy.ends is None:
                raise UsageError(
                    f"ordered distance in a stream needs the ends of column {name!r}",
                    where=use,
                    hint="declare `hierarchy: {use: range, min: …, max: …}`",
                )
            if hierarchy.ends[1] - hierarchy.ends[0] >= VALUES:
                raise UsageError(f"ordered distance counts at most {VALUES:,} whole numbers", where=use)
            self._ends = hierarchy.ends

    @property
    def size(self) -> int:
        """Number of values told apart."""
        if self.levels is not None:
            return self.levels.size
        if self._ends is not None:
            return int(self._ends[1] - self._ends[0]) + 1
        return max(1, len(self._code))

    @property
    def missing(self) -> int:
        """The code of a missing value, or -1."""
        return self._code.get(NONE, -1)

    def code(self, values: pl.Series) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Codes and what is wrong with a value."""
        if self._ends is not None:
            return self._ordered(values)
        prints = self._printer.column(comparable(values).cast(pl.String))  # as the verifier reads them
        prints = np.where(prints == 0, NONE, prints)
        local, first = number(prints)
        codes = np.full(max(1, len(first)), -1, np.int32)
        for at, value in enumerate(prints[first].tolist()):
            if value not in self._code and self.levels is None and len(self._code) < VALUES:
                self._code[value] = len(self._code)
            codes[at] = self._code.get(value, -1)
        out = codes[local] if len(local) else np.zeros(0, np.int32)
        why = Reason.UNKNOWN if self.levels is not None else Reason.FULL
        return np.maximum(out, 0), np.where(out < 0, np.uint8(why), np.uint8(0))

    def _ordered(self, values: pl.Series) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        assert self._ends is not None
        least, most = self._ends
        array = values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        with np.errstate(invalid="ignore"):
            known = (array >= least) & (array <= most) & (array == np.floor(array))
        codes = np.where(known, array - least, 0).astype(np.int32)
        return codes, np.where(known, np.uint8(0), np.uint8(Reason.UNKNOWN))

    @property
    def state(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Fingerprints with their codes, and the counts: for a snapshot."""
        return list(self._code.items()), self.counts.tolist()

    def restore(self, state: tuple[list[tuple[int, int]], list[int]]) -> None:
        """Take over a snapshot."""
        self._code = dict(state[0])
        self.counts = np.array(state[1], np.int64)


class Sensitive:
    """All promises of a view: k, and what is promised about sensitive columns.

    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.core.schema import Column
    >>> Sensitive([KAnonymity(5)], Schema({"age": Column("quasi")}), bytes(32)).crowd
    5
    """

    def __init__(self, promises: Sequence[Promise], schema: Schema, key: bytes) -> None:
        for promise in promises:
            if promise.about != "groups":
                raise UsageError(
                    f"{promise.use} is not a promise about groups",
                    where="promises",
                    hint="k-anonymity, l-diversity and t-closeness are kept here",
                )
            if promise.rule().tables_only or not promise.rule().complete:
                raise UsageError(
                    f"{promise.use} has no complete compiled rule, and a stream keeps only what its kernels can check",
                    where="promises",
                    hint="k-anonymity, l-diversity and t-closeness are kept here; table methods keep it by merging",
                )
        self.k = least_people(promises)
        asked = [(p.use, p.rule()) for p in promises]
        self.values = [Values(use, rule, schema, key) for use, rule in asked if rule.check]
        self.columns = sorted({v.column for v in self.values})

    @property
    def crowd(self) -> int:
        """The fewest people a group can have."""
        least = [int(np.ceil(v.rule.bound)) for v in self.values if v.kind < T_EQUAL]
        return max([self.k, *least])

    @property
    def counted(self) -> bool:
        """Whether a promise needs the counts of all values a box was published with."""
        return any(v.kind != DISTINCT for v in self.values)

    def code(self, frame: pl.DataFrame) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Codes [promises, rows], and what is wrong with a row."""
        codes = np.zeros((len(self.values), frame.height), np.int32)
        reason = np.zeros(frame.height, np.uint8)
        for s, values in enumerate(self.values):
            codes[s], wrong = values.code(frame[values.column])
            reason = np.where(reason == 0, wrong, reason)
        return codes, reason

    def counts(self, rules: Rules) -> NDArray[np.float64]:
        """How often each value arrived so far [promises, values]: kernels that go event by event count on."""
        counts = np.zeros(rules.overall.shape)
        for s, values in enumerate(self.values):
            known = min(len(values.counts), values.size)
            counts[s, :known] = values.counts[:known]
        return counts

    def count(self, codes: NDArray[np.int32]) -> None:
        """Tuples arrived with these values [promises, tuples]."""
        for s, values in enumerate(self.values):
            if values.kind >= T_EQUAL and codes.shape[1]:
                more = np.bincount(codes[s], minlength=max(values.size, len(values.counts)))
                more[: len(values.counts)] += values.counts
                values.counts = more

    def take_counts(self, counts: NDArray[np.float64]) -> None:
        """What a kernel counted."""
        for s, values in enumerate(self.values):
            values.counts = counts[s, : values.size].astype(np.int64)

    def rules(self, people: NDArray[np.int64] | None, codes: NDArray[np.int32]) -> Rules:
        """The promises about these tuples, as arrays."""
        n = codes.shape[1]
        s = len(self.values)
        size = np.array([v.size for v in self.values], np.int64)
        most = int(size.max(initial=1))
        depth = np.array([v.levels.depth if v.levels is not None else 1 for v in self.values], np.int64)
        node = np.zeros((s, most, int(depth.max(initial=1))), np.int32)
        overall = np.zeros((s, most))
        person = np.zeros(0, np.int32)
        pair = np.zeros((s, 0 if people is None else n), np.int32)
        pairs = np.zeros(s, np.int64)
        count = 0
        if people is not None:
            person, first = number(people)
            count = len(first)
        for at, values in enumerate(self.values):
            if values.levels is not None:
                node[at, : values.levels.size, : values.levels.depth] = values.levels.codes
            total = values.counts.sum()
            known = min(len(values.counts), values.size)
            overall[at, :known] = values.counts[:known] / max(1, total)
            if people is not None:
                both = person.astype(np.int64) * most + codes[at] + 1
                pair[at], first = number(both)
                pairs[at] = len(first)
        return Rules(
            self.k,
            person,
            count,
            codes,
            pair,
            pairs,
            np.array([v.kind for v in self.values], np.int64),
            np.array([v.rule.bound for v in self.values], np.float64),
            np.array([v.rule.c for v in self.values], np.float64),
            size,
            overall,
            node,
            depth,
            np.array([-1 if people is None else v.missing for v in self.values], np.int64),
        )
