"""Dates in a text: shapes that the calendar has, and that are no version and no number of another kind."""

from __future__ import annotations

import datetime
import re

from shoal.masks.words import folded

MONTH = (
    "(?:Jan(?:uary|uar|vier)?|janvier|Jän(?:ner)?|Feb(?:ruary|ruar)?|[Ff]évrier|Mar(?:ch|s)?|mars|März|Apr(?:il)?|"
    "[Aa]vril|Ma[iy]|mai|Jun[ei]?|[Jj]uin|Jul[yi]?|[Jj]uillet|Aug(?:ust)?|[Aa]oût|Sept?(?:ember|embre)?|septembre|"
    "O[ck]t(?:ober|obre)?|octobre|Nov(?:ember|embre)?|novembre|De[cz](?:ember)?|[Dd]écembre)"
)
_DAY = r"(?:[0-2]?[0-9]|3[01])(?:st|nd|rd|th|er)?"
# one pattern for all: a run of digits with date marks, or a day beside the name of a month
CANDIDATE = (
    r"\b[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}\b|\b[0-9]{1,2}[./-][0-9]{1,2}[./-](?:[0-9]{4}|[0-9]{2})\b|"
    rf"\b{_DAY}\.? (?:of )?{MONTH}\b\.?(?:,? [12][0-9]{{3}}\b)?|\b{MONTH}\.? {_DAY}\b(?:,? [12][0-9]{{3}}\b)?|"
    rf"\b{MONTH}\.? [12][0-9]{{3}}\b"
)
NUMBERED = folded(
    "version versions v ver release rev revision build python java kernel firmware software section sections "
    "chapter kapitel abschnitt chapitre § art artikel article paragraph punkt point figure abbildung table "
    "tabelle ip nr no nummer number order bestellung ratio verhältnis grade score"
)
DATED = folded(
    "on am vom bis since seit until from geb geboren born né née dob date datum dated le du au den der of ab zum "
    "by before after nach vor"
)
YEARS = range(1850, 2101)


def is_date(text: str, start: int, end: int) -> bool:
    """Whether what stands there can be a date: a day that exists, and not the number of a version.

    >>> [is_date(t, 3, len(t)) for t in ("on 29.02.2024", "on 30.02.2024", "v. 10.2.33", "on 1.2.33")]
    [True, False, False, True]
    """
    found = text[start:end]
    if any(c.isalpha() for c in found):
        return True  # a month by its name
    if _continues(text, start, end):
        return False
    mark = next(c for c in found if not c.isdigit())
    parts = found.split(mark)
    if len(parts) != 3:  # two kinds of marks
        return False
    before = _word_before(text, start)
    if before in NUMBERED:
        return False
    numbers = [int(p) for p in parts]
    if len(parts[0]) == 4:
        return numbers[0] in YEARS and _exists(*numbers)
    day, month, year = numbers
    if len(parts[2]) == 4:
        # the month comes first only between slashes or dashes
        return year in YEARS and (_exists(year, month, day) or (mark != "." and _exists(year, day, month)))
    # two digits of a year are also the end of a version: the day and the month have two digits, or a word says so
    sure = (len(parts[0]) == len(parts[1]) == 2) or before in DATED or mark == "/"
    return sure and (_exists(2000 + year, month, day) or (mark != "." and _exists(2000 + year, day, month)))


def _exists(year: int, month: int, day: int) -> bool:
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True


def _continues(text: str, start: int, end: int) -> bool:
    """Whether more digits belong to it, as in 10.2.33.4 or 1-2-2024-7."""
    behind = text[end : end + 2]
    ahead = text[max(0, start - 2) : start]
    return (len(behind) == 2 and behind[0] in ".-/" and behind[1].isdigit()) or (
        len(ahead) == 2 and ahead[1] in ".-/" and ahead[0].isdigit()
    )


def _word_before(text: str, start: int) -> str:
    words = re.findall(r"[^\W\d_]+|§", text[max(0, start - 30) : start].rstrip(" :.("))
    tail = text[max(0, start - 30) : start]
    return words[-1].casefold() if words and tail.rstrip(" :.(").endswith(words[-1]) else ""
