"""The join attack with a second file."""

from __future__ import annotations

from pathlib import Path

from shoal.connect import files
from shoal.core.errors import ShoalError, UsageError
from shoal.core.frames import require
from shoal.core.table import hierarchy_for
from shoal.measures.attack import join, members
from shoal.report.chart.svg import clean
from shoal.web.project import Project, separator_of


def attacked(project: Project, path: Path, name: str, on: list[str]) -> None:
    """Join the release with a register; the attacker knows the hierarchies, too."""
    made = project.release
    if made is None:
        raise UsageError("nothing is released yet", where="attack", hint="make a release first")
    if not on:
        raise UsageError("no column to join on", where="attack", hint="tick at least one")
    job = project.job()
    try:
        declared = {n: t for n, t in job.types.items() if n in on}
        register = files.read(str(path), separator=separator_of(path), types=declared)
        require(register, on, "the register")
    except ShoalError as error:
        error.where = (error.where or "").replace(str(path), clean(name))
        raise
    nodes = {}
    for column in on:
        hierarchy = hierarchy_for(register[column], job.schema[column])
        nodes[column] = members(hierarchy.compile(register[column].unique())[0])
    found = join(made.data, register, on, nodes)
    project.attacks.append((f"{clean(name)}, joined on {', '.join(on)}", str(found)))
