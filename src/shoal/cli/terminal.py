"""What commands share: talking on stderr, progress, and the options that mean the same everywhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter, Token

from shoal.core.errors import UsageError
from shoal.kernels.talk import ONCE, listening


def whole(kind: Any, tokens: Sequence[Token]) -> int:
    """A whole number as it was typed: the parser would round 5.5 to 6, and promise that."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise UsageError(
            "expected a whole number", where=tokens[0].keyword or "options", hint="for example 5, without a point"
        ) from None


# a file, or - for standard input and output
File = Annotated[str, Parameter(allow_leading_hyphen=True)]
Output = Annotated[str | None, Parameter(alias="-o", allow_leading_hyphen=True)]
Json = Annotated[bool, Parameter(name="--json", negative=())]
Separator = Annotated[str | None, Parameter(name="--separator")]
Types = Annotated[list[str] | None, Parameter(name="--type", negative=(), consume_multiple=True)]
Whole = Annotated[int, Parameter(converter=whole)]
MaybeWhole = Annotated[int | None, Parameter(converter=whole)]
Names = Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)]
BETWEEN = 60.0  # seconds between two lines on work that goes on


def say(message: str = "") -> None:
    """Talk to the person, not into the data."""
    sys.stderr.write(message + "\n")


def answer(text: str) -> None:
    """The result of a command that has no data to write."""
    sys.stdout.write(text + "\n")


def as_json(value: Any) -> str:
    """Any struct, as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def names(values: list[str] | None) -> list[str]:
    """Column names given as several words or with commas."""
    return [part for value in values or [] for part in value.split(",") if part]


def split_by(separator: str | None) -> str | None:
    """The separator of a CSV file as it was typed: TAB is one."""
    if separator is not None and separator != "TAB" and len(separator.encode()) != 1:
        raise UsageError("expected one character", where="--separator", hint="for example ; or TAB")
    return "\t" if separator == "TAB" else separator


def pairs(values: list[str] | None, option: str) -> dict[str, str]:
    """``name=value`` words."""
    out = {}
    for value in names(values):
        name, sign, rest = value.partition("=")
        if not sign or not name or not rest:
            raise UsageError(f"expected name=value, found {value!r}", where=option, hint="for example age=2")
        out[name] = rest
    return out


def declared_types(values: list[str] | None) -> dict[str, str]:
    """``column=type`` words, with the form of the texts after a colon: ``birth=date:%d.%m.%Y``."""
    out = {}
    for value in values or []:
        name, sign, kind = value.rpartition("=")
        if not sign or not name or not kind:
            raise UsageError("expected column=type", where="--type", hint="for example --type birth=date:%d.%m.%Y")
        out[name] = kind
    return out


def all_types(given: Mapping[str, str], declared: Mapping[str, str], by: str = "policy") -> dict[str, str]:
    """The types that a policy or a model declares and those of --type, which must not speak of one column."""
    twice = next((name for name in given if name in declared), None)
    if twice is not None:
        raise UsageError(f"the {by} declares the type of column {twice!r}", where="--type", hint="leave it out")
    return {**declared, **given}


def telling(named: Collection[str]) -> Callable[[str, str], None]:
    """Says on stderr how a column was read. Only of columns a person named: without a header line, the names that a
    file seems to have are a person's values."""
    return lambda column, words: say(f"column {column!r}: {words}") if column in named else None


def _now_and_then(what: str) -> Callable[[float, str], None]:
    """How far work is, in a line of its own once in a while: what is done sooner says nothing."""
    last = time.monotonic()

    def tell(share: float, word: str) -> None:
        nonlocal last
        if time.monotonic() - last >= BETWEEN:
            last = time.monotonic()
            say(f"{what}: {share:.0%}, {word}")

    return tell


@contextmanager
def progress(what: str) -> Iterator[Callable[[float, str], None]]:
    """A bar on stderr for long work; where that is no terminal, a line now and then."""
    if not sys.stderr.isatty():
        yield _now_and_then(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[word]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        wait = bar.add_task(ONCE, total=1.0, word="", visible=False)
        task = bar.add_task(what, total=1.0, word="")
        # the first run of a method waits for the compiler: a line of its own, for as long as that lasts
        with listening(lambda share, words: bar.update(wait, completed=share, word=words, visible=share < 1)):
            yield lambda share, word: bar.update(task, completed=share, word=word)
