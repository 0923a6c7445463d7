"""spark-submit release.py INPUT POLICY OUTPUT: a verified release of Parquet on Spark."""

import sys

from pyspark.sql import SparkSession

import shoal.spark


def main(source: str, policy: str, target: str) -> None:
    """Read, release, say how it went, write."""
    session = SparkSession.builder.appName("release").getOrCreate()
    release = shoal.spark.anonymize(session.read.parquet(source), policy)
    sys.stdout.write(release.report.text())
    release.data.write.parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
