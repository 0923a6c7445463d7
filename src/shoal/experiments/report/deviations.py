"""Where ours differs from what is published, and why: the one table. The tests fail when an entry no longer differs, or
when something differs that is not here."""

from __future__ import annotations

import re

from shoal.experiments.report.claim import Claim

FORMULA = (
    "the formula of 2020 treats comparisons as independent though they share what one person showed, and so "
    "over-estimates; the exact model averages over that (checked by a simulation of events)"
)
HABITS = (
    "their data are not public: p_k hangs on which values people combine, which no published table says; the generated "
    "streams are calibrated by single values"
)
TUNED = HABITS + "; so the search finds another z, and what it withholds and invents follows from z"
NOISE = (
    "the published pattern loss is noise: it compares signs of sums that are 0; with the cosine as defined it is ours"
)
RUNS = "the published figures come from one random run whose groups break k (records in groups below k, lost or twice)"
SLIP = "an arithmetical slip of the paper: 23 + 45 + 26 + 32 + 26 + 27 is 179, its median 26.5"
TAIL = "the rarest values of a level have no place in the hours or the share of people that the levels leave them"

# a pattern over "item, what", and the reason
DEVIATIONS: tuple[tuple[str, str], ...] = ()


def reason_of(claim: Claim) -> str:
    """Why a claim differs; empty if it does not, or if nobody has said why."""
    if claim.verdict != "differs":
        return ""
    return next((reason for pattern, reason in DEVIATIONS if re.fullmatch(pattern, claim.key)), "")
