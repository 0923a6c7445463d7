"""What every worker must know to release one region of a table, and how it does so.

Nothing here knows where rows come from or go to: files on one machine and Spark call the same functions. What a worker
returns depends on the rows of its region, the plan and nothing else, neither their order nor who else works: a region
that is solved again, because a machine died, gives the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.domain import Domain
from shoal.core.groups import Groups
from shoal.core.levels import Codes, Levels
from shoal.core.release import read_alike, recode
from shoal.core.schema import Schema
from shoal.core.table import Table, by_value, code, factorize
from shoal.measures.loss import Loss, loss, lost_bits
from shoal.promises.base import Promise
from shoal.promises.rules import least_people
from shoal.tables.base import Grouping, Progress, TableMethod, silent
from shoal.tables.improve import draws, mixed
from shoal.tables.regions import Regions, cut

PERSON = "\x00person"  # whose a released row is, beside it until it is judged
BUCKET = "\x00bucket"  # which of the parts of the release a row leaves in
SAMPLE = 1 << 17  # rows that show where to cut
FEW_VALUES, FEW_NUMBERS = 1 << 16, 1 << 10  # of a column that may be kept as categories; any two numbers are a text
FEWEST = 4096  # rows of a region, and 50 times k: smaller ones lose more by their borders


@dataclass
class Plan:
    """A table cut into regions. It is passed to every worker, so it is small: distinct values, cuts, and options.

    >>> from shoal.core.schema import Column
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.tables.mondrian import Mondrian
    >>> schema = Schema({"age": Column("quasi")})
    >>> domain = Domain({"age": pl.Series([20, 21, 50, 52])}, {"age": np.ones(4, np.int64)})
    >>> cuts, often = Regions(*np.zeros((4, 0), np.int64)), {"age": np.ones(4)}
    >>> plan = Plan(schema, (KAnonymity(2),), Mondrian(), domain, cuts, often, 7, 1)
    >>> plan.seed_of(0)
    7
    """

    schema: Schema
    promises: tuple[Promise, ...]
    method: TableMethod
    domain: Domain
    regions: Regions
    frequency: Mapping[str, NDArray[np.float64]]  # how often each code of a quasi column stands in the whole table
    seed: int
    buckets: int
    typed: bool = False
    parts: int = 1  # regions that are released by themselves: those that cannot stand alone were joined

    def seed_of(self, region: int) -> int:
        """The seed of one region; of a table that is one region, the seed itself."""
        return self.seed if self.parts == 1 else int(draws(self.seed, 0x7E61 + region, 1)[0] >> np.uint64(1))

    def columns_of_few_cells(self) -> list[str]:
        """Quasi columns that are published as so few texts only, nodes or intervals, that all fit in memory."""
        if self.typed:
            return []
        known = {name: self.domain.compiled[name][0] for name in self.schema.quasi}
        most = {n: FEW_VALUES if levels.numbers is None else FEW_NUMBERS for n, levels in known.items()}
        return [n for n, levels in known.items() if levels.size <= most[n] and not levels.most]


@dataclass(frozen=True)
class Solved:
    """One region released: its rows, with whose they are and their bucket; and what the report needs of it."""

    rows: pl.DataFrame
    loss: Loss
    bits: tuple[float, float]
    before: Mapping[int, int]  # how many combinations of original values are shared by how many people
    suppressed: int


def solve(
    plan: Plan, region: int, frame: pl.DataFrame, progress: Progress = silent, *, categories: bool = False
) -> Solved:
    """Release the rows of one region, by the ordinary method. Costs what the method costs.

    With ``categories``, columns of few different cells hold polars' categories instead of text: for who stays in one
    process, in which these mean the same everywhere.

    >>> from shoal.core.schema import Column
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.tables.mondrian import Mondrian
    >>> schema = Schema({"age": Column("quasi")})
    >>> domain = Domain({"age": pl.Series([20, 21, 50, 52])}, {"age": np.ones(4, np.int64)})
    >>> cuts, often = Regions(*np.zeros((4, 0), np.int64)), {"age": np.ones(4)}
    >>> plan = Plan(schema, (KAnonymity(2),), Mondrian(), domain, cuts, often, 7, 1)
    >>> sorted(solve(plan, 0, pl.DataFrame({"age": [20, 21, 50, 52]})).rows["age"])
    ['[20, 21]', '[20, 21]', '[50, 52]', '[50, 52]']
    """
    table = replace(code(frame, plan.schema, domain=plan.domain), parts=plan.parts)
    grouping = plan.method.group(table, plan.promises, seed=plan.seed_of(region), progress=progress)
    return _released(plan, frame, table, grouping, categories)


def solve_alike(plan: Plan, frame: pl.DataFrame, *, categories: bool = False) -> Solved:
    """Release rows that have the same quasi values as they are, which no method can do better.

    They may be some of a region of such rows, which keeps the promises as one group: rows that read alike are judged
    together, wherever they come from. Who shared their values ``before`` is left to say for who knows all of them.

    >>> from shoal.core.schema import Column
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.tables.mondrian import Mondrian
    >>> schema = Schema({"age": Column("quasi")})
    >>> domain = Domain({"age": pl.Series([20, 21])}, {"age": np.ones(2, np.int64)})
    >>> cuts, often = Regions(*np.zeros((4, 0), np.int64)), {"age": np.ones(2)}
    >>> plan = Plan(schema, (KAnonymity(2),), Mondrian(), domain, cuts, often, 7, 1)
    >>> solve_alike(plan, pl.DataFrame({"age": [20, 20]})).rows["age"].to_list()
    ['20', '20']
    """
    table = code(frame, plan.schema, domain=plan.domain)
    found = _released(plan, frame, table, Grouping(np.zeros(table.size, np.int32)), categories)
    return replace(found, before={})


def _released(plan: Plan, frame: pl.DataFrame, table: Table, grouping: Grouping, categories: bool) -> Solved:
    schema = plan.schema
    labels, boxes = read_alike(table, grouping.labels, grouping.floor)
    few = plan.columns_of_few_cells() if categories else []
    released, groups = recode(frame, schema, table, labels, boxes, typed=plan.typed, categories=few)
    kept = np.flatnonzero(groups >= 0)
    bucket = _buckets(plan, table, labels, boxes.low, boxes.high)[groups[kept]]
    beside = [pl.Series(BUCKET, bucket, dtype=pl.Int32)]
    if schema.subject is not None:
        beside.append(frame[schema.subject].gather(kept).alias(PERSON))
    return Solved(
        released.with_columns(beside),
        loss(table, labels, boxes, k=least_people(plan.promises), rows=frame.height, frequency=plan.frequency),
        lost_bits(table, labels, boxes, plan.frequency),
        _shared_by(table),
        int((labels < 0).sum()),
    )


def _buckets(plan: Plan, table: Table, labels: NDArray[np.int32], low: Codes, high: Codes) -> NDArray[np.int32]:
    """The bucket of each group: by how it reads and the seed, so that all that read alike, anywhere, are in one."""
    count = int(labels.max(initial=-1)) + 1
    if plan.buckets == 1:
        return np.zeros(count, np.int32)
    mark = np.full(count, plan.seed % 2**64, np.uint64)
    for j, levels in enumerate(table.levels):
        texts = levels.text(low[:, j], high[:, j])
        different = texts.unique()
        print_of = pl.Series([_fingerprint(plan.seed, text) for text in different.to_list()], dtype=pl.UInt64)
        prints = texts.replace_strict(different, print_of, return_dtype=pl.UInt64, default=0).fill_null(1).to_numpy()
        mark = mixed(mark * np.uint64(0x9E3779B97F4A7C15) + prints)
    return (mark % np.uint64(plan.buckets)).astype(np.int32)


def _fingerprint(seed: int, text: str | None) -> int:
    if text is None:
        return 1
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=f"{seed}".encode()).digest(), "little")


def _shared_by(table: Table) -> dict[int, int]:
    """How many people share each combination of values: rows of the table are sorted, equal ones stand together."""
    if not table.size:
        return {}
    new = np.ones(table.size, np.bool_)
    new[1:] = (table.matrix[1:] != table.matrix[:-1]).any(axis=1)
    sizes = Groups(np.cumsum(new, dtype=np.int32) - 1, people=table.people).sizes()
    return {int(size): int(count) for size, count in zip(*np.unique(sizes, return_counts=True), strict=True)}


def regions_of(sample: Codes, plan_table: Table, most: int, rows: int, k: int) -> Regions:
    """Cuts for regions of at most about ``most`` of the ``rows``; none if all fit in one.

    >>> from shoal.core.schema import Column
    >>> table = code(pl.DataFrame({"age": [20, 21, 50, 52]}), Schema({"age": Column("quasi")}))
    >>> regions_of(table.matrix, table, most=4, rows=4, k=2).count
    1
    """
    if rows <= most:
        return Regions(*np.zeros((4, 0), np.int64))
    return cut(sample, plan_table.shape(), max(most, fewest(k)), rows=rows)


def fewest(k: int) -> int:
    """The fewest rows that a region should have.

    >>> fewest(10), fewest(200)
    (4096, 10000)
    """
    return max(FEWEST, 50 * k)


def stands_alone(plan: Plan, rows: pl.DataFrame) -> bool:
    """Whether the rows of a region keep every promise as one group, so that the method has at least one solution.

    >>> from shoal.core.schema import Column
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.tables.mondrian import Mondrian
    >>> schema = Schema({"age": Column("quasi")})
    >>> domain = Domain({"age": pl.Series([20, 21, 50, 52])}, {"age": np.ones(4, np.int64)})
    >>> cuts, often = Regions(*np.zeros((4, 0), np.int64)), {"age": np.ones(4)}
    >>> plan = Plan(schema, (KAnonymity(2),), Mondrian(), domain, cuts, often, 7, 1)
    >>> stands_alone(plan, pl.DataFrame({"age": [20]})), stands_alone(plan, pl.DataFrame({"age": [20, 52]}))
    (False, True)
    """
    if not rows.height:
        return False
    group = one_group(plan, rows)
    return all(bool(promise.measure(group)[1].all()) for promise in plan.promises)


def one_group(plan: Plan, rows: pl.DataFrame) -> Groups:
    """Some rows as one group, as promises judge it."""
    subject = plan.schema.subject
    return Groups(
        np.zeros(rows.height, np.int32),
        {p.sensitive: rows[p.sensitive] for p in plan.promises if p.sensitive is not None},
        None if subject is None else factorize(rows[subject])[0],
        sensitive_levels(plan),
        whole=whole(plan.domain),
    )


def whole(domain: Domain) -> dict[str, tuple[pl.Series, NDArray[np.float64]]]:
    """How sensitive values are spread in the whole table, as groups of a part need it."""
    return {name: (domain.values[name], shares) for name, shares in domain.shares.items()}


def sensitive_levels(plan: Plan) -> dict[str, Levels]:
    """The hierarchies of sensitive columns over the values of the whole table.

    >>> from shoal.core.schema import Column
    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.tables.mondrian import Mondrian
    >>> schema = Schema({"age": Column("quasi")})
    >>> domain = Domain({"age": pl.Series([20, 21, 50, 52])}, {"age": np.ones(4, np.int64)})
    >>> cuts, often = Regions(*np.zeros((4, 0), np.int64)), {"age": np.ones(4)}
    >>> plan = Plan(schema, (KAnonymity(2),), Mondrian(), domain, cuts, often, 7, 1)
    >>> sensitive_levels(plan)
    {}
    """
    return {
        name: by_value(hierarchy, plan.domain.values[name], f"column {name!r}")
        for name in plan.schema.sensitive
        if (hierarchy := plan.schema[name].hierarchy) is not None
    }
