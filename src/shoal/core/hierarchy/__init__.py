"""Hierarchies: how a value becomes less precise. One file each; all compile to :class:`shoal.core.levels.Levels`."""

from shoal.core.hierarchy.base import Hierarchy
from shoal.core.spec import Family

HIERARCHIES: Family[Hierarchy] = Family(
    "hierarchy",
    __name__,
    {
        "tree": "tree:Tree",
        "range": "range:Range",
        "intervals": "intervals:Intervals",
        "prefix": "prefix:Prefix",
        "path": "path:Path",
        "calendar": "calendar:Calendar",
        "grid": "grid:Grid",
        "suppress": "suppress:Suppress",
        "sets": "sets:Sets",
        "custom": "custom:Custom",
    },
)

__all__ = ["HIERARCHIES", "Hierarchy"]
