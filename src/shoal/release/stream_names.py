"""Names beside the groups of a stream: a group hides nobody who is named, nor whom a pseudonym names again and again.

A stream has no end at which an adversary could look at all of it, as before a table is released. What can be known from
the policy is known before the first event: a column that names people and leaves under a mask that tells people apart
links the records of one person, and their boxes intersect. Whether a mask leaves a name (`round`, `blur` with some
letters, `replace` …) hangs on values that nobody has seen yet: only one that writes the same for everyone does not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shoal.core.errors import PolicyError
from shoal.promises.base import Promise, those_about
from shoal.views.role_view import RoleView

LINKED_ROWS = "linked-rows"


def linking(view: RoleView, promises: Sequence[Promise]) -> list[str]:
    """The masked columns of a view with promises about groups that may tell people apart, or name one again and again.

    z-anonymity is about what people show, and says under which names.
    """
    if those_about(promises, "events"):
        return []
    names = [n for n in view.masks if view.schema[n].role in ("subject", "identifier")]
    # a mask of a window writes what several people have in common, or mixes them
    return [n for n in names if view.masks[n].scope != "window" and not view.masks[n].constant]


def refuse_names(
    view: RoleView, promises: Sequence[Promise], published: Collection[str] | None, waived: Collection[str]
) -> None:
    """Raise if a stream of groups would name people, in clear or by a pseudonym that nobody accepted.

    ``published`` are the columns of a release where they are others than those of the view.
    """
    if those_about(promises, "events"):
        return
    # no waiver helps: a group hides nobody whose name stands beside it
    clear = [n for n in view.shown if view.schema[n].role in ("subject", "identifier")]
    if clear:
        raise PolicyError(
            f"the column {clear[0]!r} names people and is shown in clear in a view with promises",
            where=f"views.{view.role}.show",
            hint="mask it, or do not show it",
        )
    linked = [n for n in linking(view, promises) if published is None or n in published]
    if linked and LINKED_ROWS not in waived:
        raise PolicyError(
            f"the column {linked[0]!r} links the records of one person, and together they may fit fewer people than "
            "promised",
            where=f"views.{view.role}.masks",
            hint=f"do not show it, or accept it in the policy: `waive: [{LINKED_ROWS}]`",
        )
