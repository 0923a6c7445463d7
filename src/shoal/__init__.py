"""Shoal: anonymize tables, time series and event streams, and prove every release before anyone reads it.

>>> import shoal
>>> release = shoal.anonymize(shoal.hospital(300, seed=1), quasi=["zip", "sex", "age"], sensitive=["diag"], k=3, l=2)
>>> release.report.verified
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# what `shoal.<name>` is, and where it lives; loaded when first used, so that importing shoal costs nothing
_FACE = {
    "anonymize": "shoal.api",
    "verify": "shoal.api",
    "measure": "shoal.api",
    "attack": "shoal.api",
    "anonymize_two": "shoal.release.two_tables",
    "view": "shoal.api",
    "compare": "shoal.api",
    "tune": "shoal.api",
    "check": "shoal.api",
    "stream": "shoal.api",
    "plan": "shoal.api",
    "anonymize_series": "shoal.api",
    "z_anonymity": "shoal.streams.z_stream",
    "hospital": "shoal.datasets.hospital",
    "ShoalError": "shoal.core.errors",
    "PromiseError": "shoal.core.errors",
    "UsageError": "shoal.core.errors",
    "PolicyError": "shoal.core.errors",
    "InputError": "shoal.core.errors",
    "Column": "shoal.core.schema",
    "Schema": "shoal.core.schema",
    "Tree": "shoal.core.hierarchy.tree",
    "Range": "shoal.core.hierarchy.range",
    "Prefix": "shoal.core.hierarchy.prefix",
    "Path": "shoal.core.hierarchy.path",
    "Calendar": "shoal.core.hierarchy.calendar",
    "Grid": "shoal.core.hierarchy.grid",
    "Suppress": "shoal.core.hierarchy.suppress",
    "Sets": "shoal.core.hierarchy.sets",
    "Custom": "shoal.core.hierarchy.custom",
    "KAnonymity": "shoal.promises.k_anonymity",
    "LDiversity": "shoal.promises.l_diversity",
    "TCloseness": "shoal.promises.t_closeness",
    "KMap": "shoal.promises.k_map",
    "DeltaPresence": "shoal.promises.delta_presence",
    "BetaLikeness": "shoal.promises.beta_likeness",
    "AlphaKAnonymity": "shoal.promises.alpha_k_anonymity",
    "TrajectoryAnonymity": "shoal.promises.trajectory_anonymity",
}

__all__ = sorted(_FACE)

if TYPE_CHECKING:
    from shoal.api import anonymize, anonymize_series, attack, check, compare, measure, plan, stream, tune, verify, view
    from shoal.core.errors import InputError, PolicyError, PromiseError, ShoalError, UsageError
    from shoal.core.hierarchy.calendar import Calendar
    from shoal.core.hierarchy.custom import Custom
    from shoal.core.hierarchy.grid import Grid
    from shoal.core.hierarchy.path import Path
    from shoal.core.hierarchy.prefix import Prefix
    from shoal.core.hierarchy.range import Range
    from shoal.core.hierarchy.sets import Sets
    from shoal.core.hierarchy.suppress import Suppress
    from shoal.core.hierarchy.tree import Tree
    from shoal.core.schema import Column, Schema
    from shoal.datasets.hospital import hospital
    from shoal.promises.alpha_k_anonymity import AlphaKAnonymity
    from shoal.promises.beta_likeness import BetaLikeness
    from shoal.promises.delta_presence import DeltaPresence
    from shoal.promises.k_anonymity import KAnonymity
    from shoal.promises.k_map import KMap
    from shoal.promises.l_diversity import LDiversity
    from shoal.promises.t_closeness import TCloseness
    from shoal.promises.trajectory_anonymity import TrajectoryAnonymity
    from shoal.release.two_tables import anonymize_two
    from shoal.streams.z_stream import z_anonymity


def __getattr__(name: str) -> Any:
    if name in _FACE:
        return getattr(import_module(_FACE[name]), name)
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FACE])
