"""What forms do: each changes the choices of a project and says where to go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from shoal.core.errors import ShoalError, UsageError
from shoal.web.choices import Choices, Kind
from shoal.web.pages import choose, promise, roles
from shoal.web.pages.column import column, hierarchy_of, sent_hierarchy
from shoal.web.pages.data import KINDS
from shoal.web.project import METHODS, Project, StaleError
from shoal.web.trial import tried

Sent = dict[str, str]
Action = Callable[[Project, str, Sent], str]  # an address to go to, or a page that says what is wrong


def version_of(sent: Sent) -> int:
    """The version of the choices that a page showed."""
    text = sent.get("version", "")
    if not text.isdigit():
        raise UsageError("the page does not say what it shows", where="studio", hint="load it again")
    return int(text)


def _kind(project: Project, rest: str, sent: Sent) -> str:
    if sent.get("kind") not in KINDS:
        raise UsageError("there is no such kind of data", where="studio", hint=f"one of: {', '.join(KINDS)}")
    project.as_kind(version_of(sent), cast(Kind, sent["kind"]))
    return f"/p/{project.id}/data"


def _sheet(project: Project, rest: str, sent: Sent) -> str:
    project.with_sheet(version_of(sent), sent.get("sheet", ""))
    return f"/p/{project.id}"


def _roles(project: Project, rest: str, sent: Sent) -> str:
    try:
        project.change(version_of(sent), lambda c: roles.chosen_roles(c, sent))
    except StaleError:
        raise
    except ShoalError as error:
        return roles.roles(project, error)
    return f"/p/{project.id}/roles"


def _promise(project: Project, rest: str, sent: Sent) -> str:
    try:
        project.with_settings(version_of(sent), **promise.sent_promises(project.chosen.settings, sent))
        project.policy()
    except StaleError:
        raise
    except ShoalError as error:
        return promise.promise(project, error)
    return f"/p/{project.id}/{'choose' if sent.get('next') else 'promise'}"


def _take(project: Project, rest: str, sent: Sent) -> str:
    project.with_settings(version_of(sent), **choose.sent_method(project.chosen.settings, sent))
    return f"/p/{project.id}/choose"


def _run(project: Project, rest: str, sent: Sent) -> str:
    try:
        project.with_settings(version_of(sent), **choose.sent_method(project.chosen.settings, sent))
        project.run()
    except StaleError:
        raise
    except ShoalError as error:
        return choose.choose(project, error)
    return f"/p/{project.id}/release"


def _try(project: Project, rest: str, sent: Sent) -> str:
    try:
        project.with_settings(version_of(sent), **promise.sent_promises(project.chosen.settings, sent))
        project.start("trial", lambda tell: tried(project, tell))
    except StaleError:
        raise
    except ShoalError as error:
        return promise.promise(project, error)
    return f"/p/{project.id}/promise"


def _compare(project: Project, rest: str, sent: Sent) -> str:
    try:
        people = project.frame.height
        ks = sorted({k for k in (*choose.KS, project.chosen.settings.k) if k <= people})
        project.compare(ks, list(METHODS))
    except ShoalError as error:
        return choose.choose(project, error)
    return f"/p/{project.id}/choose"


def _column(project: Project, rest: str, sent: Sent) -> str:
    at = int(rest) if rest.isdigit() else -1
    if not 0 <= at < len(project.chosen.columns):
        raise UsageError("there is no such column", where="studio")

    def changed(choices: Choices) -> Choices:
        name = list(choices.columns)[at]
        made = sent_hierarchy(project, name, sent)
        return msgspec.structs.replace(choices, columns={**choices.columns, name: made})

    try:
        project.change(version_of(sent), changed)
    except StaleError:
        raise
    except ShoalError as error:
        return column(project, at, sent, error)
    return f"/p/{project.id}/column/{at}"


def with_tree(project: Project, at: int, version: int, tree: dict[str, Any]) -> None:
    """Give a column a tree, if it knows its values."""

    def changed(choices: Choices) -> Choices:
        name = list(choices.columns)[at]
        made = hierarchy_of(project, name, tree)
        return msgspec.structs.replace(choices, columns={**choices.columns, name: made})

    project.change(version, changed)


ACTIONS: Mapping[str, Action] = {
    "kind": _kind,
    "sheet": _sheet,
    "roles": _roles,
    "promise": _promise,
    "take": _take,
    "run": _run,
    "try": _try,
    "compare": _compare,
    "column": _column,
}
