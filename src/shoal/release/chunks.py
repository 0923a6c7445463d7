"""The face for tables that arrive in chunks: continue from a state, release, verify, then write both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from shoal.core.errors import PromiseError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.schema import Schema
from shoal.promises.base import Promise
from shoal.tables.base import TableMethod
from shoal.tables.continuous import Increment
from shoal.tables.continuous_state import load, save, state_file
from shoal.verifier import Verdict, verify

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
    ) -> None:
        ring = keys or KeyRing()
        key = ring.derive(DEFAULT, "continuous state") if DEFAULT in ring.keys else None
        self._file, self._promises = state_file(state, key), promises
        self._table = load(self._file, schema, promises, method, publish=publish)

    def push(self, frame: pl.DataFrame, *, seed: int = 0) -> tuple[Increment, Verdict | None]:
        """Take a chunk; what may be published now, and the verifier's word on it (none if all is held back)."""
        increment = self._table.push(frame, seed=seed)
        if increment.data is None:
            return increment, None
        quasi, people = self._table.schema.quasi, self._people(increment)
        verdict = verify(increment.data, quasi, self._promises, people=people, every_row=True)
        if not verdict.kept:
            raise PromiseError("the release was not made: a promise would be broken", where="continuous mode")
        return increment, verdict

    def settle(self) -> None:
        """Write down what was taken."""
        save(self._table, self._file)

    def _people(self, increment: Increment) -> pl.Series | None:
        subject = self._table.schema.subject
        if subject is None or increment.data is None:
            return None
        whole = self._table.growing
        held = whole.rest if whole is not None else self._table.released
        return None if held is None else held[subject].tail(increment.data.height)
