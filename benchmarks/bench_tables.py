"""Tables: the edges then, asked and now; Adult; peers beside us; how time grows; memory, and speed by size.

``python -m benchmarks.bench_tables [edges losses growth peers adult report memory sizes hierarchies sets
learned]``, or all without words. `losses` is Adult at normal and high effort, `peers` are anjana, anonypy and anonypyx.
pycanon is run if it is installed, or found in the folder named by ``SHOAL_BENCH_PYCANON``
(``uv pip install --target FOLDER pycanon``: it pins other versions of numpy and pandas than ours).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import shoal
from benchmarks import cpu, data, table
from benchmarks.bench_methods import peers
from benchmarks.table_adult import learned, losses
from benchmarks.table_cases import edges
from benchmarks.table_growth import growth
from benchmarks.table_sets import sets
from shoal.core.hierarchy import Hierarchy
from shoal.core.hierarchy.path import Path as Steps
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.release import read_alike
from shoal.core.schema import Schema
from shoal.core.table import code
from shoal.measures.loss import loss
from shoal.promises.k_anonymity import KAnonymity
from shoal.tables.mondrian import Mondrian

QUOTED = {2: 4.44, 5: 13.6, 10: 21.3, 50: 43.8}  # GCP % of kaylode basic Mondrian, quoted
QUOTED_SECONDS = 0.9
PYCANON_QUOTED = 68.0  # CPU seconds of all reports of pycanon 1.3.5, delta-disclosure among them, quoted


def adult_mondrian() -> None:
    """Loss and time of the method, and the time of the whole command."""
    frame = data.adult()
    rows = []
    coded, coded_table = cpu(lambda: data.coded(frame), 2)
    Mondrian().group(coded_table, [KAnonymity(500)])  # compiles
    for k, quoted in QUOTED.items():
        seconds, grouping = cpu(lambda k=k: Mondrian().group(coded_table, [KAnonymity(k)]), 2)
        labels, boxes = read_alike(coded_table, grouping.labels)
        found = loss(coded_table, labels, boxes, k=k)
        gcp = 100 * found.gcp
        rows.append([k, gcp, quoted, gcp / quoted, seconds, QUOTED_SECONDS, seconds / QUOTED_SECONDS, _command(k)])
    table(
        "Adult, 30,162 rows x 9 quasi columns, hierarchy labels (kaylode: quoted)",
        ["k", "GCP %", "kaylode %", "ours / peer", "method CPU s", "kaylode s", "ours / peer", "command CPU s"],
        rows,
    )
    print(f"coding the table: {coded:.3f} CPU s\n")


def _command(k: int) -> float | str:
    """CPU seconds of the command with start, import and files; the child's own time."""
    with tempfile.TemporaryDirectory() as folder:
        quasi = ",".join(data.adult().columns)
        words = ["anonymize", str(data.ADULT / "adult_arx_30162.csv.gz"), "--quasi", quasi, "--k", str(k)]
        words += ["--method", "mondrian", "--output", str(Path(folder) / "out.csv")]
        for name in quasi.split(","):
            words += ["--hierarchy", f"{name}={data.HIERARCHIES / name}.csv"]
        before = os.times()
        done = subprocess.run([sys.executable, "-m", "shoal", *words], capture_output=True, check=False)
        after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used if done.returncode == 0 else f"exit {done.returncode}"


REPORT = """
import json, sys, time
sys.path.insert(0, sys.argv[1]) if sys.argv[1] else None
import pandas as pd
from pycanon import anonymity
data = pd.read_csv(sys.argv[2])
quasi, sensitive = [c for c in data.columns if c != "occupation"], ["occupation"]
out = {}
for name in ("k_anonymity", "l_diversity", "entropy_l_diversity", "t_closeness"):
    start = time.process_time()
    more = [] if name == "k_anonymity" else [sensitive]
    value = getattr(anonymity, name)(data, quasi, *more)
    out[name] = [time.process_time() - start, float(value)]
print(json.dumps(out))
"""


def raw_report() -> None:
    """k, l, t and risk of the raw table, beside pycanon in a process of its own."""
    frame = data.adult()
    quasi = [c for c in frame.columns if c != "occupation"]
    seconds, found = cpu(lambda: shoal.measure(frame, quasi=quasi, sensitive=["occupation"]), 3)
    ours = found.sensitive["occupation"]
    folder = os.environ.get("SHOAL_BENCH_PYCANON", "")
    peer = subprocess.run(
        [sys.executable, "-c", REPORT, folder, str(data.ADULT / "adult_arx_30162.csv.gz")],
        capture_output=True,
        check=False,
        text=True,
    )
    rows: list[list[object]] = []
    if peer.returncode == 0:
        theirs = json.loads(peer.stdout)
        total = sum(s for s, _ in theirs.values())
        rows.append(["k, l, entropy l, t", seconds, total, seconds / total, "run beside"])
        for name, value in [("k_anonymity", found.k), ("l_diversity", ours.distinct), ("t_closeness", ours.t)]:
            rows.append([name, value, theirs[name][1], "", f"values; pycanon {theirs[name][0]:.2f} s"])
    else:
        rows.append(["k, l, entropy l, t", seconds, PYCANON_QUOTED, seconds / PYCANON_QUOTED, "quoted"])
    table("Report of the raw table, CPU seconds", ["what", "ours", "pycanon", "ours / peer", "note"], rows)


def memory(rows: int = 10_000_000) -> None:
    """Peak memory of a release beyond its loaded input."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory_of_release", str(rows), "mondrian"],
        capture_output=True,
        check=True,
        text=True,
    )
    found = json.loads(done.stdout)
    bound = 4 * rows * 8 * 4 + found["output"]
    table(
        f"{rows:,} rows x 8 quasi columns, k=10",
        ["beyond the input MB", "output MB", "bound MB", "of the bound", "CPU s", "GCP %"],
        [
            [
                found["beyond"] / 1e6,
                found["output"] / 1e6,
                bound / 1e6,
                found["beyond"] / bound,
                found["cpu"],
                100 * found["gcp"],
            ]
        ],
    )


def sizes() -> None:
    """The method by rows, columns and k (Garai 2019, section 4.3)."""
    from benchmarks.memory_of_release import COLUMNS, TEXTS, people

    names = [*COLUMNS, *TEXTS]
    rows = []
    for n, m, k in [
        *[(n, 8, 10) for n in (1_000, 10_000, 100_000)],
        *[(20_000, m, 10) for m in (1, 2, 4, 8)],
        *[(20_000, 8, k) for k in (2, 5, 50, 500)],
    ]:
        frame = people(n).select(names[:m])
        coded = code(frame, Schema.build(quasi=dict.fromkeys(names[:m])))
        seconds, _ = cpu(lambda c=coded, k=k: Mondrian().group(c, [KAnonymity(k)]))
        rows.append([n, m, k, seconds, 1e6 * seconds / n])
    table("Mondrian by size", ["rows", "columns", "k", "CPU s", "µs per row"], rows)


def hierarchies() -> None:
    """Compiling each hierarchy, by the number of values and by its own size."""
    random = np.random.default_rng(0)
    rows = []
    cases: list[tuple[str, Hierarchy, pl.Series]] = []
    for n in (1_000, 100_000):
        whole = pl.Series(np.unique(random.integers(0, 100 * n, n)))
        words = pl.Series([" ".join(f"w{x}" for x in row) for row in random.integers(0, 50, (n, 6))]).unique()
        cases += [
            (f"range, {n:,} numbers", Range(), whole),
            (f"range, snapped, {n:,} numbers", Range(snap=True), whole),
            (f"tree, 5 children, {n:,} values", Tree(children=5), whole.cast(pl.String)),
            (f"prefix of 4 characters, {n:,} values", Prefix(4), whole.cast(pl.String)),
            (f"prefix of 12 characters, {n:,} values", Prefix(12), whole.cast(pl.String)),
            (f"prefix of 3 words, {n:,} values", Prefix(3, words=True), words),
            (f"prefix of 6 words, {n:,} values", Prefix(6, words=True), words),
            (f"path of 6 steps, {n:,} values", Steps(separator=" "), words),
        ]
    for name, hierarchy, values in cases:
        seconds, (levels, _) = cpu(lambda h=hierarchy, v=values: h.compile(v.sort()))
        rows.append([name, levels.depth, seconds, 1e6 * seconds / len(values)])
    table("Hierarchies", ["hierarchy", "levels", "CPU s", "µs per value"], rows)


PARTS = {
    "edges": edges,
    "losses": partial(losses, []),
    "growth": growth,
    "peers": peers,
    "adult": adult_mondrian,
    "report": raw_report,
    "memory": memory,
    "sizes": sizes,
    "hierarchies": hierarchies,
    "sets": sets,
    "learned": learned,
}


def main() -> None:
    for name in sys.argv[1:] if __name__ == "__main__" and sys.argv[1:] else PARTS:
        if name in ("adult", "report", "losses", "peers", "learned") and not data.ADULT.is_dir():
            print(f"{name}: the shared data is not beside the repository\n")
            continue
        PARTS[name]()


if __name__ == "__main__":
    main()
