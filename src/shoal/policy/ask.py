"""Going through the guesses of a draft with a person: what each column is, why, and how it would read when published.

Values are shown to the person who has the data, in the terminal only, and only common ones of columns that are
generalized; the draft itself quotes none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl
import yaml

from shoal.core.errors import ShoalError
from shoal.core.hierarchy import HIERARCHIES
from shoal.policy import hierarchies
from shoal.policy.suggest import Guess

KEYS = {"q": "quasi", "s": "sensitive", "p": "plain", "i": "identifier", "h": "hide"}
HELP = "Enter keeps it; q quasi, s sensitive, p plain, i identifier, h hide until decided"
EXAMPLES = 3


def asked(
    frame: pl.DataFrame, found: Mapping[str, Guess], read: Callable[[], str], show: Callable[[str], None]
) -> dict[str, Guess]:
    """The guesses as a person decides; what is not answered (the end of the input) stays as it was guessed.

    >>> frame = pl.DataFrame({"shoe": [41, 42, 41]})
    >>> lines = iter(["q\\n"])
    >>> asked(frame, {"shoe": Guess("plain", "2 different values", question="?")}, lambda: next(lines, ""), str)
    {'shoe': Guess(role='quasi', why='you said so', hierarchy='{use: range, min: 41, max: 42}', ...)}
    """
    out = dict(found)
    show(HELP)
    for at, (name, guess) in enumerate(found.items(), 1):
        show(f"\n{at} of {len(found)}  {name}: {guess.role if guess.question is None else 'hidden'}; {guess.why}")
        if guess.question is not None:
            show(f"  {guess.question}")
        for line in preview(frame, name, guess):
            show(f"  {line}")
        while True:
            show("  > ")
            word = read()
            # an empty line is "\n"; nothing at all is the end of the input
            if not word:
                return out
            key = word.strip().lower()
            if not key:
                break
            # a derived column has no cells in the table that a hierarchy could be made from: it can only be hidden
            if key in KEYS and (name in frame.columns or key == "h"):
                out[name] = _decided(frame, name, guess, KEYS[key])
                for line in preview(frame, name, out[name]):
                    show(f"  now {line}")
                break
            show(f"  {HELP}")
    return out


def preview(frame: pl.DataFrame, name: str, guess: Guess) -> list[str]:
    """How common values of a column read before and after, level by level."""
    if not (guess.shown and guess.role == "quasi" and guess.hierarchy) or name not in frame.columns:
        return []
    try:
        hierarchy = HIERARCHIES.decode(yaml.safe_load(guess.hierarchy), f"column {name!r}")
        column = frame[name].cast(pl.String) if guess.type == "str" else frame[name]
        # a value that occurs once is somebody's own
        common = column.drop_nulls().value_counts(sort=True).filter(pl.col("count") > 1).head(EXAMPLES)
        rows = hierarchy.preview(common.to_series(0)).rows()
    except (ShoalError, pl.exceptions.PolarsError):
        return []  # a preview is a help: whoever uses the draft hears of what is wrong with it
    return [" → ".join(dict.fromkeys(map(str, row))) for row in rows]


def _decided(frame: pl.DataFrame, name: str, guess: Guess, role: str) -> Guess:
    if role == "hide":
        return guess._replace(question="you left it open")
    hierarchy = (guess.hierarchy or hierarchies.natural(frame[name])) if role == "quasi" else None
    return guess._replace(role=role, why="you said so", hierarchy=hierarchy, question=None, decided=True)
