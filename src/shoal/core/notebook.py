"""Results in a notebook: the words of the terminal, and nothing that could break the page around them."""

from __future__ import annotations

from html import escape


class Shown:
    """A result that a notebook shows as its text.

    >>> class Answer(Shown):
    ...     def __str__(self):
    ...         return "k < 5"
    >>> Answer()._repr_html_()
    '<pre style="line-height: 1.3">k &lt; 5</pre>'
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return words(str(self))


def words(text: str) -> str:
    """A text as HTML.

    >>> words("k < 5")
    '<pre style="line-height: 1.3">k &lt; 5</pre>'
    """
    return f'<pre style="line-height: 1.3">{escape(text)}</pre>'
