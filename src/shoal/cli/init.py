"""``shoal init``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from shoal.cli.options import Flag, Reading
from shoal.cli.terminal import File, Output, Whole, answer, say
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from shoal.policy.suggest import Guess


def init(
    data: File,
    *,
    output: Output = None,
    k: Whole = 5,
    ask: Flag = False,
    reading: Reading = Reading(),
) -> None:
    """Draft a policy from data: roles and hierarchies guessed, with the reason beside each; read it before you use it.

    What names people is not shown, and neither is a column that nobody decided on: the draft asks.

    Example: `shoal init patients.csv -o policy.yaml`.

    Parameters
    ----------
    data
        A table.
    output
        Where the draft goes; standard output by default.
    k
        The k that the draft promises.
    ask
        Go through the guesses in the terminal: what each column is, why, and how common values would read before and
        after. Enter keeps a guess, a letter changes it; the answers may also come from standard input.
    """
    from shoal.connect import files
    from shoal.connect.formats import title_of
    from shoal.core.columns import require_columns
    from shoal.core.originals import keep_apart
    from shoal.policy.draft import suggest

    keep_apart([output], [data])
    if k < 1:
        raise UsageError(f"k must be at least 1, found {k}", where="--k", hint="for example 5")
    told: list[tuple[str, str]] = []
    frame = files.read(
        data, separator=reading.split, types=reading.types, tell=lambda column, words: told.append((column, words))
    )
    require_columns(list(reading.types), frame.columns, "--type")
    if ask and data == "-":
        raise UsageError("standard input is the data, and answers would come from there", where="--ask", hint="a file")

    def decide(found: dict[str, Guess]) -> dict[str, Guess]:
        from shoal.policy.ask import asked

        return asked(frame, found, sys.stdin.readline, say) if ask else found

    draft = suggest(frame, title_of(data), k=k, decide=decide)
    if output is None or output == "-":
        answer(draft.text.rstrip("\n"))
    else:
        files.write_text(draft.text, output)
    for column, words in told:  # after the header line was found to be one
        say(f"column {column!r}: {words}")
    say(draft.word)
    if draft.questions:
        say(f"hidden until you decide: {', '.join(draft.questions)} (why: beside each in the draft)")
