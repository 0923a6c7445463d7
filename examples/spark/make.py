"""Invented patients as Parquet."""

from shoal.datasets.hospital import hospital

hospital(5000, seed=1, visits=1.2).write_parquet("visits.parquet")
