"""The seam of all promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.core.spec import Spec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.core.groups import Finding, Groups


class Promise(Spec, frozen=True):
    """Something that must hold of every group of a release.

    Where every row is a person, promises about groups are closed under union: two groups that keep one also keep it
    together. So a method may always merge, and groups that happen to read alike do no harm. Someone whose rows lie in
    both groups counts once in their union, which may tilt entropy, frequency and distance: there the union is judged.
    """

    @property
    def title(self) -> str:
        """As a person says it."""
        return self.use

    @property
    def asked(self) -> float:
        """The level that is promised."""
        raise NotImplementedError

    @property
    def sensitive(self) -> str | None:
        """The sensitive column it speaks about, if any."""
        return None

    def measure(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The level each group reaches, and whether that is enough: by the definition alone."""
        raise NotImplementedError

    def judge(self, groups: Groups) -> Finding:
        """Judge released groups: the worst of them against what was asked."""
        from shoal.core.groups import Finding

        reached, kept = self.measure(groups)
        broken = int((~kept).sum())
        # the worst group is one that breaks the promise, or else the one nearest to breaking it
        most = "closeness" in self.use
        worst = float(reached.max() if most else reached.min()) if len(reached) else 0.0
        note = "" if len(reached) else "nothing was released"
        return Finding(self.title, broken == 0, self.asked, worst, groups.count, broken, groups.unit, note)
