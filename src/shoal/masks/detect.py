"""Where people are named in a text: patterns, with check digits or a calendar where there are any, and names.

All patterns run in RE2, or read one class of characters after the other: time grows with the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

from shoal.masks.check_digits import iban, luhn, national
from shoal.masks.dates import CANDIDATE, is_date
from shoal.masks.people import names

Kind = Literal["mail", "iban", "card", "id", "date", "phone", "address", "listed", "name"]
KINDS: tuple[Kind, ...] = get_args(Kind)  # in this order: what an earlier one found no later one takes
_DIGIT = re.compile("[0-9]")
LARGEST_PROGRAM = 64 << 20  # bytes a list of names may compile to


class Found(NamedTuple):
    """A place in a text, and what stands there."""

    start: int
    end: int
    kind: Kind


_PATTERNS: dict[Kind, str] = {
    "mail": r"[\pL0-9._%+-]+@[\pL0-9.-]+\.\pL{2,}",
    "iban": r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b",
    "card": r"\b[0-9](?:[ -]?[0-9]){12,18}\b",
    "id": r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b|\b[12](?: ?[0-9]){14}\b|\b[0-9]{2}(?: ?[0-9]{3}){3}\b",
    "date": CANDIDATE,
    "phone": r"(?:\+|\b00)[0-9]{1,3}[0-9 ()/.-]{5,16}[0-9]\b|\(0?[0-9]{2,5}\)[0-9 /.-]{5,12}[0-9]\b|"
    r"\b0[0-9]{1,4}[ /.-][0-9 /.-]{4,12}[0-9]\b|\b[0-9]{3}-[0-9]{3}-[0-9]{4}\b",
    "address": r"\b\p{Lu}[\pL-]*(?:straße|strasse|str\.|gasse|weg|platz|allee) [0-9]{1,4}[a-z]?\b|"
    r"\b[0-9]{1,5} (?:\p{Lu}\pL+ ){1,3}(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Square)\b|"
    r"\b[0-9]{1,4},? (?:rue|avenue|boulevard|place) (?:(?:de|du|des|la|le) )*\p{Lu}[\pL-]+",
}


def detect(
    text: str, kinds: Collection[Kind] = KINDS, listed: tuple[str, ...] = (), *, sure: bool = False
) -> list[Found]:
    """Everything found, in the order of the text, no two overlapping. ``sure`` leaves out names nothing speaks for but
    their capitals.

    >>> [(f.kind, "write to f.ott@example.org"[f.start : f.end]) for f in detect("write to f.ott@example.org")]
    [('mail', 'f.ott@example.org')]
    """
    taken: list[Found] = []
    left = text  # what was found is blotted out for those that come after
    for kind in KINDS:
        if kind in kinds:
            found = _search(kind, left, listed, sure)
            taken += found
            left = _without(left, found)
    return sorted(taken)


def _without(text: str, found: Sequence[Found]) -> str:
    """The text with blots, in one pass: a long text may hold thousands of them."""
    if not found:
        return text
    out, at = list[str](), 0
    for start, end, _ in found:
        # as many blots as characters: what is found later still points into the text itself
        out += (text[at:start], "\0" * (end - start))
        at = end
    return "".join([*out, text[at:]])


def _search(kind: Kind, text: str, listed: tuple[str, ...], sure: bool) -> list[Found]:
    if kind == "name":
        return [Found(start, end, kind) for start, end in names(text, sure=sure)]
    if kind == "listed":
        spans = _spans(_words(listed), text) if listed else []
    else:
        # most texts have no digit and no @, and nothing to look for
        may = "@" in text if kind == "mail" else _DIGIT.search(text) is not None
        spans = _spans(_PATTERNS[kind], text) if may else []
    accepts = _CHECKS.get(kind)
    return [Found(*s, kind) for s in spans if accepts is None or accepts(text, *s)]


def _spans(pattern: str, text: str) -> list[tuple[int, int]]:
    if text.isascii():  # bytes are characters, and no place needs to be counted anew
        return [match.span() for match in _compiled(pattern.encode()).finditer(text.encode())]
    return [match.span() for match in _compiled(pattern).finditer(text)]


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit())


def _digits_in(text: str, start: int, end: int) -> str:
    return _digits(text[start:end])


def _ssn(found: str) -> bool:
    """Numbers of American social security that were never handed out are none."""
    area, group, serial = found.split("-")
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def _phone(text: str, start: int, end: int) -> bool:
    # more than 15 digits are no telephone number (E.164); behind such a mark it is the end of something longer
    return 7 <= len(_digits_in(text, start, end)) <= 15 and text[start - 1 : start] not in (".", "-", "/")


_CHECKS: dict[Kind, Callable[[str, int, int], bool]] = {
    "iban": lambda text, start, end: iban(text[start:end].replace(" ", "")),
    "card": lambda text, start, end: luhn([int(c) for c in _digits_in(text, start, end)]),
    "id": lambda text, start, end: (
        _ssn(text[start:end]) if "-" in text[start:end] else national(_digits_in(text, start, end))
    ),
    "phone": _phone,
    "date": is_date,
}


@cache
def _compiled(text: str | bytes) -> Any:
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    # its log would quote the listed names
    options.log_errors = False
    options.max_mem = LARGEST_PROGRAM
    return re2.compile(text, options)


@cache
def _words(listed: tuple[str, ...]) -> str:
    import re2

    # longer ones first: of alternatives that begin alike, the first that fits is taken
    return rf"(?i)\b(?:{'|'.join(re2.escape(word) for word in sorted(listed, key=len, reverse=True))})\b"
