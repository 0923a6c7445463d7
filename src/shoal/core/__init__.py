"""Values only: specs, schema, hierarchies, cells, tables, groups, releases, errors."""
