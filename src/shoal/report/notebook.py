"""Results in a notebook: the words of the terminal, and nothing that a page around them could be broken by."""

from __future__ import annotations

from html import escape


def words(text: str) -> str:
    """A text as HTML.

    >>> words("k < 5")
    '<pre style="line-height: 1.3">k &lt; 5</pre>'
    """
    return f'<pre style="line-height: 1.3">{escape(text)}</pre>'
