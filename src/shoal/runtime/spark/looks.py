"""The rows of a release on Spark, as the adversary looks at them: each question is one aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.domain import Domain, counted
from shoal.core.schema import Schema
from shoal.runtime.spark.work import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIMES = "__shoal_times"


def quoted(name: str) -> str:
    """A column name as it stands: dots and blanks are part of it."""
    return "`" + name.replace("`", "``") + "`"


def sampled(rows: DataFrame, given: int, most: int) -> pl.DataFrame:
    """About ``most`` of the ``given`` rows: of each combination in proportion to its rows, rounded by hash.

    So the same rows in any order give the same sample, and a table of few combinations has all of them in it.
    """
    from pyspark.sql import functions as sql

    if given <= most:
        return frame_of(rows.toArrow())
    names = [quoted(name) for name in rows.columns]
    asked = sql.count(sql.lit(1)) * sql.lit(most)
    counted = rows.groupBy(*names).agg(asked.alias(TIMES))
    rest = sql.pmod(sql.col(TIMES), sql.lit(given))
    # some of the combinations get one row more, so that the sample is as large as asked
    more = (sql.pmod(sql.xxhash64(*names), sql.lit(given)) < rest).cast("long")
    times = ((sql.col(TIMES) - rest) / sql.lit(given)).cast("long") + more
    found = frame_of(counted.select(*names, times.alias(TIMES)).filter(sql.col(TIMES) > 0).toArrow())
    return found.select(pl.exclude(TIMES).repeat_by(TIMES).explode())


def domain_of(rows: DataFrame, schema: Schema) -> Domain:
    """The distinct values of quasi and sensitive columns, and how often each occurs."""
    values, count = {}, {}
    for name in [*schema.quasi, *schema.sensitive]:
        found = rows.groupBy(quoted(name)).count().toArrow()
        frame = pl.from_arrow(found)
        assert isinstance(frame, pl.DataFrame)
        values[name], count[name] = counted(frame[name], frame["count"])
    return Domain(values, count)


def shares_of(rows: DataFrame, column: str, values: pl.Series, person: str | None) -> NDArray[np.float64]:
    """The share of all people (or rows) who hold each value of a column."""
    held = rows.select(quoted(column)) if person is None else rows.select(quoted(person), quoted(column)).distinct()
    everyone: int = rows.count() if person is None else rows.select(quoted(person)).distinct().count()
    found = pl.from_arrow(held.groupBy(quoted(column)).count().toArrow())
    assert isinstance(found, pl.DataFrame)
    have, count = counted(found[column].cast(values.dtype), found["count"])
    joined = pl.DataFrame({"v": values}).join(
        pl.DataFrame({"v": have, "n": count}), on="v", how="left", nulls_equal=True, maintain_order="left"
    )
    shares: NDArray[np.float64] = joined["n"].fill_null(0).to_numpy() / max(1, everyone)
    return shares


class OnSpark:
    """See :class:`shoal.release.regional.figures.Looks`."""

    def __init__(self, rows: DataFrame, columns: Sequence[str], person: str | None) -> None:
        self._rows = rows
        self.columns = list(columns)
        self.person = person

    def stable(self, columns: Sequence[str], least: float) -> list[str]:
        """Columns that are the same in all rows of a person, for at least this share of who has several rows."""
        from pyspark.sql import functions as sql

        if self.person is None or not columns:
            return []
        kinds = self._rows.groupBy(quoted(self.person)).agg(
            sql.count("*").alias("n"), *[self._kinds(c).alias(f"c{at}") for at, c in enumerate(columns)]
        )
        same = [sql.sum((sql.col(f"c{at}") == 1).cast("long")).alias(f"s{at}") for at in range(len(columns))]
        row = kinds.filter("n > 1").agg(sql.count("*").alias("all"), *same).collect()[0]
        many = int(row["all"])
        return [c for at, c in enumerate(columns) if many and int(row[f"s{at}"] or 0) >= least * many]

    def _kinds(self, name: str):  # type: ignore[no-untyped-def]
        from pyspark.sql import functions as sql

        # a missing value is one, too
        return sql.countDistinct(sql.coalesce(sql.col(quoted(name)).cast("string"), sql.lit("\0")))

    def links(self, columns: Sequence[str]) -> tuple[int, int]:
        """Values (or combinations) that stand in several rows, and how many of these belong to one person."""
        from pyspark.sql import functions as sql

        whose = sql.lit(1) if self.person is None else self._kinds(self.person)
        many = self._rows.groupBy(*map(quoted, columns)).agg(sql.count("*").alias("n"), whose.alias("people"))
        row = many.filter("n > 1").agg(
            sql.count("*").alias("all"), sql.sum((sql.col("people") == 1).cast("long")).alias("one")
        )
        found = row.collect()[0]
        return int(found["all"]), int(found["one"] or 0)

    def singles(self, columns: Sequence[str]) -> tuple[int, int]:
        """How many people there are, and how many have a value (or combination) of their own."""
        from pyspark.sql import functions as sql

        names = [quoted(c) for c in columns]
        if self.person is None:
            found = self._rows.groupBy(*names).count()
            return self._rows.count(), found.filter("count = 1").count()
        held = self._rows.select(*names, quoted(self.person)).distinct()
        alone = held.groupBy(*names).agg(sql.count("*").alias("n"), sql.first(quoted(self.person)).alias("who"))
        crowd = self._rows.select(quoted(self.person)).distinct().count()
        return crowd, alone.filter("n = 1").select("who").distinct().count()

    def distinct(self, column: str) -> tuple[int, int]:
        """Distinct values of a column, and how many of them stand in one row only."""
        from pyspark.sql import functions as sql

        found = self._rows.groupBy(quoted(column)).count()
        row = found.agg(
            sql.count("*").alias("all"), sql.sum((sql.col("count") == 1).cast("long")).alias("one")
        ).collect()[0]
        return int(row["all"]), int(row["one"] or 0)
