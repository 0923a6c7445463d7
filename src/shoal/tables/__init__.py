"""Table methods: an integer matrix and promises in, a label per row out. A file per algorithm, named as in papers."""

from shoal.core.spec import Family
from shoal.tables.base import Grouping, TableMethod

TABLE_METHODS: Family[TableMethod] = Family(
    "table_method",
    __name__,
    {
        "mondrian": "mondrian:Mondrian",
    },
)

__all__ = ["TABLE_METHODS", "Grouping", "TableMethod"]
