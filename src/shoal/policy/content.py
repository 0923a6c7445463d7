"""What the values of a column are, by their form: mail addresses, card numbers, positions, codes, free text.

Forms are judged on a bounded number of different values; nothing of a value is kept or told.
"""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import polars as pl

Form = Literal[
    "mail", "phone", "card", "iban", "ip", "uuid", "web", "name", "text", "position", "path", "domain", "code", "dirty"
]
IDENTIFYING: dict[Form, str] = {
    "mail": "its values are mail addresses",
    "phone": "its values look like phone numbers",
    "card": "its values are card numbers: their check digits fit",
    "iban": "its values are bank accounts: their check digits fit",
    "ip": "its values are network addresses",
    "uuid": "its values are random ids",
    "web": "its values are web addresses",
    "name": "its values look like names of people",
    "text": "its values are free text, which can name anyone",
}
MOST_VALUES = 5_000  # different values that are looked at
SHARE = 0.9  # of them that must have a form
PATTERNS: dict[Form, str] = {
    "mail": r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$",
    "uuid": r"^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$|^[0-9a-fA-F]{32,128}$",
    "web": r"^(https?://|www\.)\S+$",
    "ip": r"^[0-9]{1,3}(\.[0-9]{1,3}){3}(/[0-9]+)?$|^[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}$",
    "position": r"^[+-]?[0-9]{1,2}\.[0-9]+ ?[,;] ?[+-]?[0-9]{1,3}\.[0-9]+$",
    "phone": r"^(\+|00|0|\()[0-9][0-9 ()/.\-]{5,18}[0-9]$",
    "domain": r"^([A-Za-z0-9_\-]+\.)+[A-Za-z]{2,}\.?$",
    "path": r"^[^\s./|>]+([./|>][^\s./|>]+)*$",
    "name": r"^(\p{Lu}[\p{L}'’\-]*\.?)( (\p{Lu}[\p{L}'’\-]*\.?|von|van|de|da|der|di|bin|al)){1,4}$",
}
# ISO/IEC 7812: cards have up to 19 digits, the shortest in use 13
DIGITS = r"^[0-9]{13,19}$"
# ISO 13616: 15 (Norway) to 34 characters, four of which are the country and the check digits
IBAN = r"^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$"
NUMBER = r"^\s*[+-]?[0-9]+([.,][0-9]+)?\s*$"


def form_of(column: pl.Series) -> Form | None:
    """The form most values have, or nothing.

    >>> form_of(pl.Series(["a@x.org", "b@y.org"])), form_of(pl.Series([4111111111111111]))
    ('mail', 'card')
    """
    # in the order of the table: `unique` alone has none, and the same table must give the same draft
    values = column.drop_nulls().unique(maintain_order=True).head(MOST_VALUES).cast(pl.String)
    if not len(values):
        return None
    # cards and accounts are often written in groups of four
    packed = values.str.replace_all(r"[ \-]", "")
    if _most(packed, DIGITS) and np.mean([_luhn(v) for v in packed if re.fullmatch(DIGITS, v)]) > SHARE:
        return "card"
    if _most(packed, IBAN) and np.mean([_mod97(v) for v in packed if re.fullmatch(IBAN, v)]) > SHARE:
        return "iban"
    # a card number may be read as a number; all other forms are texts
    if column.dtype != pl.String:
        return None
    # strict forms first: mail addresses, positions and network addresses also fit the pattern of a path
    for form in ("mail", "uuid", "web", "ip", "position"):
        if _most(values, PATTERNS[form]):
            return form
    numbers = _share(values, NUMBER)
    # a column of numbers with other cells among them is dirty, unless all together are phone numbers
    if numbers > 0.5:
        return "phone" if numbers < 1 and _most(values, PATTERNS["phone"]) else "dirty" if numbers < 1 else None
    return _words(values)


def _words(values: pl.Series) -> Form | None:
    """Texts that are no numbers: phones, paths, codes, names, sentences."""
    # the pattern alone lets brackets and dashes pass: a telephone number has seven digits or more
    if _most(values, PATTERNS["phone"]) and _most(values, r"[0-9].*[0-9].*[0-9].*[0-9].*[0-9].*[0-9].*[0-9]"):
        return "phone"
    if _most(values, PATTERNS["domain"]) and _most(values, r"\."):
        return "domain" if _ends_repeat(values) else "path"
    if _most(values, PATTERNS["path"]) and _share(values, r"[./|>]") > 0.5:
        return "path"
    if _most(values, r"\s\S+\s\S+\s\S+\s\S") or int(values.str.len_chars().sum()) > 60 * len(values):
        return "text"
    # few of them are more likely categories: New York, Los Angeles
    if _most(values, PATTERNS["name"]) and len(values) > 20:
        return "name"
    lengths = values.str.len_chars().unique()
    # codes of one length become coarser character by character; words do not
    if len(lengths) == 1 and int(lengths[0]) >= 3 and _most(values, r"^\w*[0-9]\w*$"):
        return "code"
    return None


def separator_of(column: pl.Series) -> str:
    """What the steps of a path are parted by.

    >>> separator_of(pl.Series(["shop/books", "shop/toys"]))
    '/'
    """
    counts = {mark: int(column.str.count_matches(mark, literal=True).sum() or 0) for mark in "./|>"}
    return max(counts, key=lambda mark: counts[mark])


def _ends_repeat(values: pl.Series) -> bool:
    """Domain names share their last step (org, com), categories their first."""
    steps = values.str.strip_suffix(".").str.split(".")
    return steps.list.last().n_unique() < steps.list.first().n_unique()


def _most(values: pl.Series, pattern: str) -> bool:
    return _share(values, pattern) >= SHARE


def _share(values: pl.Series, pattern: str) -> float:
    return int(values.str.contains(pattern).sum()) / len(values)


def _luhn(digits: str) -> bool:
    """The check digit of cards.

    >>> _luhn("4111111111111111"), _luhn("4111111111111112")
    (True, False)
    """
    doubled = [int(d) * (1 + at % 2) for at, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _mod97(account: str) -> bool:
    """The check digits of bank accounts (ISO 13616).

    >>> _mod97("DE89370400440532013000"), _mod97("DE88370400440532013000")
    (True, False)
    """
    return int("".join(str(int(c, 36)) for c in account[4:] + account[:4])) % 97 == 1
