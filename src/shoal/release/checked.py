"""Is a policy whole, and safe? With data: a dry run of every view, and what roles learn together."""

from __future__ import annotations

import msgspec
import polars as pl

from shoal.core.errors import PolicyError, UsageError
from shoal.core.keys import DEFAULT, KeyRing
from shoal.core.known import doubts, refuse_few
from shoal.core.notebook import Shown
from shoal.policy.document import Policy
from shoal.release.carrying import Carries, carries
from shoal.release.collusion import Pool
from shoal.release.judges import told_apart
from shoal.release.promised import refuse_nothing
from shoal.release.roles import known, notes, pools
from shoal.views.explain import explain
from shoal.views.role_view import RoleView


class Checked(Shown, msgspec.Struct, frozen=True):
    """What a check found: how many views, which keys are missing, what roles learn together, which views failed.

    >>> Checked(views=2, keys_missing=["default"])
    <Checked: 2 views, 0 failed, 0 sets of roles compared>
    """

    views: int
    keys_missing: list[str]
    rows: int | None = None  # of the sample
    pools: list[Pool] = []
    failed: dict[str, str] = {}  # views that could not be made, and why
    uncompared: dict[str, str] = {}  # views that were made, and why they are not compared with others
    notes: list[str] = []
    carries: dict[str, Carries] = {}  # per view with a stream method: how many people its stream brings together

    @property
    def worst(self) -> Pool | None:
        """The roles that can put most records together."""
        return max((p for p in self.pools if p.new), key=lambda p: p.share, default=None)

    def __str__(self) -> str:
        made = "" if self.rows is None else f", {self.views - len(self.failed)} made from {self.rows:,} rows"
        warned = [f"the key {name!r} is not available" for name in self.keys_missing]
        warned += [f"the view {role!r} could not be made: {reason}" for role, reason in self.failed.items()]
        lines = [f"{self.views} views, all well formed{made}", *map(str, self.pools)]
        lines += [f"{role}: {carried}" for role, carried in self.carries.items()]
        return "\n".join([*lines, *(f"warning: {words}" for words in [*self.notes, *warned])])

    def __repr__(self) -> str:
        return f"<Checked: {self.views} views, {len(self.failed)} failed, {len(self.pools)} sets of roles compared>"


def checked(
    policy: Policy, frame: pl.DataFrame | None = None, *, keys: KeyRing | None = None, together: int = 2
) -> Checked:
    """Check a policy, and with a sample how its views behave on it.

    >>> from shoal.policy.load import parse
    >>> checked(parse("columns: {diag: sensitive}\\nviews: {ward: {show: [diag]}}")).views
    1
    """
    if together < 1:
        raise UsageError(f"together must be at least 1, found {together}", where="together", hint="for example 2")
    # resolves every view: a mask that does not fit its column is told before any row is read
    explain(policy)
    for name, view in policy.views.items():
        seen = RoleView.of(policy, name)
        refuse_nothing(policy, seen, view.promises)
        try:  # a time that is shown beside boxes that are used again
            told_apart(view.method, policy.schema, view.promises, policy.schema.columns, seen)
        except UsageError as error:
            raise PolicyError(error.message, where=f"views.{name}.method", hint=error.hint) from None
    for column in policy.schema.columns.values():
        if column.hierarchy is not None and column.hierarchy.files:
            column.hierarchy.declared()  # reads their files: a missing one is reported here, not when the service runs
    ring = KeyRing.load() if keys is None else keys
    named = {m.key for v in policy.views.values() for ms in v.masks.values() for m in ms if m.keyed}  # type: ignore[attr-defined]
    # =|samples are drawn with the default key, whether a mask needs it or not
    named |= {DEFAULT for view in policy.views.values() if view.sample is not None}
    lacking = sorted(name for name in named if name not in ring.keys)
    if frame is None:
        return Checked(len(policy.views), lacking)
    counts = known(frame, policy, keys=ring)
    refuse_few(counts)
    found, left_out = pools(frame, policy, keys=ring, most=together)
    return Checked(
        len(policy.views),
        lacking,
        frame.height,
        found,
        {role: why.reason for role, why in left_out.items() if not why.made},
        {role: why.reason for role, why in left_out.items() if why.made},
        [*doubts(counts), *notes(frame, policy, keys=ring)],
        carries(policy, frame, keys=ring),
    )
