"""A published number or statement beside ours, and the verdict."""

from __future__ import annotations

from typing import Literal, NamedTuple

Is = Literal["same", "same shape", "worked example", "differs", "nothing published"]
VERDICTS: tuple[Is, ...] = ("same", "same shape", "worked example", "differs", "nothing published")
BACCONI, JHA, MINUTOLI = "Bacconi 2021", "Jha et al. 2020", "Minutoli et al. 2021"
ALLGOEWER, GARAI = "Allgöwer 2023", "Garai 2019"


class Claim(NamedTuple):
    """One line of the report. ``tolerance`` says how far from the published number still is the same."""

    paper: str
    item: str
    what: str
    published: str
    ours: str
    tolerance: str
    verdict: Is
    reason: str = ""

    @property
    def key(self) -> str:
        """What the table of deviations calls it."""
        return f"{self.item}, {self.what}"


def number(paper: str, item: str, what: str, published: float, ours: float, within: float) -> Claim:
    """A published number: the same if ours is within an absolute tolerance of it."""
    verdict: Is = "same" if abs(ours - published) <= within + 1e-12 else "differs"
    return Claim(paper, item, what, text(published), text(ours), f"±{text(within)}", verdict)


def ratio(paper: str, item: str, what: str, published: float, ours: float, within: float) -> Claim:
    """A published number: the same if ours is within a share of it."""
    verdict: Is = "same" if abs(ours - published) <= within * abs(published) else "differs"
    return Claim(paper, item, what, text(published), text(ours), f"±{within:.0%}", verdict)


def shape(paper: str, item: str, what: str, published: str, holds: bool, ours: str) -> Claim:
    """What a picture or a sentence says: the shape is the same, or not."""
    return Claim(paper, item, what, published, ours, "shape", "same shape" if holds else "differs")


def worked(paper: str, item: str, what: str, test: str) -> Claim:
    """An example that a test does again, cell by cell or sentence by sentence."""
    return Claim(paper, item, what, "as printed", test, "exact", "worked example")


def nothing(paper: str, item: str, what: str, ours: str, reason: str) -> Claim:
    """A figure without a readable number: ours alone, and why there is nothing beside it."""
    return Claim(paper, item, what, "–", ours, "", "nothing published", reason)


def text(value: float) -> str:
    """A number for people.

    >>> text(121903.0), text(0.0354), text(7.0)
    ('121,903', '0.0354', '7')
    """
    if float(value).is_integer() and abs(value) >= 1:
        return f"{value:,.0f}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
