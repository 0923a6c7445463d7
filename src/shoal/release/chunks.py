"""Tables that arrive in chunks: continue from a state, release, verify, then write both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
import polars as pl

from shoal.core.errors import UsageError
from shoal.core.frames import from_any
from shoal.core.groups import Finding
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.order import publication_order
from shoal.core.release import Release
from shoal.core.schema import Schema
from shoal.promises.base import Promise
from shoal.release.adversary import Adversary
from shoal.release.base import Job
from shoal.release.judge import Judge
from shoal.tables.base import Progress, TableMethod, silent
from shoal.tables.continuous import Increment
from shoal.tables.continuous_state import load, save, state_file
from shoal.verifier import Verdict

Publish = Literal["whole", "new"]


class Chunks:
    """A growing table and its state file.

    ``push`` releases and verifies, ``settle`` writes the state: publish in between, so that a crash can only repeat a
    chunk, never lose one.
    """

    def __init__(
        self,
        state: Path,
        schema: Schema,
        promises: Sequence[Promise],
        method: TableMethod | None = None,
        *,
        publish: Publish = "whole",
        keys: KeyRing | None = None,
        waived: Sequence[str] = (),
    ) -> None:
        ring = keys or KeyRing()
        # without a key, rows that are held back are never written down (`continuous_state.py` refuses)
        key = ring.derive(DEFAULT, "continuous state") if DEFAULT in ring.keys else None
        self._file, self._judge = state_file(state, key), Judge(schema, tuple(promises))
        self._adversary = Adversary(schema, tuple(promises), waived=tuple(waived))
        self._table = load(self._file, schema, promises, method, publish=publish)

    def push(self, frame: pl.DataFrame, *, seed: int = 0) -> tuple[Increment, Verdict | None]:
        """Take a chunk; what may be published now, and the verifier's word on it (none if all is held back)."""
        increment = self._table.push(frame, seed=seed)
        if increment.data is None:
            return increment, None
        people = self._people(increment)
        # what is held back is not in it: a row of stars is somebody's own, and is counted
        verdict = self._judge.demand(increment.data, people=people, every_row=True)
        found = self._adversary.demand(*self._published(increment.data, people))
        return increment, msgspec.structs.replace(verdict, findings=(*verdict.findings, *found))

    def settle(self) -> None:
        """Write down what was taken."""
        save(self._table, self._file)

    def _published(self, data: pl.DataFrame, people: pl.Series | None) -> tuple[pl.DataFrame, pl.Series | None]:
        """All that is published after this chunk, and whose rows they are: what an attacker can combine."""
        union, subject = self._table.released, self._table.schema.subject
        if union is None:  # the whole table is published each time
            return data, people
        return union.select(self._table.shown), None if subject is None else union[subject]

    def _people(self, increment: Increment) -> pl.Series | None:
        subject = self._table.schema.subject
        if subject is None or increment.data is None:
            return None
        whole = self._table.growing
        held = whole.rest if whole is not None else self._table.released
        return None if held is None else held[subject].tail(increment.data.height)


class ChunkReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one chunk gave.

    >>> made = ChunkReport(title="staff", word="new", released=3, held=1, withheld={}, findings=[], verified=True)
    >>> made.text().splitlines()[0]
    'new'
    """

    title: str
    word: str
    released: int
    held: int
    withheld: dict[str, int]
    findings: list[Finding]
    verified: bool
    notes: list[str] = []

    def json(self) -> str:
        """All figures, for machines."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def text(self) -> str:
        """A few lines for the terminal."""
        lines = [self.word, *map(str, self.findings), *[f"note: {note}" for note in self.notes]]
        return "\n".join([*lines, *[f"withheld: {n:,} rows ({why})" for why, n in self.withheld.items()]])


@dataclass(frozen=True, kw_only=True)
class ChunksJob(Job):
    """One more chunk of a growing table, whose state is in a file."""

    noun: ClassVar[str] = "a chunk of a growing table"

    state: Path
    method: TableMethod | None = None
    publish: Publish = "whole"

    def run(self, data: Any, *, progress: Progress = silent) -> Release:
        """See :class:`Job`. Write the data, then call ``settle`` of the release: only then the chunk is taken."""
        if not self.promises:
            raise UsageError("no promise was asked for", where="append", hint="give k, for example k=5")
        growing = Chunks(self.state, self.schema, self.promises, self.method, publish=self.publish, keys=self.keys,
                         waived=self.waived)  # fmt: skip
        seed = self.draw()
        increment, verdict = growing.push(from_any(data)[0], seed=seed)
        report = ChunkReport(
            title=self.title,
            word=increment.word,
            released=increment.released,
            held=increment.held,
            withheld=dict(increment.withheld),
            findings=[] if verdict is None else list(verdict.findings),
            verified=verdict is not None,
            notes=[*self.notes, *(f"waiver: {name}" for name in self.waived)],
        )
        out = increment.data
        if out is not None and not self.keep_order:
            # the order of the input would tell who came when
            out = out[publication_order(out, seed)]
        return Release(data=out, withheld=dict(increment.withheld), report=report, settle=growing.settle)
