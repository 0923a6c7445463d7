"""A first policy, guessed from data: every guess with its reason, for a person to read and correct."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.measures.risk import risk

IDENTIFYING = re.compile(
    r"(^|_|\b)(name|first_?name|last_?name|surname|e?mail|phone|tel|ssn|passport|address|street|iban|ip|ins_?no)($|_|\b)",
    re.I,
)
SUBJECT = re.compile(
    r"^(id|pid|uid|user|user_?id|patient(_?id)?|person(_?id)?|customer(_?id)?|client(_?id)?|subject)$", re.I
)
SENSITIVE = re.compile(r"(diag|disease|illness|salary|income|religion|orientation|verdict|hiv|condition|drug)", re.I)
KNOWN = re.compile(
    r"(zip|postal|plz|age|sex|gender|birth|race|ethnic|country|city|region|state|marital|education|occupation|job|insur|ins_co|work)",
    re.I,
)
CODE = re.compile(r"(zip|postal|plz|postcode)", re.I)
TIME = re.compile(r"^(time|timestamp|ts|event_time|created|date_?time)$", re.I)
WIDE = 0.9  # share of distinct values above which text looks like an identifier


class Guess(NamedTuple):
    """One column's role and hierarchy, why, and its type where the file does not tell it."""

    role: str
    hierarchy: str | None
    why: str
    type: str | None = None


class Draft(NamedTuple):
    """A policy to be read, and a word on the risk before."""

    text: str
    word: str


def suggest(frame: pl.DataFrame, dataset: str, *, k: int = 5) -> Draft:
    """Draft a policy. Looks at names, types and numbers of distinct values; quotes no value."""
    guesses = {name: guess(frame[name], frame.height) for name in frame.columns}
    subjects = [n for n, g in guesses.items() if g.role == "subject"]
    for extra in subjects[1:]:
        guesses[extra] = guesses[extra]._replace(role="identifier", why="a second column that names people")
    quasi = [n for n, g in guesses.items() if g.role == "quasi"]
    before = risk(frame.group_by(quasi).len()["len"].to_numpy().astype(np.int64) if quasi else np.zeros(0, np.int64))
    word = (
        f"as it stands, {before.unique:,} of {before.people:,} rows are alone with their {', '.join(quasi)}"
        if quasi
        else "no column looks like something an outsider knows: are you sure?"
    )
    return Draft(_write(dataset, guesses, quasi, k, word), word)


def guess(column: pl.Series, rows: int) -> Guess:
    """The role of one column by its name, type and variety."""
    distinct = column.n_unique()
    name = column.name
    if TIME.search(name) or (column.dtype == pl.Datetime and distinct > 0.5 * rows):
        return Guess("time", None, "a point in time of an event")
    if SUBJECT.search(name):
        return Guess("subject", None, "its name says whose row it is")
    if IDENTIFYING.search(name):
        return Guess("identifier", None, "its name says that it names someone")
    if SENSITIVE.search(name):
        return Guess("sensitive", None, "its name says that it is nobody's business")
    if CODE.search(name) and not column.dtype.is_float():
        length = int(column.cast(pl.String).drop_nulls().str.len_chars().max() or 1)  # type: ignore[arg-type]
        return Guess("quasi", f"{{use: prefix, length: {length}}}", "a place: outsiders often know it", "str")
    if KNOWN.search(name):
        return Guess("quasi", hierarchy(column), "outsiders often know it")
    if column.dtype == pl.String and rows > 20 and distinct > WIDE * rows:
        return Guess("identifier", None, f"almost every row has its own ({distinct:,} of {rows:,})")
    if column.dtype == pl.String or column.dtype == pl.Boolean:
        return Guess("quasi", hierarchy(column), f"{distinct:,} different values: an outsider may know it")
    if column.dtype == pl.Date:
        return Guess("quasi", "calendar", "a date: an outsider may know it")
    return Guess("plain", None, "a measurement: shown as it is; make it quasi if an outsider may know it")


def hierarchy(column: pl.Series) -> str:
    """A hierarchy that fits the values."""
    if column.dtype.is_numeric():
        known = column.drop_nulls()
        if not len(known):
            return "suppress"
        low, high = float(known.min()), float(known.max())  # type: ignore[arg-type]
        step = 10 ** max(0, int(np.log10(max(1.0, high - low))))
        return f"{{use: range, min: {int(np.floor(low / step) * step)}, max: {int(np.ceil(high / step) * step)}}}"
    if column.dtype in (pl.Date, pl.Datetime):
        return "calendar"
    text = column.cast(pl.String).drop_nulls()
    lengths = set(text.str.len_chars().to_list())
    if len(lengths) == 1 and min(lengths) >= 3 and text.str.contains(r"^\w*\d\w*$").all():
        return f"{{use: prefix, length: {min(lengths)}}}"
    return "suppress"


def _write(dataset: str, guesses: dict[str, Guess], quasi: list[str], k: int, word: str) -> str:
    lines = [
        "# A draft: every role below is a guess. Read it aloud, correct it, then trust it.",
        f"# Risk before: {word}.",
        f"dataset: {_quoted(dataset)}",
        "columns:",
    ]
    width = max((len(_quoted(n)) for n in guesses), default=0) + 1
    for name, found in guesses.items():
        more = f", type: {found.type}" if found.type else ""
        more += f", hierarchy: {found.hierarchy}" if found.hierarchy else ""
        lines.append(f"  {_quoted(name) + ':':<{width}} {{role: {found.role}{more}}}  # {found.why}")
    shown = [n for n, g in guesses.items() if g.role in ("quasi", "sensitive", "plain", "time")]
    sensitive = [n for n, g in guesses.items() if g.role == "sensitive"]
    lines += [
        "views:",
        "  research:  # what is not listed in show is not released",
        f"    show: [{', '.join(_quoted(n) for n in shown)}]",
        "    promises:",
        f"      - {{use: k-anonymity, k: {k}}}",
        *[f"      - {{use: l-diversity, l: 2, column: {_quoted(n)}}}" for n in sensitive],
    ]
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    return (
        name if re.fullmatch(r"[A-Za-z_][\w.-]*", name) else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )
