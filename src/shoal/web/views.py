"""One table, the views of all roles side by side, and what roles learn together."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from shoal.core.errors import ShoalError, UsageError
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.policy.load import parse
from shoal.release.checked import Checked, checked
from shoal.release.roles import view
from shoal.report.chart.svg import clean
from shoal.web.project import Project
from shoal.web.work import Tell

LARGEST = 1 << 20
SAMPLED = 5_000  # rows of which roles are compared


class Seen(msgspec.Struct, frozen=True):
    """What one role sees of the first rows, or why nothing."""

    role: str
    rows: Any  # a frame
    why: str = ""


class Roles(msgspec.Struct, frozen=True):
    """All roles of a policy on one table."""

    policy: str
    seen: list[Seen]
    checked: Checked
    borrowed: bool  # keys of this look only stood in for those that are not at hand


def of_policy(project: Project, path: Path, name: str) -> None:
    """Take a policy that somebody has, and begin to look at it."""
    if path.stat().st_size > LARGEST:
        raise UsageError("a policy is a text of a few lines", where=clean(name), hint="is it the right file?")
    try:
        text = path.read_text(encoding="utf-8")
        policy = parse(text, clean(name), project.folder)
    except UnicodeDecodeError:
        raise UsageError("the policy is not UTF-8 text", where=clean(name), hint="save it as UTF-8") from None
    files = [f for c in policy.schema.columns.values() if c.hierarchy is not None for f in c.hierarchy.files]
    if files:
        raise UsageError("its trees lie in files", where=clean(name), hint="write them into the policy as `nodes`")
    project.start("roles", lambda tell: looked(project, policy, clean(name), tell))


def looked(project: Project, policy: Policy, name: str, tell: Tell) -> Roles:
    """Every role's view of the same rows; then what roles learn together."""
    ring = KeyRing.load()
    named = {m.key for v in policy.views.values() for ms in v.masks.values() for m in ms if m.keyed}  # type: ignore[attr-defined]
    lacking = sorted(n for n in {*named, "default"} if n not in ring.keys)
    keys = KeyRing({**ring.keys, **{n: {1: secrets.token_bytes(32)} for n in lacking}})
    frame = project.frame.head(SAMPLED)
    frame = frame.cast({n: pl.String for n, t in policy.types().items() if t == "str" and n in frame.columns})
    seen = []
    for at, role in enumerate(policy.views):
        tell(0.5 * at / len(policy.views), f"the view of {role}")
        try:
            made = view(frame, policy, role, keys=keys)
            seen.append(Seen(role, made.data.head(8)))
        except ShoalError as error:
            seen.append(Seen(role, None, error.message))
    tell(0.5, "what roles learn together")
    return Roles(name, seen, checked(policy, frame, keys=keys), bool(lacking))
