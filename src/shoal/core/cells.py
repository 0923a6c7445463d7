"""The text of a cell: exact ``34``, interval ``[20, 29]`` or ``[1.5, 2.0)``, node ``Germany`` or ``101**``, set
``{cardio, neuro}``, ``*``.

Writing is done once per group; reading serves attacks, measures and typed output. An end that was top or bottom
coded reads ``≥80`` or ``≤20``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

SUPPRESSED = "*"
ONLY_STARS = r"^\*+$"  # how others write a suppressed cell
_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|inf)"
_INTERVAL = re.compile(rf"^\s*\[\s*([≤≥]?)\s*({_NUMBER})\s*,\s*([≤≥]?)\s*({_NUMBER})\s*([\])])\s*$")
_BARE = r'[^\s,{}"\\](?:[^,{}"\\\x00-\x1f]*[^\s,{}"\\])?'
_MEMBER = rf'(?:"(?:[^"\\]|\\.)*"|{_BARE})'
_SET = re.compile(rf"\{{{_MEMBER}(?:, {_MEMBER})+\}}")
_END = re.compile(rf"^([≤≥])\s*({_NUMBER})$")


class Cell(NamedTuple):
    """One published cell, read back from its text.

    >>> read("[20, 29]").covers(25), read("[20, 29]").kind
    (True, 'interval')
    """

    kind: Literal["exact", "interval", "node", "set", "suppressed"]
    text: str
    low: float = math.nan
    high: float = math.nan
    closed: bool = True
    members: tuple[str, ...] = ()  # of a set, as exact cells would read

    def covers(self, value: float) -> bool:
        """Whether the cell may stand for a number (a node does not say)."""
        if self.kind == "suppressed":
            return True
        if self.kind == "exact":
            try:
                return float(self.text) == value
            except ValueError:
                return False
        if self.kind == "set":
            return any(Cell("exact", member).covers(value) for member in self.members)
        return self.low <= value and (value <= self.high if self.closed else value < self.high)


def interval(
    low: float, high: float, *, whole: bool, closed: bool = True, bottom: bool = False, top: bool = False
) -> str:
    """The text of an interval; of one number, the number.

    >>> interval(20, 29, whole=True), interval(1.5, 2, whole=False, closed=False)
    ('[20, 29]', '[1.5, 2.0)')
    >>> interval(70, 80, whole=True, top=True)
    '[70, ≥80]'
    """
    low_text, high_text = (str(int(v)) if whole else repr(float(v) + 0.0) for v in (low, high))
    low_text, high_text = "≤" * bottom + low_text, "≥" * top + high_text
    if low == high:
        return high_text if top else low_text
    return f"[{low_text}, {high_text}{']' if closed else ')'}"


def set_of(members: Sequence[str]) -> str:
    """The text of a set of two or more values. A value that a reader could mistake is written as JSON writes a text.

    >>> set_of(["cardio", "neuro"]), set_of(["a, b", "c"])
    ('{cardio, neuro}', '{"a, b", c}')
    >>> read(set_of(["a, b", "c"])).members
    ('a, b', 'c')
    """
    written = (m if re.fullmatch(_BARE, m) else json.dumps(m, ensure_ascii=False) for m in members)
    return "{" + ", ".join(written) + "}"


def read(text: str | None) -> Cell:
    """A cell from its text.

    >>> read("[20, 29]").covers(29), read("[1.5, 2.0)").covers(2.0), read("*").kind
    (True, False, 'suppressed')
    """
    if text is None:
        return Cell("exact", "")
    if re.match(ONLY_STARS, text):
        return Cell("suppressed", text)
    end = _END.match(text)
    if end:
        number = float(end[2])
        return Cell("interval", text, *((-math.inf, number) if end[1] == "≤" else (number, math.inf)))
    found = _INTERVAL.match(text)
    if found:
        low = -math.inf if found[1] else float(found[2])
        high = math.inf if found[3] else float(found[4])
        return Cell("interval", text, low, high, found[5] == "]" or bool(found[3]))
    if text.startswith("{") and _SET.fullmatch(text):
        try:
            members = (json.loads(m) if m[0] == '"' else m for m in re.findall(_MEMBER, text[1:-1]))
            return Cell("set", text, members=tuple(members))
        except ValueError:  # quoted, but not as JSON quotes: somebody else's text
            pass
    return Cell("node" if text.endswith("*") else "exact", text)
