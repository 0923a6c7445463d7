"""Docstrings as the site shows them: examples are code, and names of classes are words."""

from __future__ import annotations

import re
from typing import Any

import griffe


def readable(text: str) -> str:
    """The same text for a reader of Markdown.

    >>> readable("See :class:`Job`.")
    'See `Job`.'
    """
    words = re.sub(r":(?:class|func|meth|mod|attr):`~?([^`]+)`", lambda m: f"`{m[1].rpartition('.')[2]}`", text)
    lines: list[str] = []
    inside = False
    for line in words.splitlines():
        if line.lstrip().startswith(">>>") and not inside:
            lines += ["```pycon"]
            inside = True
        elif inside and not line.strip():
            lines += ["```"]
            inside = False
        lines.append(line)
    return "\n".join([*lines, *(["```"] if inside else [])])


class Words(griffe.Extension):
    """Used by mkdocstrings."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for every function, class and module."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
