"""Names of people in a text, by what stands around them; no list of names is complete.

A name is one to four words that begin with a capital, perhaps with initials or particles (``van der``) between them.
It is taken for one behind a title (Dr.),
behind a word for a person (the patient, my daughter), behind a label (``Name:``),
behind an initial, if it holds a name that a list knows, and, unless ``sure`` is asked for, if two or more capitalised
words stand together that are no common words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from shoal.masks.locales import LOCALES
from shoal.masks.words import CUES, INSIDE_TITLES, LABELS, NOT_NAMES, PARTICLES, SPEECH, TITLES

GIVEN = frozenset(n for at in LOCALES.values() for n in at.given)
FAMILY = frozenset(n for at in LOCALES.values() for n in at.family)
KNOWN = GIVEN | FAMILY
SMALL = frozenset(n.casefold() for n in GIVEN), frozenset(n.casefold() for n in FAMILY)
# m, h and c are short for titles, and are initials, too
ROLES = (TITLES | INSIDE_TITLES | CUES) - PARTICLES - frozenset("mhc")  # what announces a name is no part of it
MOST_WORDS = 4  # words of a name
# one class after the other, nothing that could be read in two ways: linear in the text
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class Word(NamedTuple):
    """A word, where it stands, and what stands between it and the one before."""

    start: int
    end: int
    text: str
    gap: str

    @property
    def low(self) -> str:
        """As it compares with the lists."""
        return self.text.casefold()


def names(text: str, *, sure: bool = False) -> Iterator[tuple[int, int]]:
    """Where people are named.

    >>> said = "We thank Ngozi Okafor and Dr. Kowalczyk; the Red Cross came."
    >>> [said[a:b] for a, b in names(said)]
    ['Ngozi Okafor', 'Kowalczyk']
    """
    words = _words(text)
    at = 0
    while at < len(words):
        taken = _name(words, at, sure)
        if taken:
            yield words[at].start, words[at + taken - 1].end
            at += taken
        else:
            at += 1


def _words(text: str) -> list[Word]:
    out, end = [], 0
    for match in WORD.finditer(text):
        out.append(Word(match.start(), match.end(), match.group(), text[end : match.start()]))
        end = match.end()
    return out


def _name(words: list[Word], at: int, sure: bool) -> int:
    """How many words from here on are a name; 0 if none."""
    word = words[at]
    if not word.text[0].isupper():
        return _small(words, at) or _particles(words, at)
    reason = _reason(words, at)
    run = _run(words, at, reason)
    if not run or reason:
        return run
    parts = [w.text for w in words[at : at + run]]
    if len(parts[0]) == 1:  # an initial, and a word behind it
        return run if run > 1 and _closes(words, at) else 0
    if run == 1:
        # one capitalised word proves little (Wood, King): it must be a family name and do what people do
        said = at + 1 < len(words) and words[at + 1].gap == " " and words[at + 1].low in SPEECH
        return 1 if word.text in FAMILY and said else 0
    if any(p in KNOWN for p in parts):
        return run
    return 0 if sure or parts[0].isupper() else run


def _particles(words: list[Word], at: int) -> int:
    """A name that begins in small letters, behind a title or a label: ``Name: van der Berg``."""
    reason = _reason(words, at) if words[at].low in PARTICLES else ""
    if reason not in ("title", "label"):
        return 0
    small = at
    while small + 1 < len(words) and words[small].low in PARTICLES and words[small + 1].gap == " ":
        small += 1
    run = _run(words, small, reason) if words[small].text[0].isupper() else 0
    return small - at + run if run else 0


def _reason(words: list[Word], at: int) -> str:
    """What stands before that makes a name of it."""
    if not at:
        return ""
    before, gap = words[at - 1], words[at].gap
    low = before.low
    if low in TITLES and gap in (" ", ". ", "."):
        return "title"
    if low in INSIDE_TITLES and gap in (". ", ".") and at > 1 and words[at - 2].low in TITLES | INSIDE_TITLES:
        return "title"
    if low in CUES:
        if gap.strip() == ":" and "\n" not in gap:
            return "label"
        if low not in LABELS and gap in (" ", ", ", ",\n", "\n", ",\n\n", " (") and words[at].low not in NOT_NAMES:
            return "cue"
    return ""


def _run(words: list[Word], at: int, reason: str) -> int:
    """The capitalised words from here on, with particles inside; common words end it."""
    announced = reason in ("title", "label")
    size = last = 0
    for word in words[at : at + MOST_WORDS + 2]:
        if size and not _joined(words[at + size - 1], word, size == 1 and reason == "label"):
            break
        if word.text[0].isupper():
            inside = size and (
                word.low in PARTICLES or (word.text in FAMILY and (announced or words[at].text in GIVEN))
            )
            if not inside and (word.low in ROLES or (word.low in NOT_NAMES and (size or not announced))):
                break
            last = size = size + 1
        elif size and word.low in PARTICLES:
            size += 1
        else:
            break
        if last >= MOST_WORDS:
            break
    # a letter at the end is no initial: Annex B
    return last - 1 if last > 1 and len(words[at + last - 1].text) == 1 else last


def _joined(before: Word, word: Word, reversed_too: bool) -> bool:
    """Whether a word goes on a name: after a blank, after the dot of an initial, after a comma in ``Ott, Franz``."""
    if word.gap in (" ", "-"):
        return True
    initial = len(before.text) == 1 and word.gap in (". ", ".")
    return initial or (reversed_too and word.gap == ", ")


def _closes(words: list[Word], at: int) -> bool:
    """Whether an initial really is one: a dot behind it, and no small abbreviation before (z. B.)."""
    dotted = words[at + 1].gap in (". ", ".")
    before = words[at - 1] if at else None
    short = before is not None and len(before.text) == 1 and before.text.islower() and words[at].gap in (". ", ".")
    return dotted and not short


def _small(words: list[Word], at: int) -> int:
    """A listed given name and a listed family name, in small letters."""
    if at + 1 < len(words) and words[at + 1].gap == " ":
        return 2 if words[at].low in SMALL[0] and words[at + 1].low in SMALL[1] else 0
    return 0
