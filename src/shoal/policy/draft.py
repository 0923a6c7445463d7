"""The draft of a policy as a file to be read: roles with reasons, what is hidden and why, the risk of it all."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.core.errors import InputError
from shoal.measures.risk import risk
from shoal.policy.suggest import Guess, guesses
from shoal.policy.yaml import quoted

CURVES = 10  # numbered columns of numbers that make curves
# empty, a number, a date, a mail address: cells of a first row, not what columns are called
VALUE = re.compile(r"^\s*$|^[+-]?[\d.,]+$|^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}|@")


class Draft(NamedTuple):
    """A policy to be read, a word on the risk before, and the questions that are open.

    >>> Draft("columns: {}", "nobody is unique", []).word
    'nobody is unique'
    """

    text: str
    word: str
    questions: list[str]


Decide = Callable[[dict[str, Guess]], dict[str, Guess]]


def suggest(frame: pl.DataFrame, dataset: str, *, k: int = 5, decide: Decide = dict) -> Draft:
    """Draft a policy. Looks at names, types, forms and numbers of different values; quotes no value.

    ``decide`` may change the guesses, for example by asking a person.

    >>> frame = pl.DataFrame({"age": [30, 41, 30], "note": ["a", "b", "c"]})
    >>> suggest(frame, "people", k=2).questions
    ['note']
    """
    if not frame.height:
        raise InputError("the table has no rows", where=dataset, hint="a draft is made from a sample of the data")
    # without a header line, a person's values would appear in the draft as names of columns
    strange = sum(bool(VALUE.search(name)) for name in frame.columns)
    if strange > 1 or strange == frame.width == 1:
        raise InputError(
            f"{strange} of {frame.width} column names look like values",
            where=dataset,
            hint="is the header line missing? Add one with the names of the columns",
        )
    instants = curves(frame)
    found = guesses(frame.drop(instants)) if instants else guesses(frame)
    if instants:
        found = {
            n: g if g.role == "identifier" else g._replace(question="curves show instants only")
            for n, g in found.items()
            if g.derive is None
        }
        found |= {n: Guess("quasi", "an instant of a curve") for n in instants}
    else:
        found = decide(found)
    known = [n for name, g in found.items() if g.shown and g.role == "quasi" for n in g.of or (name,)]
    word = _risk(frame, known)
    questions = [n for n, g in found.items() if g.question is not None and not instants]
    return Draft(_write(dataset, found, k, word, curves=bool(instants)), word, questions)


def curves(frame: pl.DataFrame) -> list[str]:
    """Numeric columns that are one column at many instants: a common name and numbers that rise by one.

    >>> len(curves(pl.DataFrame({"who": [1], **{f"W{week}": [week] for week in range(52)}})))
    52
    """
    stems: dict[str, list[tuple[int, str]]] = {}
    for name, dtype in frame.schema.items():
        parts = re.fullmatch(r"(.*?)(\d+)", name)
        if parts is not None and dtype.is_numeric():
            stems.setdefault(parts[1], []).append((int(parts[2]), name))
    numbered = max(stems.values(), key=len, default=[])
    rising = all(b[0] - a[0] == 1 for a, b in pairwise(numbered))
    return [name for _, name in numbered] if len(numbered) >= CURVES and rising else []


def _risk(frame: pl.DataFrame, quasi: list[str]) -> str:
    """What the quasi columns tell together, as they stand; and the column that tells most alone."""
    if not quasi:
        return "no column looks like something an outsider knows: name at least one as quasi"
    sizes = frame.group_by(quasi).len()["len"].to_numpy().astype(np.int64)
    together = risk(sizes)
    alone = {n: int((frame.group_by(n).len()["len"] == 1).sum()) for n in quasi}
    worst = max(alone, key=lambda n: alone[n])
    listed = ", ".join(quasi) if len(quasi) <= 8 else f"{len(quasi)} columns together"
    return (
        f"as it stands, {together.unique:,} of {together.people:,} rows are alone with their {listed} "
        f"(with {worst} by itself: {alone[worst]:,}); {together.at_risk:.0%} share them with fewer than 5"
    )


def _write(dataset: str, found: dict[str, Guess], k: int, word: str, *, curves: bool) -> str:
    lines = [
        "# A draft: every role below is a guess. Read it, correct it, then use it.",
        f"# Risk before: {_one_line(word)}.",
        f"dataset: {quoted(dataset)}",
        "columns:",
    ]
    width = max((len(quoted(n)) for n in found), default=0) + 1
    for name, guess in found.items():
        more = f", type: {guess.type}" if guess.type else ""
        more += f", derive: {guess.derive}" if guess.derive else ""
        more += f", hierarchy: {guess.hierarchy}" if guess.hierarchy and guess.shown else ""
        why = guess.why if guess.question is None else f"{guess.why}. HIDDEN until you decide: {guess.question}"
        lines.append(f"  {quoted(name) + ':':<{width}} {{role: {guess.role}{more}}}  # {_one_line(why)}")
    shown = [n for n, g in found.items() if g.shown]
    hidden = [n for n, g in found.items() if g.question is not None]
    diverse = [n for n in shown if found[n].role == "sensitive"]
    lines += [
        "views:",
        "  research:  # what is not listed in show is not released",
        f"    show: [{', '.join(quoted(n) for n in shown)}]",
        *([f"    # undecided, not shown: {', '.join(quoted(n) for n in hidden)}"] if hidden else []),
        "    hidden: drop",
        "    promises:",
        f"      - {{use: kP-anonymity, k: {k}, p: {max(2, k // 2)}}}"
        if curves
        else f"      - {{use: k-anonymity, k: {k}}}",
        *[f"      - {{use: l-diversity, l: 2, column: {quoted(n)}}}" for n in diverse],
    ]
    return "\n".join(lines) + "\n"


def _one_line(comment: str) -> str:
    """Names of columns stand in comments: a line break in one would end the comment, and the rest be read as policy."""
    return "".join(c if c.isprintable() else " " for c in comment)
