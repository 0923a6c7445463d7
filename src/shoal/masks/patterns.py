"""Regular expressions on both roads: RE2 on single values, the engine of polars on columns where the two agree.

Python's own engine, which costs a third of a call of RE2, takes ASCII texts where a pattern leaves it nothing to try
again (:func:`_unambiguous`). All are linear in the text.

RE2 and polars read some things differently: what ``\\d``, ``\\w`` and ``\\b`` mean beyond ASCII, sets inside brackets,
matches of nothing. :func:`for_columns` rewrites a pattern of plain parts so that both mean the same and refuses all
others, which then run in RE2 on columns, too. ``tests/laws/test_two_engines.py`` compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped]

from shoal.core.errors import UsageError
from shoal.core.texts import text_of

LONGEST_PATTERN = 1000
CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\\t\\n\\x0C\\r\\x20"}
CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
ATOM = r"(?:[A-Za-z0-9 _@#:;,/%='\"<>!-]|\\[dw.+*?()|$^/-]|\[(?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[_ .]|\\[dw])+\])"
# parts of a fixed length, of which the last may be repeated forever: nothing behind it can make it give anything back
PLAIN = re.compile(rf"\^?(?:{ATOM}(?:\{{[1-9][0-9]?\}})?)*{ATOM}(?:\+|\{{[1-9][0-9]?,?\}})?")
META = frozenset("\\^$.|?*+()[]{}")


def pattern(text: str) -> Any:
    """A compiled regular expression of the linear-time engine; located error if it is none.

    >>> bool(pattern("^E1[01]$").search("E10"))
    True
    """
    return _compiled(text, raw=False)


def finder(text: str) -> Callable[[str], bool]:
    """A function that says whether a pattern is found in a text.

    >>> finder("^E1[01]$")("E10")
    True
    """
    found = _compiled(text, raw=True)
    match = _match_of(found)
    own = _unambiguous(text)
    if match is None:
        return lambda value: found.search(value.encode("utf-8", "replace")) is not None

    def finds(value: str) -> bool:
        if own is not None and value.isascii():
            return own.search(value) is not None
        raw = value.encode("utf-8", "replace")
        return bool(match(raw, 0, len(raw))[0][0] >= 0)

    return finds


def replacer(text: str, by: str) -> Callable[[Any], str]:
    """A function that replaces what a pattern finds in the text of a value.

    >>> replacer("[0-9]{4,}", "#")("call 0301234 or 12")
    'call # or 12'
    """
    whole, new = pattern(text), by.encode("utf-8", "replace")
    match = _match_of(_compiled(text, raw=True))
    own, quoted = _unambiguous(text), new.decode().replace("\\", r"\\")
    replace = None if own is None else own.sub

    def as_published(raw: bytes) -> str:
        return str(whole.sub(lambda _: new.decode(), raw.decode()))

    def replaced(value: Any) -> str:
        if type(value) is not str:
            value = text_of(value)
        if replace is not None and value.isascii():
            return replace(quoted, value)
        # surrogates alone are no text that RE2 could read
        raw = value.encode("utf-8", "replace")
        if match is None:
            return as_published(raw)
        at, end, out = 0, len(raw), list[bytes]()
        while True:
            start, stop = match(raw, at, end)[0]
            if start < 0:
                break
            if stop == start:  # nothing, found somewhere: the wrapper knows how to step over it
                return as_published(raw)
            out += (raw[at:start], new)
            at = stop
        return b"".join([*out, raw[at:]]).decode()

    return replaced


@cache
def _unambiguous(text: str) -> re.Pattern[str] | None:
    """The pattern for Python's engine, if that never tries a place twice in more ways than the pattern is long.

    >>> _unambiguous("[0-9]{3,}") is not None, _unambiguous("(a+)+b"), _unambiguous("a+b")
    (True, None, None)
    """
    # ASCII, because RE2's \d, \w and \b know nothing else
    return re.compile(text, re.ASCII) if PLAIN.fullmatch(text) else None


def _match_of(compiled: Any) -> Any:
    """The binding itself: the objects that Python's wrapper makes of each match cost more than finding it."""
    try:
        # private parts of the wrapper: where another version lacks them, its public road is taken
        return partial(compiled._regexp.Match, re2._Anchor.UNANCHORED)
    except AttributeError:
        return None


@cache
def _compiled(text: str, *, raw: bool) -> Any:
    options = re2.Options()
    # its log would quote the expression, and with it perhaps a value
    options.log_errors = False
    options.max_mem = 1 << 20  # what {1000}{1000} would blow up is refused here
    if len(text) > LONGEST_PATTERN:
        raise UsageError(f"the regular expression is longer than {LONGEST_PATTERN} characters")
    try:
        return re2.compile(text.encode() if raw else text, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if isinstance(error, re2.error) and error.args else "invalid"
        raise UsageError(
            f"the regular expression is not accepted: {reason.decode() if isinstance(reason, bytes) else reason}",
            hint="RE2 syntax: no look-around, no back-references; that is why no text can stall it",
        ) from None


@cache
def for_columns(text: str, *, empty: bool = False) -> str | None:
    """The pattern for polars' engine; none if the two might differ. ``empty`` allows it to match nothing.

    >>> for_columns("^E[0-5]+$"), for_columns("[[:alpha:]]"), for_columns("x*")
    ('^\\\\x{45}(?:[\\\\x{30}-\\\\x{35}])+$', None, None)
    """
    import polars as pl

    flag = "(?i)" if text.startswith("(?i)") else ""
    if flag and not text.isascii():  # beyond ASCII, which letters are alike depends on the year of the table
        return None
    try:
        reader = _Reader(text[len(flag) :])
        made = reader.either()
        if reader.left or (not made.least and not empty):
            return None
        source = flag + made.source
        # compiled once here: what polars refuses must not fail in the middle of a release
        pl.Series(["-"]).str.contains(source)
    except (_UnlikeError, RecursionError, pl.exceptions.PolarsError):
        return None
    return source


class _UnlikeError(Exception):
    """A part that the two engines may read differently."""


class _Part(NamedTuple):
    source: str
    least: int  # characters it matches


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self.left = text

    def take(self, count: int = 1) -> str:
        if len(self.left) < count:
            raise _UnlikeError
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def either(self) -> _Part:
        parts = [self.sequence()]
        while self.left.startswith("|"):
            self.take()
            parts.append(self.sequence())
        return _Part("|".join(p.source for p in parts), min(p.least for p in parts))

    def sequence(self) -> _Part:
        source, least = "", 0
        while self.left and self.left[0] not in "|)":
            part = self.repeated(self.atom())
            source, least = source + part.source, least + part.least
        return _Part(source, least)

    def atom(self) -> _Part:
        char = self.take()
        if char == "(":
            if self.left.startswith("?:"):
                self.take(2)
            # flags and named groups, which the two engines need not read alike
            elif self.left.startswith("?"):
                raise _UnlikeError
            inner = self.either()
            if self.take() != ")":
                raise _UnlikeError
            return _Part(f"(?:{inner.source})", inner.least)
        if char == "[":
            return _Part(self.brackets(), 1)
        if char == "\\":
            return self.escaped()
        if char in "^$":
            return _Part(char, 0)
        if char == ".":
            return _Part(".", 1)
        if char in META:
            raise _UnlikeError
        return _Part(_literal(char), 1)

    def escaped(self) -> _Part:
        char = self.take()
        if char == "b":
            # polars' own \b knows letters beyond ASCII, RE2's does not
            return _Part("(?-u:\\b)", 0)
        if char.lower() in CLASSES:
            return _Part(f"[{'^' if char.isupper() else ''}{CLASSES[char.lower()]}]", 1)
        return _Part(_literal(self.character(char)), 1)

    def character(self, char: str) -> str:
        """What stands behind a backslash, as one character."""
        if char in CONTROLS:
            return CONTROLS[char]
        if char.isascii() and not char.isalnum() and char.isprintable():
            return char
        raise _UnlikeError

    def brackets(self) -> str:
        out = "["
        if self.left.startswith("^"):
            out += self.take()
        first = True  # as the first member, `]` is a character like others
        while first or not self.left.startswith("]"):
            first = False
            char = self.take()
            if char == "\\" and self.left[:1] in CLASSES:
                out += CLASSES[self.take()]
                # a range that begins with a class has no meaning on which all engines agree
                if self.left.startswith("-") and not self.left.startswith("-]"):
                    raise _UnlikeError
                continue
            low = self.member(char)
            if self.left.startswith("-") and self.left[1:2] not in ("]", ""):
                self.take()
                high = self.member(self.take())
                if high < low:
                    raise _UnlikeError
                out += f"{_literal(low)}-{_literal(high)}"
            else:
                out += _literal(low)
        self.take()
        return f"{out}]"

    def member(self, char: str) -> str:
        if char in "[]&~":  # sets within sets, in one of the engines
            raise _UnlikeError
        return self.character(self.take()) if char == "\\" else char

    def repeated(self, part: _Part) -> _Part:
        mark = self.left[:1]
        if mark not in ("*", "+", "?", "{") or not mark:
            return part
        if not part.least:  # repeated nothing: the engines number its turns differently
            raise _UnlikeError
        self.take()
        low, bounds = (0, mark) if mark in "*?" else (1, mark) if mark == "+" else self.bounds()
        lazy = self.take() if self.left.startswith("?") else ""
        if self.left[:1] in ("*", "+", "?", "{") and self.left:
            raise _UnlikeError
        return _Part(f"(?:{part.source}){bounds}{lazy}", part.least * low)

    def bounds(self) -> tuple[int, str]:
        inner, brace, left = self.left.partition("}")
        low, comma, high = inner.partition(",")
        if not brace or not _whole(low) or not (_whole(high) or not high):
            raise _UnlikeError
        self.left = left
        return int(low), f"{{{int(low)}{comma}{int(high) if high else ''}}}"


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5


def _literal(char: str) -> str:
    # by its number, so that no character has a second meaning in either engine
    return f"\\x{{{ord(char):X}}}"
