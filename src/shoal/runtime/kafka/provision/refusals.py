"""What is refused before anything is made: views that cannot be served, and rights by which a role sees too much."""

from __future__ import annotations

from collections.abc import Set

from shoal.connect.kafka import Source
from shoal.core.errors import PolicyError
from shoal.policy.document import Policy
from shoal.runtime.kafka.provision.backfill import start_of
from shoal.runtime.kafka.provision.layout import Layout, Right
from shoal.runtime.kafka.regions.wish import check as check_regions
from shoal.runtime.kafka.regions.wish import regions_of
from shoal.runtime.kafka.serve.stateful import check as stateful_check
from shoal.runtime.kafka.serve.stateful import remembers
from shoal.views.role_view import RoleView


def check(policy: Policy) -> None:
    """Every view can be served, or none is: an invalid role is never dropped silently."""
    for role, view in policy.views.items():
        start_of(view)
        check_regions(policy, role)
        if remembers(view, RoleView.of(policy, role)):
            stateful_check(policy, role)
        if view.promises and view.service.get("key", "drop") == "pass":
            raise PolicyError("a view with promises cannot pass keys in clear", where=f"views.{role}.service.key")


def paths_of(rights: Set[Right], wanted: Layout, principals: Set[str]) -> set[Right]:
    """Rights by which a role reaches the source, an internal topic or another role's view."""
    out = set()
    forbidden = [wanted.source, *wanted.internal, *wanted.views.values()]
    for right in rights - wanted.rights:
        concerned = right.principal in principals or right.principal == "User:*"
        # whoever may change the cluster gives themselves any right; whoever acts as a broker reads every topic
        rules = right.resource == "BROKER" and right.operation in ("ALL", "ALTER", "CLUSTER_ACTION")
        if concerned and (rules or any(right.covers("TOPIC", name) for name in forbidden)):
            out.add(right)
    return out


def is_ours(right: Right, topics: Set[str], roles: Set[str], source: Source) -> bool:
    """Whether a right is about what a policy makes, or reaches its workers; a user may be at home in other policies."""
    if right.resource == "TOPIC":
        return right.name in topics
    if right.resource == "GROUP":
        return right.name in {f"{role}." for role in roles} or right.covers("GROUP", source.group)
    return right.resource != "TRANSACTIONAL_ID" or right.covers("TRANSACTIONAL_ID", f"shoal-{source.topic}-")


def at_home_nowhere(users: Set[str], others: Set[Right]) -> set[str]:
    """Of these users, those without other rights: only their logins may be taken away."""
    return set(users) - {right.principal.removeprefix("User:") for right in others}


def refuse_closeness(policy: Policy) -> None:
    """t-closeness, and whatever else compares a group with all rows, needs the distribution of the whole stream."""
    for role, view in policy.views.items():
        whole = [p.use for p in view.promises if p.compares_with_all]
        if whole and regions_of(view) != 1:
            raise PolicyError(
                f"{whole[0]} does not compose over partitions: each sees its own distribution",
                where=f"views.{role}.promises",
                hint="`service: {repartition: 1}` brings all records together; or use l-diversity",
            )
