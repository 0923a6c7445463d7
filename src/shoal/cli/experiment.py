"""``shoal experiment``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from shoal.cli.options import only_with
from shoal.cli.terminal import answer
from shoal.core.errors import UsageError


def experiment(
    name: str | None = None,
    *,
    out: Annotated[str | None, Parameter(alias="-o")] = None,
    data: str | None = None,
) -> None:
    """Reproduce the tables and figures of the papers, as CSV and pictures; without a name, list what there is.

    Example: `shoal experiment kp --out figures`.

    Parameters
    ----------
    name
        Which experiment.
    out
        A folder for its files; `out/experiments` if not given.
    data
        A folder with the real data sets; without it, generated data of the same shape are used.
    """
    from shoal.core.originals import Folder
    from shoal.experiments import EXPERIMENTS, find

    if name is None:
        only_with(False, "the name of an experiment", out=out, data=data)
        answer("\n".join(f"{key:<12} {line}" for key, (_, line) in EXPERIMENTS.items()))
        return
    if name not in EXPERIMENTS:
        raise UsageError(f"there is no experiment {name!r}", hint=f"one of: {', '.join(EXPERIMENTS)}")
    folder = Path(out or "out/experiments") / name
    Folder(str(folder), ("*",)).require()
    folder.mkdir(parents=True, exist_ok=True)
    made = find(name)(folder, Path(data) if data else None)
    if name in PRINTED:
        answer(_lines(made))
    answer(f"written: {folder}")


PRINTED = ("z-profile", "report")  # what is published beside what is ours: worth reading at once


def _lines(table: Any) -> str:
    """A table as text."""
    rows = [table.columns, *[[f"{v:,.4g}" if isinstance(v, float) else str(v) for v in row] for row in table.rows()]]
    wide = [min(60, max(len(row[at]) for row in rows)) for at in range(len(rows[0]))]
    return "\n".join("  ".join(cell[:60].ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip() for row in rows)
