"""The edges of table methods: each case with what it took when it was found, what was asked, and what it takes now.

``python -m benchmarks.table_cases NAME ...`` prints those named, each run in a process of its own, for its peak memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import cpu, table
from benchmarks.data import ADULT, adult, coded
from benchmarks.memory_of_release import memory
from benchmarks.table_data import (
    STAYS,
    TEXT_TREES,
    beside,
    distinct,
    quasi_only,
    skewed,
    stays,
    texts,
)
from shoal.core.release import boxes_of
from shoal.core.table import Table
from shoal.kernels import interpreted
from shoal.measures.loss import loss
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.rules import compile_rules
from shoal.promises.t_closeness import TCloseness
from shoal.tables.base import TableMethod
from shoal.tables.datafly import Datafly
from shoal.tables.forest import Forest
from shoal.tables.improve import improve
from shoal.tables.lattice import Lattice
from shoal.tables.local import Local
from shoal.tables.microaggregation import Microaggregation
from shoal.tables.mondrian import Mondrian
from shoal.tables.topdown import TopDown

LOCAL = Local()


@dataclass
class Found:
    """What a case gave: CPU seconds, loss in percent, least group, bytes per row beyond the input, a note."""

    seconds: float
    loss: float
    least: int
    memory: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Case:
    """Figures of the first measurement ("today" then), those asked for, and how to take them now."""

    today: str
    asked: str
    run: Callable[[], Found]
    needs: list[Path] = field(default_factory=list)  # files that may lack


def lost(data: Table, method: TableMethod, promises: list[Promise]) -> tuple[float, float, int]:
    """CPU seconds, loss in percent and least group of a method."""
    seconds, found = cpu(lambda: method.group(data, promises))
    sizes = np.bincount(found.labels[found.labels >= 0])
    return seconds, 100 * loss(data, found.labels, boxes_of(data, found.labels, found.floor)).gcp, int(sizes.min())


def timed(make: Callable[[], Table], promises: list[Promise], method: TableMethod = LOCAL) -> Found:
    """The second of two runs: the first compiles, or loads what is compiled."""
    data = make()
    compile_for(data, method, promises)
    return Found(*lost(data, method, promises))


def compile_for(data: Table, method: TableMethod, promises: list[Promise]) -> None:
    """A run before the one that counts, in which nothing small is done without the compiler."""
    interpreted.allowed = False
    method.group(data, promises)


def whole(
    make: Callable[[int], pl.DataFrame], rows: int, promises: list[Promise], hierarchies: str | None = None
) -> Found:
    """Coding and grouping of a large frame, and the memory both need beyond the frame itself."""
    trees = TEXT_TREES[hierarchies] if hierarchies else None
    compile_for(quasi_only(make(20_000), trees), LOCAL, promises)  # compiled code is not the table's memory
    frame = make(rows)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again here
    before = memory("VmRSS")
    coding, data = cpu(lambda: quasi_only(frame, trees))
    seconds, share, least = lost(data, Local(), promises)
    beyond = memory("VmHWM") - before
    note = f"coding {coding:.1f} s of it, {beyond / 1e6:.0f} MB beyond the input"
    return Found(coding + seconds, share, least, beyond / rows, note)


def never_worse() -> Found:
    """k = 1,000 on 10,000 rows: `local` and every other method."""
    data, asked = beside(np.zeros(10_000, np.int64)), K1000
    found = timed(lambda: data, asked)
    others: list[TableMethod] = [Mondrian(), Mondrian(strict=False), TopDown(), TopDown(near="group")]
    others += [Microaggregation(), Forest(), Datafly(), Lattice()]
    each = {}
    for other in others:
        each[other.use] = min(each.get(other.use, 100.0), lost(data, other, asked)[1])
    found.note = ", ".join(f"{name} {share:.2f}" for name, share in each.items())
    return found


def small(rows: int) -> Found:
    """Few rows of Adult, k = 5: beside the loss of as many steps as a large table gets, all of them downhill.

    One sample and one seed say little: the mean of three and four.
    """
    whole = adult()
    samples = [coded(whole[first : first + rows]) for first in (0, 7_000, 15_000)]
    found = timed(lambda: samples[0], K5)
    found.seconds = cpu(lambda: Local().group(samples[0], K5), 5)[0]
    more = []
    for data in samples:
        ours = theirs = 0.0
        for seed in range(4):
            labels = Local().form(data, K5, seed=seed).labels
            ours += loss(data, labels, boxes_of(data, labels)).gcp
            begun = Local(effort="low").form(data, K5, seed=seed).labels
            labels = improve(data, compile_rules(data, K5), begun, Local().steps(5, 10**6), seed)
            theirs += loss(data, labels, boxes_of(data, labels)).gcp
        more.append(100 * (ours / theirs - 1))
    found.note = (
        f"{np.mean(more):+.2f} % of the loss with the steps of a large table, all downhill (mean of 3 x 4 runs)"
    )
    return found


def cuts(make: Callable[[], Table]) -> Found:
    """`mondrian` beside `topdown` and `local`."""
    data = make()
    found = timed(lambda: data, K5, Mondrian())
    others = [timed(lambda: data, K5, method).loss for method in (TopDown(), Local())]
    found.note = f"{found.loss / others[0]:.2f} times topdown ({others[0]:.2f} %), local {others[1]:.2f} %"
    return found


def wide() -> Table:
    """20,000 rows of 50 correlated columns."""
    from benchmarks.bench_local import generated

    return generated(20_000, 50)


def diversity(kind: str, l: float) -> list[Promise]:
    """k and one kind of l-diversity."""
    return [KAnonymity(5), LDiversity(l, "s", kind=kind)]  # type: ignore[arg-type]


def close(t: float, column: str) -> list[Promise]:
    """k and t-closeness."""
    return [KAnonymity(5), TCloseness(t, column)]


K5, K10, K1000 = [KAnonymity(5)], [KAnonymity(10)], [KAnonymity(1000)]
VALUES = partial(np.random.default_rng(5).integers, 0, 700, 10_000)
# "here": what the method of that time loses in our columns, or on tables of our generator, which are not those of that
# measurement; loss x: the share of it that was asked for
CASES: dict[str, Case] = {
    "stays-8": Case("3.0 s 2.58 % (3.21 % here)", "", lambda: timed(lambda: stays(8), K5), [STAYS]),
    "stays-15": Case(
        "82 s 11.14 % (9.84 % here)", "12 s 9.5 %, loss x .853", lambda: timed(lambda: stays(15), K5), [STAYS]
    ),
    "stays-20": Case(
        "96 s 19.7 % (19.54 % here)", "18 s 18 %, loss x .914", lambda: timed(lambda: stays(20), K5), [STAYS]
    ),
    "wide-50": Case("39 s 35.6 % (57.0 % here)", "10 s, loss x .983", lambda: timed(wide, K5)),
    "distinct-1e5": Case("8.5 s 445 MB", "4 s 400 B/row", lambda: whole(distinct, 100_000, K10)),
    "distinct-3e5": Case("24 s 890 MB", "9 s 400 B/row", lambda: whole(distinct, 300_000, K10)),
    "distinct-1e6": Case("65 s 2.4 GB", "25 s 400 B/row", lambda: whole(distinct, 1_000_000, K10)),
    "distinct-5e6": Case("257 s 10.9 GB", "110 s 400 B/row", lambda: whole(distinct, 5_000_000, K10)),
    "texts-prefix": Case("27 s 1.4 GB", "8 s 700 MB", lambda: whole(texts, 1_000_000, K10, "prefix")),
    "texts-tree": Case("32 s 1.8 GB", "8 s 700 MB", lambda: whole(texts, 1_000_000, K10, "tree")),
    "entropy-l": Case("9-13 s", "2 s", lambda: timed(skewed, diversity("entropy", 2.2))),
    "recursive-l": Case("9-13 s", "2 s", lambda: timed(skewed, diversity("recursive", 3))),
    "frequency-l": Case("9-13 s", "2 s", lambda: timed(skewed, diversity("frequency", 1.6))),
    "adult-t": Case(
        "30 s", "5 s 41 %", lambda: timed(lambda: coded(adult(), ["occupation"]), close(0.2, "occupation")), [ADULT]
    ),
    "diagnosis-t": Case(
        "63 s 56 %", "8 s 50 %", lambda: timed(lambda: stays(7, 20_000, "diag_1"), close(0.2, "diag_1")), [STAYS]
    ),
    "700-values-t": Case("105 s", "8 s", lambda: timed(lambda: beside(VALUES()), close(0.3, "s"))),
    "k-1000": Case("66.7 %, Mondrian 66.1", "no other less", never_worse),
    "rows-100": Case("1.7 s", ".1 s, loss +.5 %", lambda: small(100), [ADULT]),
    "rows-1000": Case("2.5 s", ".3 s, loss +.5 %", lambda: small(1000), [ADULT]),
    "forest": Case("> 600 s", "60 s", lambda: timed(lambda: stays(15), K5, Forest()), [STAYS]),
    "mondrian-stays": Case("33.5 %", "1.5 x topdown", lambda: cuts(lambda: stays(8)), [STAYS]),
    "mondrian-adult": Case("10.05 %", "1.5 x topdown", lambda: cuts(lambda: coded(adult())), [ADULT]),
}


def edges(names: list[str] | None = None) -> None:
    """All cases, or those named, one process each."""
    rows = []
    for name in names or CASES:
        case = CASES[name]
        if not all(file.exists() for file in case.needs):
            rows.append([name, case.today, case.asked, "data not at hand", "", "", "", ""])
            continue
        command = [sys.executable, "-m", "benchmarks.table_cases", "one", name]
        found = Found(**json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        bytes_per_row = f"{found.memory:.0f}" if found.memory else ""
        new = [f"{found.seconds:.2f}", f"{found.loss:.3f}", found.least, bytes_per_row, found.note]
        rows.append([name, case.today, case.asked, *new])
    table(
        "Edges: when they were found, asked, and now; `local` unless the case names another method",
        ["case", "then", "asked: at most", "CPU s", "GCP %", "least group", "bytes/row", "note"],
        rows,
    )


if __name__ == "__main__":
    if sys.argv[1] == "one":
        print(json.dumps(asdict(CASES[sys.argv[2]].run())))
    else:
        edges(sys.argv[1:])
