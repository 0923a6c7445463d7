"""The repartition step: records that must meet in one state are brought together, whatever partition they came in."""
