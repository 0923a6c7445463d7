"""A role's consumer: reads a view with the role's own rights, measures latency, and checks what it reads.

Checked live: that no column appears which the role does not see, and the view's promises, by the judge that is handed
in, over everything read so far and over what a record carries beside its columns. A group is whole only when the
records of a commit have all been read, so a promise is judged when every partition is read to its end, and what looks
broken is judged again after a quiet moment. z-anonymity cannot be judged from a view: who supported a value may have
been withheld.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import polars as pl

from shoal.connect.kafka import READ_NOW, TIMEOUT, kind_of, library, told, topics_of
from shoal.core.cells import SUPPRESSED
from shoal.core.errors import InputError, PolicyError
from shoal.core.groups import Finding
from shoal.policy.document import Policy
from shoal.policy.paths import EACH, steps
from shoal.promises.base import those_about
from shoal.runtime.kafka.provision.served import first_topic
from shoal.runtime.kafka.serve.stateful import made_columns, reuse_told, reuses
from shoal.runtime.kafka.tools.observed import Observed
from shoal.views.role_view import RoleView

Judge = Callable[[pl.DataFrame], tuple[Finding, ...]]
QUIET = 1.5  # seconds without a record before a broken promise is believed


class Watched(msgspec.Struct):
    """What a role's consumer saw. No values, ever."""

    records: int = 0
    unreadable: int = 0
    tombstones: int = 0
    foreign: int = 0  # records that show what the role must not see
    seconds: float = 0.0
    latency_ms: dict[str, float] = {}
    checks: int = 0
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether everything that can be checked holds."""
        return self.foreign == 0 and all(f.kept for f in self.findings)


class Watch:
    """Reads the view of one role.

    ``judge`` gets the released columns, and beside them those of :mod:`.observed`, and gives findings; ``decode`` makes
    JSON.
    """

    def __init__(
        self,
        policy: Policy,
        role: str,
        properties: Mapping[str, Any],
        *,
        judge: Judge | None = None,
        decode: Callable[[str, bytes], bytes] | None = None,
        sent: str | None = None,
        most: int = 2_000_000,
        every: float = 5.0,
    ) -> None:
        self._kafka = library()
        self._role, self._decode = role, decode
        view = policy.view(role)
        self._view = RoleView.of(policy, role)
        self._topic = first_topic(policy, role)
        self._judge = judge if any(p.about != "events" for p in view.promises) else None
        self._sent, self._most, self._every = sent, most, every
        if sent is not None and sent not in self._view.shown:
            raise PolicyError(f"the role does not see the column {sent!r} in clear", where=f"views.{role}.show")
        self._made = made_columns(policy, role)
        self._columns = self._judged(policy, role)
        self._held: dict[str, list[Any]] = {c: [] for c in self._columns}
        self._observed = Observed()
        self._late: list[float] = []
        self._failed: list[Any] = []  # a refused login shows up there and nowhere else
        self._consumer = self._kafka.Consumer(
            {
                "log_level": 0,
                "error_cb": self._failed.append,
                **properties,
                "group.id": f"{role}.watch",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                **READ_NOW,
                "isolation.level": "read_committed",
            }
        )
        self._ended: set[int] = set()
        self._partitions = 0
        self.seen = Watched(notes=tuple(self._notes(policy)))

    def run(
        self,
        *,
        stop: Callable[[], bool] = lambda: False,
        limit: int | None = None,
        to_end: bool = False,
        write: Callable[[bytes], object] | None = None,
    ) -> Watched:
        """Read from the beginning until stopped, until ``limit`` records, or to the end as it is now."""
        start = checked = time.monotonic()
        judged = -1
        try:
            self._assign()
            while not stop() and (limit is None or self.seen.records < limit):
                self._take(self._consumer.consume(2_000, 0.2), write)
                at_end = len(self._ended) == self._partitions
                if at_end and judged != self.seen.records and time.monotonic() - checked >= self._every:
                    self._check(write)
                    checked, judged = time.monotonic(), self.seen.records
                if at_end and to_end:
                    break
            if self._ended and len(self._ended) == self._partitions:
                self._check(write)
            elif self._judge is not None:
                self.seen.notes += ("stopped before the end of the topic: the last groups may not be whole",)
        except self._kafka.KafkaException as error:
            raise told(error.args[0], f"reading {self._topic}") from None
        finally:
            self._consumer.close()
        self.seen.seconds = time.monotonic() - start
        if self._late:
            marks = np.percentile(self._late, [50, 95, 99, 100])
            self.seen.latency_ms = dict(zip(("p50", "p95", "p99", "max"), map(float, marks), strict=True))
        return self.seen

    def _assign(self) -> None:
        seen = topics_of(self._consumer, self._failed, "asking for topics")
        self._topic = newest(self._topic, seen)
        listed = self._consumer.list_topics(self._topic, timeout=TIMEOUT).topics[self._topic]
        if listed.error is not None:
            raise told(listed.error, f"asking for {self._topic}")
        self._partitions = len(listed.partitions)
        first = self._kafka.OFFSET_BEGINNING
        for partition in listed.partitions if self._judge is not None else ():
            place = self._kafka.TopicPartition(self._topic, partition)
            self._observed.begin(partition, self._consumer.get_watermark_offsets(place, timeout=TIMEOUT)[0])
        if self._observed.cut:
            self.seen.notes += ("the topic no longer has its beginning (retention): its oldest commits are not judged",)
        self._consumer.assign([self._kafka.TopicPartition(self._topic, p, first) for p in listed.partitions])

    def _take(self, messages: list[Any], write: Callable[[bytes], object] | None) -> int:
        now, taken = time.time() * 1000, 0
        for message in messages:
            kind, partition = kind_of(message, f"reading {self._topic}"), message.partition()
            if kind == "end":
                self._ended.add(partition)
            if kind != "record":
                continue
            self._ended.discard(partition)
            taken += 1
            self._one(message, now)
            if write is not None and message.value() is not None:
                write(message.value() + b"\n")
        return taken

    def _one(self, message: Any, now: float) -> None:
        value = message.value()
        self.seen.records += 1
        self._observed.pass_by(message.partition(), message.offset())
        if value is None:
            self.seen.tombstones += 1
            return
        try:
            record = msgspec.json.decode(value if self._decode is None else self._decode(self._role, value))
        except (msgspec.DecodeError, InputError):
            self.seen.unreadable += 1
            return
        self.seen.foreign += self._shows_too_much(record)
        if self._sent is not None and isinstance(then := record.get(self._sent), (int, float)):
            self._late.append(now - then)
        if self._judge is not None and self.seen.records <= self._most:
            self._observed.take(message)
            for column, held in self._held.items():
                held.append(_at(record, column))

    def _shows_too_much(self, record: dict[str, Any]) -> bool:
        declared = {steps(c)[0] for c in self._view.schema.columns} if self._made is None else self._made
        if any(name not in declared for name in record):
            return True
        return any(_at(record, c) not in (None, SUPPRESSED) for c in self._view.hides if EACH not in c)

    def _check(self, write: Callable[[bytes], object] | None) -> None:
        if self._judge is None:
            return
        self.seen.findings = self._judge(self._frame())
        self.seen.checks += 1
        while not all(f.kept for f in self.seen.findings):
            # perhaps a commit was half visible: believe it only when nothing more comes
            before, end = self.seen.records, time.monotonic() + QUIET
            while time.monotonic() < end:
                self._take(self._consumer.consume(2_000, 0.2), write)
            self.seen.findings = self._judge(self._frame())
            self.seen.checks += 1
            if self.seen.records == before:
                return

    def _frame(self) -> pl.DataFrame:
        columns = pl.DataFrame({c: pl.Series(c, held, strict=False) for c, held in self._held.items()})
        return self._observed.beside(columns)

    def _judged(self, policy: Policy, role: str) -> list[str]:
        """The columns a judge needs: what an outsider may know, what is sensitive, and the person if it is shown."""
        if self._judge is None:
            return []
        if self._made is not None:
            return list(self._made)
        wanted = [*policy.schema.quasi, *policy.schema.sensitive]
        wanted += [policy.schema.subject] if policy.schema.subject is not None else []
        return [c for c in wanted if policy.view(role).shows(c) and EACH not in c]

    def _notes(self, policy: Policy) -> list[str]:
        notes = []
        if reuses(policy, self._role):
            notes.append(reuse_told(self._role))
        if those_about(policy.view(self._role).promises, "events"):
            notes.append("z-anonymity cannot be verified from a view: who supported a value may have been withheld")
        if self._sent is None:
            notes.append("latency is not measured: a view's timestamps are coarse; show a column and name it (--sent)")
        return notes


def _at(record: Any, column: str) -> Any:
    for step in steps(column):
        if not isinstance(record, dict):
            return None
        record = record.get(step)
    return record


def newest(first: str, topics: Iterable[str]) -> str:
    """The newest version of a view among the topics a user can see; the first if there is none.

    >>> newest("patients.nurse", ["patients.nurse", "patients.nurse.v3", "patients.nurse.v12", "patients.nurses"])
    'patients.nurse.v12'
    """
    versions = {int(t[len(first) + 2 :]): t for t in topics if re.fullmatch(re.escape(first) + r"\.v\d+", t)}
    return versions[max(versions)] if versions else first
