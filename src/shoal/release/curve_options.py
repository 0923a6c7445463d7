"""Curves from options alone, without a policy; and the wishes that both roads share."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.core.schema import Schema
from shoal.promises.base import Promise
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.release.common import OF_CURVES, Common, nothing_to_waive, reported
from shoal.release.curves import CurvesJob, about_curves
from shoal.release.methods import series_words
from shoal.release.promised import tightened
from shoal.release.wishes import Wishes
from shoal.series.representatives import FEWEST

READING = ("id", "time", "value", "every", "aggregate", "zone", "missing", "pattern", "perturb", "instants")


def curves_of_options(wishes: Wishes) -> CurvesJob:
    """The curves that options describe.

    >>> curves_of_options(Wishes({"series": True, "k": 4, "p": 2})).promises
    (KPAnonymity(k=4, p=2),)
    """
    wishes.take("series")
    if not (wishes.has("k") and wishes.has("p")):
        wishes.refuse("series", "curves need k and p", "for example k=16 and p=6")
    promise = KPAnonymity(wishes.take("k"), wishes.take("p"))
    sensitive = wishes.take("sensitive", ())
    beside = list(sensitive) if isinstance(sensitive, Mapping) else sensitive
    # l and t of curves are kept beside (k,P), as options state them
    promises, _ = tightened((promise,), Schema.build(quasi={}, sensitive=list(beside)), wishes)
    _, others = about_curves(promises)
    common = Common.of(wishes, "curves")
    nothing_to_waive(wishes, common._asdict(), OF_CURVES)
    reading = {**series_words(wishes, None, others=others), "sensitive": sensitive}
    reading |= {name: wishes.take(name) for name in READING if wishes.has(name)}
    if wishes.has("quasi"):
        reading["instants"] = _instants(wishes)
    if wishes.has("weights"):
        reading["weights"] = wishes.take("weights")
    more = {**common._asdict(), "promises": promises, "schema": Schema({})}
    return CurvesJob(
        reading=reading,
        compact=is_compact(wishes),
        cells=wishes.one_of("cells", "text", "struct"),
        representatives=with_means(wishes, promises),
        engine=wishes.one_of("engine", "here", "spark"),
        **reported(wishes, more),
    )


def is_compact(wishes: Wishes) -> bool:
    """Whether a row per group is asked for, whose cells are text.

    >>> is_compact(Wishes({"compact": True}))
    True
    """
    asked = bool(wishes.take("compact", False))
    if asked and wishes.has("cells"):
        wishes.refuse("cells", "a compact release has text cells", "leave it out")
    return asked


def with_means(wishes: Wishes, promises: tuple[Promise, ...]) -> bool:
    """Whether the mean of each P-subgroup is asked for, which needs a P that hides in it."""
    # whoever knows the other curves of a subgroup subtracts them from its mean
    asked = bool(wishes.take("representatives", False))
    p = about_curves(promises)[0].p
    if asked and p < FEWEST:
        wishes.refuse("representatives", f"a mean of {p} curves tells each of them", f"promise p={FEWEST} or more")
    return asked


def _instants(wishes: Wishes) -> list[str]:
    """The columns of curves that an outsider may know are their instants."""
    quasi = wishes.take("quasi")
    if isinstance(quasi, Mapping) and any(h is not None for h in quasi.values()):
        wishes.refuse("hierarchy", "has no effect on curves: they are released under envelopes", "leave it out")
    return [quasi] if isinstance(quasi, str) else list(quasi)
