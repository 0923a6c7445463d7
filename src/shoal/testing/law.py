"""A law is a sentence that holds or an ``AssertionError`` that names the spec and the law, never a person's value."""

from __future__ import annotations

from shoal.core.spec import Spec


def law(holds: object, spec: Spec, words: str) -> None:
    """Raise ``AssertionError`` unless the law holds.

    >>> from shoal.core.hierarchy.suppress import Suppress
    >>> law(False, Suppress(), "there is one root")
    Traceback (most recent call last):
    AssertionError: suppress: there is one root
    """
    if not holds:
        raise AssertionError(f"{spec.use}: {words}")
