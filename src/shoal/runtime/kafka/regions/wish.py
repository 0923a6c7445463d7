"""What a view says about regions: ``service: {repartition: 16}``, and what forbids it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.connect.kafka import internal
from shoal.core.errors import PolicyError
from shoal.policy.document import Policy, View
from shoal.streams.base import StreamMethod
from shoal.views.role_view import RoleView

MOST_REGIONS = 1000  # regions of a view


def regions_of(view: View) -> int:
    """How many regions the records of a view are parted into; 0: each partition of the source counts for itself.

    >>> regions_of(View("research", show=(), service={"repartition": 16}))
    16
    """
    said = view.service.get("repartition")
    if said is None:
        return 0
    if not isinstance(said, int) or isinstance(said, bool) or not 1 <= said <= MOST_REGIONS:
        raise PolicyError(
            f"expected a number of regions between 1 and {MOST_REGIONS:,}",
            where=f"views.{view.name}.service.repartition",
            hint="as many as the source has partitions, or fewer",
        )
    return said


def routed(policy: Policy) -> dict[str, int]:
    """The views of a policy that are repartitioned, with their regions."""
    return {role: count for role, view in policy.views.items() if (count := regions_of(view))}


def unrouted(policy: Policy) -> Policy:
    """The policy as it would be without the repartition step: to try records on views, one by one."""
    views = {
        role: msgspec.structs.replace(view, service={k: v for k, v in view.service.items() if k != "repartition"})
        for role, view in policy.views.items()
    }
    return msgspec.structs.replace(policy, views=views)


def topics_for(source: str) -> tuple[str, str, str]:
    """The topics of the step: the records by region, the state of who reads them, and the cuts.

    >>> topics_for("visits")
    ('visits.shoal.regions', 'visits.shoal.regions.shoal.changelog', 'visits.shoal.cuts')
    """
    regions = internal(source, "regions")
    return regions, internal(regions, "changelog"), internal(source, "cuts")


def check(policy: Policy, role: str) -> None:
    """Refuse what regions cannot do for a view; a view without them is not looked at."""
    view, where = policy.views[role], f"views.{role}.service.repartition"
    count = regions_of(view)
    if not count:
        return
    method = view.method
    if not view.promises or not isinstance(method, StreamMethod):
        raise PolicyError("only views with promises count people over partitions", where=where, hint="leave it out")
    if count == 1:
        return  # everything meets there
    hint = "repartition: 1 brings everything together"
    whole = [p.use for p in view.promises if p.compares_with_all]
    if whole or method.meets == "everyone":
        what = whole[0] if whole else method.use
        raise PolicyError(f"{what} needs all records in one region", where=where, hint=hint)
    quasi = counted(policy, role)
    if not quasi:
        raise PolicyError("no quasi column that is read from the records tells regions apart", where=where, hint=hint)
    if method.meets == "value":
        _refuse_values(policy, role, quasi, where, hint)


def _refuse_values(policy: Policy, role: str, quasi: list[str], where: str, hint: str) -> None:
    resolved = RoleView.of(policy, role)
    seen = [n for n in policy.schema.quasi if n not in resolved.hides]
    if len(seen) != 1:
        raise PolicyError(
            f"each of {len(seen)} quasi columns is counted for itself, and a record can be in one region only",
            where=where,
            hint=f"show one of them, or {hint}",
        )
    if seen != quasi:
        raise PolicyError(f"{seen[0]!r} is derived: its values are not in the records", where=where, hint=hint)
    if seen[0] in resolved.masks:
        raise PolicyError(f"{seen[0]!r} is masked before it is counted", where=where, hint=hint)


def counted(policy: Policy, role: str) -> list[str]:
    """The quasi columns of a view that stand in the records themselves."""
    hides = RoleView.of(policy, role).hides
    return [n for n in policy.schema.quasi if n not in hides and policy.schema[n].derive is None]


def cost_told(counts: Mapping[str, int], source: str, partitions: int, promising: Mapping[str, Any]) -> list[str]:
    """What `plan` says about views with promises: what regions cost, and what it costs to have none."""
    out = []
    for role in promising:
        if count := counts.get(role):
            out.append(
                f"{role}: every record is written a second time, sealed, to {internal(source, 'regions')} "
                f"({count} regions), and waits for two commits instead of one"
            )
        elif partitions > 1:
            out.append(
                f"{role}: each of the {partitions} partitions counts its people for itself, so more is withheld or "
                f"blurred than in one (`service: {{repartition: {partitions}}}` brings them together)"
            )
    return out
