"""Table methods: an integer matrix and promises in, a label per row out. A file per algorithm, named as in papers."""

from shoal.core.spec import Family
from shoal.tables.base import Grouping, TableMethod

TABLE_METHODS: Family[TableMethod] = Family(
    "table_method",
    __name__,
    {
        "datafly": "datafly:Datafly",
        "forest": "forest:Forest",
        "lattice": "lattice:Lattice",
        "microaggregation": "microaggregation:Microaggregation",
        "local": "local:Local",
        "mondrian": "mondrian:Mondrian",
        "topdown": "topdown:TopDown",
    },
)

__all__ = ["TABLE_METHODS", "Grouping", "TableMethod"]
