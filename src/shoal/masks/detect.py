"""Where people are named in a text: patterns with check digits where there are any, and lists of names.

All patterns run in RE2, so time grows with the text alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

from shoal.masks.check_digits import iban, luhn, national
from shoal.masks.locales import LOCALES

Kind = Literal["mail", "iban", "card", "id", "date", "phone", "address", "listed", "name"]
KINDS: tuple[Kind, ...] = get_args(Kind)  # in this order: what an earlier one found no later one takes
LARGEST_PROGRAM = 64 << 20  # bytes a list of names may compile to


class Found(NamedTuple):
    """A place in a text, and what stands there."""

    start: int
    end: int
    kind: Kind


_MONTH = (
    "(?:Jan(?:uary|uar|vier)?|Feb(?:ruary|ruar)?|février|Mar(?:ch|s)?|März|Apr(?:il)?|avril|Ma[iy]|Jun[ei]?|juin|"
    "Jul[yi]?|juillet|Aug(?:ust)?|août|Sep(?:tember|tembre)?|O[ck]t(?:ober|obre)?|Nov(?:ember|embre)?|De[cz](?:ember)?|"
    "décembre)"
)
_PATTERNS: dict[Kind, str] = {
    "mail": r"[\pL0-9._%+-]+@[\pL0-9.-]+\.\pL{2,}",
    "iban": r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b",
    "card": r"\b[0-9](?:[ -]?[0-9]){12,18}\b",
    "id": r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b|\b[12](?: ?[0-9]){14}\b|\b[0-9]{2}(?: ?[0-9]{3}){3}\b",
    "date": rf"\b[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}\b|\b[0-9]{{1,2}}[./][0-9]{{1,2}}[./](?:[0-9]{{4}}|[0-9]{{2}})\b|"
    rf"\b[0-9]{{1,2}}\.? {_MONTH} [0-9]{{4}}\b|\b{_MONTH} [0-9]{{1,2}}, [0-9]{{4}}\b",
    "phone": r"(?:\+|\b00)[0-9]{1,3}[0-9 ()/.-]{5,16}[0-9]\b|\(0?[0-9]{2,5}\)[0-9 /.-]{5,12}[0-9]\b|"
    r"\b0[0-9]{1,4}[ /.-][0-9 /.-]{4,12}[0-9]\b|\b[0-9]{3}-[0-9]{3}-[0-9]{4}\b",
    "address": r"\b\p{Lu}[\pL-]*(?:straße|strasse|str\.|gasse|weg|platz|allee) [0-9]{1,4}[a-z]?\b|"
    r"\b[0-9]{1,5} (?:\p{Lu}\pL+ ){1,3}(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Square)\b|"
    r"\b[0-9]{1,4},? (?:rue|avenue|boulevard|place) (?:(?:de|du|des|la|le) )*\p{Lu}[\pL-]+",
}
_TITLE = r"(?:Mr|Mrs|Ms|Miss|Dr|Prof|Herrn?|Frau|M|Mme|Monsieur|Madame)\.?"
_WORD = r"\p{Lu}[\pL'’-]+"


def detect(text: str, kinds: Collection[Kind] = KINDS, listed: tuple[str, ...] = ()) -> list[Found]:
    """Everything found, in the order of the text, no two overlapping.

    >>> [(f.kind, "write to f.ott@example.org"[f.start : f.end]) for f in detect("write to f.ott@example.org")]
    [('mail', 'f.ott@example.org')]
    """
    taken: list[Found] = []
    free = [True] * len(text)
    for kind in KINDS:
        if kind in kinds:
            for found in _search(kind, text, listed):
                if all(free[found.start : found.end]):
                    free[found.start : found.end] = [False] * (found.end - found.start)
                    taken.append(found)
    return sorted(taken)


def _search(kind: Kind, text: str, listed: tuple[str, ...]) -> Iterator[Found]:
    if kind == "listed":
        patterns = [_words(listed)] if listed else []
    else:
        patterns = _names() if kind == "name" else [_compiled(_PATTERNS[kind])]
    accepts: Callable[[str], bool] = _CHECKS.get(kind, bool)
    for pattern in patterns:
        for match in pattern.finditer(text):
            start, end = match.span(1) if match.re.groups else match.span()
            if accepts(text[start:end]):
                yield Found(start, end, kind)


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit())


_CHECKS: dict[Kind, Callable[[str], bool]] = {
    "iban": lambda found: iban(found.replace(" ", "")),
    "card": lambda found: luhn([int(c) for c in _digits(found)]),
    "id": lambda found: "-" in found or national(_digits(found)),
    "phone": lambda found: 7 <= len(_digits(found)) <= 15,
}


@cache
def _compiled(text: str) -> Any:
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    options.max_mem = LARGEST_PROGRAM
    return re2.compile(text, options)


@cache
def _words(listed: tuple[str, ...]) -> Any:
    import re2

    return _compiled(rf"(?i)\b(?:{'|'.join(re2.escape(word) for word in sorted(listed, key=len, reverse=True))})\b")


@cache
def _names() -> list[Any]:
    """After a title one or two words, after a known given name one, and a known family name behind an initial."""
    given = "|".join(sorted({n for at in LOCALES.values() for n in at.given}))
    family = "|".join(sorted({n for at in LOCALES.values() for n in at.family}))
    return [
        _compiled(rf"\b{_TITLE} ({_WORD}(?: {_WORD})?)"),
        _compiled(rf"\b((?:{given})(?: \p{{Lu}}\.)?(?: {_WORD})+)"),
        _compiled(rf"\b((?:\p{{Lu}}\.|{_WORD}) (?:{family}))\b"),
    ]
