"""``shoal init``."""

from __future__ import annotations

from pathlib import Path

from shoal.cli.terminal import File, Output, Separator, Types, answer, declared_types, say


def init(
    data: File,
    *,
    output: Output = None,
    k: int = 5,
    type_: Types = None,
    separator: Separator = None,
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
    type_
        What a column holds, if it does not tell by itself: `birth=date:%d.%m.%Y`, `code=str`.
    separator
        The CSV separator, if it is not a comma.
    """
    from shoal.connect import files
    from shoal.core.originals import keep_apart
    from shoal.policy.draft import suggest

    keep_apart([output], [data])
    split = "\t" if separator == "TAB" else separator
    told: list[tuple[str, str]] = []
    frame = files.read(
        data, separator=split, types=declared_types(type_), tell=lambda column, words: told.append((column, words))
    )
    draft = suggest(frame, Path(data).name.split(".")[0] if data != "-" else "table", k=k)
    if output is None or output == "-":
        answer(draft.text.rstrip("\n"))
    else:
        files.write_text(draft.text, output)
    for column, words in told:  # after the header line was found to be one
        say(f"column {column!r}: {words}")
    say(draft.word)
    if draft.questions:
        say(f"hidden until you decide: {', '.join(draft.questions)} (why: beside each in the draft)")
