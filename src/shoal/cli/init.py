"""``shoal init``."""

from __future__ import annotations

from pathlib import Path

from shoal.cli.terminal import File, Output, Separator, answer, say


def init(
    data: File,
    *,
    output: Output = None,
    k: int = 5,
    separator: Separator = None,
) -> None:
    """Draft a policy from data: roles and hierarchies guessed, with the reason beside each; read it before you use it.

    Example: `shoal init patients.csv -o policy.yaml`.

    Parameters
    ----------
    data
        A table.
    output
        Where the draft goes; standard output by default.
    k
        The k that the draft promises.
    separator
        The CSV separator, if it is not a comma.
    """
    from shoal.connect import files
    from shoal.core.originals import keep_apart
    from shoal.policy.suggest import suggest

    keep_apart([output], [data])
    frame = files.read(data, separator="\t" if separator == "TAB" else separator)
    draft = suggest(frame, Path(data).name.split(".")[0] if data != "-" else "table", k=k)
    if output is None or output == "-":
        answer(draft.text.rstrip("\n"))
    else:
        files.write_text(draft.text, output)
    say(draft.word)
