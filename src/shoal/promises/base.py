"""The seam of all promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.core.spec import Spec

if TYPE_CHECKING:
    from shoal.core.groups import Finding, Groups


class Promise(Spec, frozen=True):
    """Something that must hold of every group of a release.

    All promises about groups are closed under union: two groups that keep one also keep it together. So a method
    may always merge, and groups whose labels happen to read alike do no harm.
    """

    def judge(self, groups: Groups) -> Finding:
        """Judge released groups by the definition alone."""
        raise NotImplementedError

    @property
    def sensitive(self) -> str | None:
        """The sensitive column it speaks about, if any."""
        return None
