"""`local` on Adult beside what was asked and beside ARX 3.9.2, on larger and wider tables, and beside proven optima.

``python -m benchmarks.bench_local [adult effort promises scale optima rows columns]``: all of them without words.
Every loss is scored from the released text by :mod:`benchmarks.score`. Method time is CPU time after compilation.
ARX's figures are quoted: its local recoding (suppression limit 100 %, gsFactor 0, ``optimizeIterativeFast`` of 1 %),
run once on the same rows and hierarchies, its output scored by the same GCP.
"""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
from typing import Any

import numpy as np
import polars as pl

from benchmarks import cpu, score, table
from benchmarks.data import HIERARCHIES, adult, coded
from shoal.core.hierarchy.tree import Tree
from shoal.core.release import boxes_of
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.tables.local import Local
from shoal.tables.mondrian import Mondrian

ARX = {2: 3.40, 5: 6.69, 10: 9.29, 50: 16.9}  # GCP %, ARX 3.9.2 local, quoted
ARX_SECONDS = 5.1  # at k = 5, without starting the JVM and loading
ASKED = {2: 2.36, 5: 5.80, 10: 8.50, 50: 16.2}  # GCP % at normal effort, in about a CPU second
PROTOTYPE = {2: 2.29, 5: 5.66, 10: 8.39, 50: 16.17}  # GCP % of a prototype of this method after 60 s, quoted
TREES = {file.stem: score.paths(file) for file in sorted(HIERARCHIES.glob("*.csv"))}


def text(data: Table, labels: np.ndarray) -> pl.DataFrame:
    """The released rows as they would be written."""
    boxes = boxes_of(data, labels)
    kept = labels[labels >= 0]
    return pl.DataFrame([x.text(*boxes.column(j)).gather(kept).alias(data.names[j]) for j, x in enumerate(data.levels)])


def scored(original: pl.DataFrame, data: Table, labels: np.ndarray) -> tuple[float, int]:
    """GCP and smallest group of a release."""
    released = text(data, labels)
    return score.gcp(original, released, {name: TREES[name] for name in data.names}), score.smallest(
        released, list(data.names)
    )


def larger(data: pl.DataFrame, factor: int) -> pl.DataFrame:
    """Adult and ``factor - 1`` jittered copies: age moves by up to 2, other cells are redrawn with probability .05."""
    rng = np.random.default_rng(42)
    parts = [data]
    for _ in range(factor - 1):
        age = np.clip(data["age"].to_numpy() + rng.integers(-2, 3, data.height), 17, 90)
        columns = {"age": pl.Series(age)}
        for name in data.columns:
            if name == "age":
                continue
            redrawn = np.flatnonzero(rng.random(data.height) < 0.05)
            source = np.arange(data.height)
            source[redrawn] = rng.integers(0, data.height, len(redrawn))
            columns[name] = data[name].gather(source)
        parts.append(pl.DataFrame({name: columns[name] for name in data.columns}))
    return pl.concat(parts)


def normal() -> None:
    """Loss and time at normal effort."""
    data = adult()
    ready = coded(data)
    Local(effort=1).group(ready, [KAnonymity(500)])  # compiles
    rows = []
    for k, peer in ARX.items():
        seconds, grouping = cpu(lambda k=k: Local().group(ready, [KAnonymity(k)]))
        found, least = scored(data, ready, grouping.labels)
        times = (seconds, "about 1", ARX_SECONDS, seconds / ARX_SECONDS)
        rows.append([k, found, f"<= {ASKED[k]}", peer, found / peer, *times, least])
    table(
        "Adult, 30,162 x 9, nothing withheld, normal effort (ARX 3.9.2 local: quoted)",
        ["k", "GCP %", "asked", "ARX %", "ours / ARX", "CPU s", "asked", "ARX s (k=5)", "ours / ARX", "least group"],
        rows,
    )


def effort() -> None:
    """The curve of loss against effort."""
    data = adult()
    ready = coded(data)
    rows = []
    for k in ARX:
        for steps in ("low", 1_000, 4_000, "normal", 60_000 if k < 50 else 8_000, "high"):
            seconds, grouping = cpu(lambda k=k, steps=steps: Local(effort=steps).group(ready, [KAnonymity(k)]))
            found = scored(data, ready, grouping.labels)[0]
            asked = f"<= {ASKED[k]}" if steps == "normal" else ""
            best = (PROTOTYPE[k], f"{found / PROTOTYPE[k]:.4f}")
            rows.append(
                [k, steps, Local(effort=steps).steps(k, ready.size), f"{found:.3f}", asked, *best, ARX[k], seconds]
            )
    table(
        "Adult: loss against effort (prototype: after 60 CPU s, quoted; ARX 3.9.2 local: quoted)",
        ["k", "effort", "steps", "GCP %", "asked", "prototype %", "ours / prototype", "ARX %", "CPU s"],
        rows,
    )


def promises() -> None:
    """l-diversity and t-closeness of occupation, eight quasi columns."""
    data = adult()
    ready = coded(data, ["occupation"])
    rows: list[list[Any]] = []
    cases: list[tuple[Promise, str, float, float, float]] = [
        (LDiversity(3, "occupation"), "<= 3.41", 4.1, 6.2, 0.0),
        (TCloseness(0.2, "occupation"), "< 46", 46.3, 111.0, 14.7),
    ]
    for promise, asked, peer, peer_seconds, withheld in cases:
        seconds, grouping = cpu(lambda promise=promise: Local().group(ready, [KAnonymity(5), promise]))
        found, least = scored(data, ready, grouping.labels)
        share = 100 * float((grouping.labels < 0).mean())
        rows.append([promise.use, found, asked, peer, found / peer, share, withheld, seconds, peer_seconds, least])
    table(
        "Adult, k=5, occupation sensitive: l=3, t=0.2 (ARX 3.9.2 local: quoted; asked for t: withhold less)",
        ["promise", "GCP %", "asked", "ARX %", "ours / ARX", "withheld %", "ARX withheld %", "CPU s", "ARX s",
         "least group"],
        rows,
    )  # fmt: skip


def scale() -> None:
    """Ten and fifty times the rows; each in a process of its own, for its peak memory."""
    rows = []
    cases = ((10, ("<= 2.65", "", ""), "14.8 s"), (50, ("<= 0.98", "<= 10", "<= 1000"), "1.25 % in 25.6 s, 2.4 GB"))
    for factor, (loss, time, memory), peer in cases:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.bench_local", "one", str(factor)],
            capture_output=True,
            text=True,
            check=True,
        )
        n, found, coding, method, labels, peak = done.stdout.split("|")
        rows.append([f"x{factor}", n, found, loss, coding, method, time, labels, peak, memory, peer])
    table(
        "Adult replicated and jittered, k=10, normal effort (ARX 3.9.2 local: quoted)",
        ["rows", "n", "GCP %", "asked", "coding s", "method CPU s", "asked", "labels s", "peak MB", "asked", "ARX"],
        rows,
    )


def one(factor: int) -> None:
    """One line of :func:`scale`."""
    data = larger(adult(), factor)
    Local(effort=1).group(coded(adult()), [KAnonymity(500)])  # compiles
    loading, ready = cpu(lambda: coded(data))
    seconds, grouping = cpu(lambda: Local().group(ready, [KAnonymity(10)]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    writing, _ = cpu(lambda: text(ready, grouping.labels))
    found, _ = scored(data, ready, grouping.labels)
    print(f"{data.height:,}|{found:.3f}|{loading:.2f}|{seconds:.2f}|{writing:.2f}|{peak:.0f}", end="")


def optima() -> None:
    """Mean excess over the proven optimum of small tables, by dynamic programming over all subsets of the rows."""
    data = adult()
    rng = np.random.default_rng(0)
    excess: dict[str | int, list[float]] = {"low": [], 3_000: [], "normal": []}
    n, k = 13, 3
    for _ in range(10):
        ready = coded(data[rng.choice(data.height, n, replace=False)])
        best = optimum(ready, k)
        for name, found in excess.items():
            labels = Local(effort=name).group(ready, [KAnonymity(k)]).labels  # type: ignore[arg-type]
            found.append(100 * (_loss(ready, labels) / best - 1))
    rows = [
        [
            name,
            f"{round(float(np.mean(found)), 2) + 0.0:.2f}",
            "<= 1",
            f"{np.max(found):.2f}",
            sum(x < 1e-6 for x in found),
        ]
        for name, found in excess.items()
    ]
    table(
        f"10 samples of {n} rows of Adult, k={k}, against proven optima",
        ["effort", "mean excess %", "asked", "worst %", "optimal"],
        rows,
    )


def optimum(data: Table, k: int) -> float:
    """The least loss of any grouping: the group of the first row not yet placed, over all its subsets."""
    n = data.size
    cost = np.full(1 << n, np.inf)
    of_first: dict[int, list[int]] = {first: [] for first in range(n)}
    for size in range(k, 2 * k):
        rows = np.array(list(itertools.combinations(range(n), size)))
        low, high = data.matrix[rows].min(1), data.matrix[rows].max(1)
        found = (1 << rows).sum(1)
        cost[found] = size * sum(x.ncp(low[:, j], high[:, j]) for j, x in enumerate(data.levels))
        for first, mask in zip(rows[:, 0].tolist(), found.tolist(), strict=True):
            of_first[first].append(mask)
    masks = {first: np.array(found, np.int64) for first, found in of_first.items()}
    best = np.full(1 << n, np.inf)  # of the rows in the mask, all others being placed
    best[0] = 0.0
    for mask in range(1, 1 << n):
        first = (mask & -mask).bit_length() - 1
        inside = masks[first][masks[first] & mask == masks[first]] if len(masks[first]) else masks[first]
        if len(inside):
            best[mask] = (cost[inside] + best[mask ^ inside]).min()
    return float(best[-1])


def _cell_loss(data: Table, rows: list[int]) -> float:
    codes = data.matrix[rows]
    low, high = codes.min(0), codes.max(0)
    return float(sum(x.ncp(low[j : j + 1], high[j : j + 1])[0] for j, x in enumerate(data.levels)))


def _loss(data: Table, labels: np.ndarray) -> float:
    return sum(
        float((labels == g).sum()) * _cell_loss(data, np.flatnonzero(labels == g).tolist())
        for g in range(labels.max() + 1)
    )


def generated(rows: int, columns: int) -> Table:
    """Correlated categories and numbers: eight leaves in a binary tree, and every third column a number."""
    rng = np.random.default_rng(7)
    kind = rng.normal(size=rows)
    data, quasi = {}, {}
    for j in range(columns):
        value = np.clip(np.round(4 + 1.5 * (0.6 * kind + 0.8 * rng.normal(size=rows))), 0, 7).astype(np.int64)
        if j % 3 == 2:
            data[f"c{j}"] = pl.Series(value * 10 + rng.integers(0, 10, rows))
            quasi[f"c{j}"] = None
        else:
            data[f"c{j}"] = pl.Series(np.array(list("abcdefgh"))[value])
            quasi[f"c{j}"] = Tree(
                nodes={"ad": {"ab": ["a", "b"], "cd": ["c", "d"]}, "eh": {"ef": ["e", "f"], "gh": ["g", "h"]}}
            )
    return code(pl.DataFrame(data), Schema.build(quasi=quasi))


def rows_curve() -> None:
    """10⁴ to 10⁷ rows, 5 quasi columns, k=10."""
    sizes = [10_000, 100_000, 1_000_000, 10_000_000]
    for name, method in (("local", Local()), ("mondrian", Mondrian())):
        method.group(generated(2_000, 5), [KAnonymity(10)])
        rows, seen = [], []
        for n in sizes:
            ready = generated(n, 5)
            seconds, grouping = cpu(lambda ready=ready, method=method: method.group(ready, [KAnonymity(10)]))
            seen.append(seconds)
            rows.append([f"{n:,}", 100 * _mean_loss(ready, grouping.labels), seconds])
        exponent = float(np.polyfit(np.log(sizes), np.log(seen), 1)[0])
        table(f"{name}: CPU seconds grow with rows to the power {exponent:.2f}", ["rows", "GCP %", "CPU s"], rows)


def columns_curve() -> None:
    """5 to 20 quasi columns, 30,000 rows, k=10."""
    sizes = [5, 8, 12, 16, 20]
    Local().group(generated(2_000, 20), [KAnonymity(10)])
    rows, seen = [], []
    for m in sizes:
        ready = generated(30_000, m)
        seconds, grouping = cpu(lambda ready=ready: Local().group(ready, [KAnonymity(10)]))
        other = Mondrian().group(ready, [KAnonymity(10)]).labels
        seen.append(seconds)
        rows.append([m, 100 * _mean_loss(ready, grouping.labels), 100 * _mean_loss(ready, other), seconds])
    exponent = float(np.polyfit(np.log(sizes), np.log(seen), 1)[0])
    table(
        f"local: CPU seconds grow with columns to the power {exponent:.2f} (30,000 rows, k=10)",
        ["columns", "GCP %", "mondrian GCP %", "CPU s"],
        rows,
    )


def _mean_loss(data: Table, labels: np.ndarray) -> float:
    boxes = boxes_of(data, labels)
    size = np.bincount(labels)
    cells = sum(float(size @ x.ncp(*boxes.column(j))) for j, x in enumerate(data.levels))
    return cells / data.matrix.size


PARTS = {
    "adult": normal,
    "effort": effort,
    "promises": promises,
    "scale": scale,
    "optima": optima,
    "rows": rows_curve,
    "columns": columns_curve,
}


def main() -> None:
    """The parts named on the command line, or all."""
    words = sys.argv[1:]
    if words[:1] == ["one"]:
        one(int(words[1]))
        return
    for name, part in PARTS.items():
        if not words or name in words:
            part()


if __name__ == "__main__":
    main()
