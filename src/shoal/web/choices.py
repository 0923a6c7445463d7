"""What a person chose, as values; and the policy that says it. The studio runs that policy and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import polars as pl
import yaml

from shoal.core.errors import UsageError
from shoal.policy.draft import curves
from shoal.policy.suggest import EPOCHS, TIME, Guess, guesses, words
from shoal.report.chart.svg import clean
from shoal.tables import TABLE_METHODS

Kind = Literal["table", "curves", "stream"]
VIEW = "research"
HIDDEN = "hidden"  # a role of the page only: nobody has decided, and what is not decided is not shown
ROLES = {
    "quasi": "an outsider may know it",
    "sensitive": "nobody must learn it",
    "plain": "neither: shown as it is",
    "subject": "says whose row it is",
    "identifier": "a name, never shown",
    "time": "when it happened",
    HIDDEN: "not decided: not shown",
}
SHOWN = ("quasi", "sensitive", "plain", "time")


class Choice(msgspec.Struct, frozen=True):
    """One column: what a policy says of it, why, and whether anybody decided."""

    role: str
    why: str
    said: dict[str, Any] = {}  # type, format, hierarchy, derive: as a policy writes them
    of: tuple[str, ...] = ()  # the columns it is made from

    @property
    def hierarchy(self) -> Any:
        """Its hierarchy as a policy writes it, or nothing."""
        return self.said.get("hierarchy")

    @classmethod
    def of_guess(cls, guess: Guess) -> Choice:
        """The guess as a choice; an open question is a column nobody decided on.

        >>> Choice.of_guess(Guess("quasi", "known", "{use: prefix, length: 5}", "str")).said
        {'type': 'str', 'hierarchy': {'use': 'prefix', 'length': 5}}
        """
        more = [f"type: {guess.type}"] if guess.type else []
        more += [f"hierarchy: {guess.hierarchy}"] if guess.hierarchy and guess.shown else []
        more += [f"derive: {guess.derive}"] if guess.derive else []
        said = yaml.safe_load("{" + ", ".join(more) + "}") if more else {}
        why = guess.why if guess.question is None else f"{guess.why}. {guess.question[:1].upper()}{guess.question[1:]}"
        return cls(guess.role if guess.question is None else HIDDEN, why, said, guess.of)


class Settings(msgspec.Struct, frozen=True):
    """What is promised and how it is made."""

    k: int = 5
    l: int | None = 2
    t: float | None = None
    p: int = 2  # of curves
    z: int = 10  # of a stream
    window: str = "1h"
    method: str = "local"
    series: str = "kapra"  # the method for curves
    effort: str = "normal"
    seed: int | None = None
    waive: tuple[str, ...] = ()


class Choices(msgspec.Struct, frozen=True):
    """All of it: the kind of data, the columns, the promises and the method."""

    dataset: str
    kind: Kind
    columns: dict[str, Choice]
    settings: Settings

    def of(self, *roles: str) -> list[str]:
        """The columns of these roles."""
        return [name for name, choice in self.columns.items() if choice.role in roles]

    def policy(self) -> str:
        """The policy that does what was chosen.

        >>> columns = {"age": Choice("quasi", "outsiders often know it"), "note": Choice("hidden", "free text")}
        >>> print(Choices("people", "table", columns, Settings(k=3, method="mondrian")).policy())
        # Made in shoal studio: the columns, what an outsider may know, and what is promised.
        dataset: people
        columns:
          age: {role: quasi}  # outsiders often know it
          note: {role: plain}  # free text
        views:
          research:
            show: [age]
            hidden: drop
            promises:
              - {use: k-anonymity, k: 3}
            method: {use: mondrian}
        <BLANKLINE>
        """
        lines = [
            "# Made in shoal studio: the columns, what an outsider may know, and what is promised.",
            f"dataset: {flow(self.dataset)}",
            "columns:",
        ]
        for name, choice in self.columns.items():
            said = {"role": "plain" if choice.role == HIDDEN else choice.role, **choice.said}
            if said["role"] != "quasi":
                said.pop("hierarchy", None)
            lines.append(f"  {flow(name)}: {flow(said)}  # {clean(choice.why)}")
        shown = self.of(*SHOWN)
        lines += [
            "views:",
            f"  {VIEW}:",
            f"    show: {flow(shown)}",
            "    hidden: drop",
            "    promises:",
            *[f"      - {flow(promise)}" for promise in self._promises()],
            f"    method: {flow(self._method())}",
            *([f"    waive: {flow(list(self.settings.waive))}"] if self.settings.waive else []),
        ]
        return "\n".join(lines) + "\n"

    def _promises(self) -> list[dict[str, Any]]:
        chosen = self.settings
        if self.kind == "stream":
            return [{"use": "z-anonymity", "z": chosen.z, "window": chosen.window}]
        about = self.of("sensitive")
        first = {"use": "kP-anonymity", "k": chosen.k, "p": chosen.p}
        out: list[dict[str, Any]] = [first if self.kind == "curves" else {"use": "k-anonymity", "k": chosen.k}]
        if chosen.l is not None and chosen.l > 1:
            out += [{"use": "l-diversity", "l": chosen.l, "column": name} for name in about]
        if chosen.t is not None and self.kind == "table":
            out += [{"use": "t-closeness", "t": chosen.t, "column": name} for name in about]
        return out

    def _method(self) -> dict[str, Any]:
        if self.kind == "stream":
            return {"use": "z-anonymity"}
        if self.kind == "curves":
            return {"use": self.settings.series}
        chosen = self.settings
        return {"use": chosen.method, **({"effort": chosen.effort} if takes_effort(chosen.method) else {})}

    def ready(self) -> str | None:
        """What is missing before anything can be released, in words."""
        if not self.of("quasi"):
            return "Say of at least one column that an outsider may know it."
        if self.kind == "stream" and not (self.of("time") and self.of("subject")):
            return "A stream needs a column that says when, and one that says who."
        return None


def takes_effort(method: str) -> bool:
    """Whether a method of tables can try harder.

    >>> takes_effort("local"), takes_effort("mondrian")
    (True, False)
    """
    return any(f.name == "effort" for f in msgspec.structs.fields(TABLE_METHODS.get(method)))


def flow(value: Any) -> str:
    """A value on one line of YAML.

    >>> flow("no"), flow({"use": "tree"}), flow("a: b")
    ("'no'", '{use: tree}', "'a: b'")
    """
    text = yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, width=10**9, sort_keys=False)
    return text.strip()[1:-1]


def drafted(frame: pl.DataFrame, dataset: str, kind: Kind | None = None) -> Choices:
    """The first choices, guessed from the data.

    >>> frame = pl.DataFrame({"age": [30, 41], "sex": ["f", "m"]})
    >>> drafted(frame, "people").of("quasi")
    ['age', 'sex']
    """
    instants = curves(frame)
    found = guesses(frame.drop(instants)) if instants and kind in (None, "curves") else guesses(frame)
    columns = {name: Choice.of_guess(guess) for name, guess in found.items()}
    if kind is None:
        kind = "curves" if instants else "stream" if _is_stream(frame, columns) else "table"
    if kind == "curves":
        named = {n: c for n, c in columns.items() if not c.of}
        kept = {n: c if c.role in ("identifier", "subject") else _put(c, HIDDEN) for n, c in named.items()}
        columns = {**kept, **{n: Choice("quasi", "an instant of a curve") for n in instants}}
        return Choices(dataset, kind, columns, Settings(l=None))
    if kind == "stream":
        columns = _of_stream(frame, columns)
    return Choices(
        dataset, kind, columns, Settings(l=2 if any(c.role == "sensitive" for c in columns.values()) else None)
    )


def _put(choice: Choice, role: str) -> Choice:
    return msgspec.structs.replace(choice, role=role)


def _times(frame: pl.DataFrame) -> list[str]:
    return [
        n
        for n in frame.columns
        if frame[n].dtype == pl.Datetime or (TIME.search(words(n)) and frame[n].dtype.is_numeric())
    ]


def _is_stream(frame: pl.DataFrame, columns: Mapping[str, Choice]) -> bool:
    """Few columns, a time, and people who come back."""
    who = next((n for n, c in columns.items() if c.role == "subject"), None)
    return bool(_times(frame)) and who is not None and frame.width <= 6 and frame[who].n_unique() < frame.height / 2


def _of_stream(frame: pl.DataFrame, columns: dict[str, Choice]) -> dict[str, Choice]:
    """One column is the time; what people did is what an outsider may have seen."""
    out = {n: c for n, c in columns.items() if not c.of}
    when = next(iter(_times(frame)), None)
    if when is not None:
        unit = unit_of(frame[when])
        out[when] = Choice("time", "when it happened", {} if unit == "s" else {"unit": unit})
    for name, choice in list(out.items()):
        if choice.role == "quasi" and isinstance(choice.hierarchy, dict) and choice.hierarchy.get("use") == "calendar":
            out[name] = _put(choice, HIDDEN)
        if choice.role == "quasi" and choice.hierarchy == "path":
            out[name] = msgspec.structs.replace(choice, said={**choice.said, "hierarchy": _deep(frame[name])})
    return out


def _deep(column: pl.Series) -> dict[str, Any]:
    depth = int(column.cast(pl.String).drop_nulls().str.count_matches(".", literal=True).max() or 0) + 1  # type: ignore[arg-type]
    return {"use": "path", "depth": depth}


def unit_of(column: pl.Series) -> str:
    """The unit in which numbers are times of the last decades; seconds if none is.

    >>> unit_of(pl.Series([1_700_000_000_000])), unit_of(pl.Series([0, 60]))
    ('ms', 's')
    """
    low, high = (column.min(), column.max()) if column.dtype.is_numeric() else (None, None)
    for unit, (least, most) in EPOCHS.items():
        if isinstance(low, int | float) and isinstance(high, int | float) and least <= low and high <= most:
            return unit
    return "s"


def whole(text: str, what: str, least: int) -> int:
    """A whole number that somebody typed.

    >>> whole("5", "k", 2)
    5
    """
    if not re.fullmatch(r"\s*\d{1,18}\s*", text) or int(text) < least:
        raise UsageError(f"{what} must be a whole number of at least {least}", where=what, hint=f"for example {least}")
    return int(text)
