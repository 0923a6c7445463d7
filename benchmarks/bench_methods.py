"""Table methods on Adult (30,162 x 9, shared hierarchies): loss and CPU time beside the figures of peers.

Our columns are measured here. Peers marked "quoted" are figures of the reference page (ARX 3.9.2, kaylode, the Go
forest); anjana and anonypy run beside us where `uv` can fetch them (``benchmarks/peer_tables.py``).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks import cpu, data, table
from shoal.core.release import boxes_of
from shoal.core.table import Table
from shoal.measures.loss import loss
from shoal.promises.k_anonymity import KAnonymity
from shoal.tables.base import TableMethod
from shoal.tables.datafly import Datafly
from shoal.tables.forest import Forest
from shoal.tables.lattice import Lattice
from shoal.tables.microaggregation import Microaggregation
from shoal.tables.mondrian import Mondrian
from shoal.tables.topdown import TopDown

KS = (2, 5, 10, 50)
# GCP % at k = 2, 5, 10, 50, quoted
PEERS = {
    "lattice": ("ARX optimum, s = 0", (61.3, 65.0, 65.0, 65.0)),
    "lattice, suppress 5 %": ("ARX optimum, s = 5 %", (20.3, 29.1, 34.8, 48.3)),
    "datafly, suppress 5 %": ("anjana, s = 5 %", (21.8, 33.3, 43.6, 53.0)),
    "topdown": ("kaylode top-down", (4.05, 10.7, 17.6, 41.6)),
    "mondrian": ("kaylode Mondrian", (4.44, 13.6, 21.3, 43.8)),
}


def adult(rows: int = 30162) -> Table:
    """The table, coded."""
    return data.coded(data.adult(rows))


def score(coded: Table, method: TableMethod, k: int) -> tuple[float, float, int, int]:
    """CPU seconds, GCP %, rows suppressed, least group."""
    seconds, found = cpu(lambda: method.group(coded, [KAnonymity(k)]))
    lost = loss(coded, found.labels, boxes_of(coded, found.labels, found.floor))
    sizes = np.bincount(found.labels[found.labels >= 0])
    assert sizes.min() >= k
    return seconds, 100 * lost.gcp, lost.suppressed, int(sizes.min())


def all_methods(coded: Table) -> None:
    """Every method but `local`, which has a bench of its own."""
    methods: dict[str, TableMethod] = {
        "mondrian": Mondrian(),
        "topdown": TopDown(),
        "topdown, near group": TopDown(near="group"),
        "microaggregation": Microaggregation(),
        "forest": Forest(),
        "datafly, suppress 5 %": Datafly(suppress=0.05),
        "lattice": Lattice(),
        "lattice, suppress 5 %": Lattice(suppress=0.05),
        "lattice, suppress all": Lattice(suppress=1.0),
    }
    rows = []
    for name, method in methods.items():
        score(coded, method, 500)  # compiles, or loads what is compiled
        scores = [score(coded, method, k) for k in KS]
        peer, quoted = PEERS.get(name, ("", ()))
        ratio = " ".join(f"{s[1] / q:.2f}" for s, q in zip(scores, quoted, strict=False))
        gcp = " / ".join(f"{s[1]:.2f}" for s in scores)
        suppressed = " ".join(f"{100 * s[2] / coded.size:.1f}" for s in scores)
        rows.append((name, gcp, suppressed, " ".join(f"{s[0]:.2f}" for s in scores), peer, ratio))
    table(
        f"Adult {coded.size:,} rows, k = {', '.join(map(str, KS))}",
        ("method", "GCP %", "suppressed %", "CPU s", "peer (quoted)", "ours / peer"),
        rows,
    )


def forests() -> None:
    """The forest by rows, with and without the improvement of `local`, beside the Go original."""
    quoted = {1000: (32.2, 55.0), 2000: (26.2, 312.0)}
    rows = []
    score(adult(1000), Forest(improve=1), 5)  # compiles, or loads what is compiled
    for n in (1000, 2000, 30162):
        coded = adult(n)
        for name, method in (("forest", Forest()), ("forest, improved", Forest(improve=20_000))):
            seconds, gcp, _, least = score(coded, method, 5)
            theirs = quoted.get(n)
            rows.append(
                (
                    name,
                    n,
                    gcp,
                    seconds,
                    least,
                    *((f"{theirs[0]} in {theirs[1]} s", seconds / theirs[1]) if theirs else ("", "")),
                )
            )
    table("Forest, k = 5", ("method", "rows", "GCP %", "CPU s", "least group", "Go (quoted)", "time ours / Go"), rows)


COLD = """
import sys, time
sys.modules["scipy"] = None  # a peer brought it; numba would load it, and who installs Shoal has none
from benchmarks.bench_methods import adult
from shoal.promises.k_anonymity import KAnonymity
from shoal.tables.lattice import Lattice
coded = adult()
start = time.process_time()
Lattice(suppress={share}).group(coded, [KAnonymity(5)])
print(time.process_time() - start)
"""


def cold() -> None:
    """The first call of a process, kernels cached on disk."""
    rows = []
    for share, theirs in ((0.0, 0.5), (0.05, 1.8)):
        for _ in range(2):  # the first run fills the cache
            out = subprocess.run(
                [sys.executable, "-c", COLD.format(share=share)], capture_output=True, text=True, check=True
            )
        seconds = float(out.stdout)
        rows.append((f"lattice, k = 5, suppress {100 * share:g} %", seconds, theirs, seconds / theirs))
    table("First call in a process", ("method", "CPU s", "ARX cold (quoted)", "ours / ARX"), rows)


def labels_gcp(coded: Table, columns: dict[str, list[str]]) -> float:
    """GCP % of published labels; rows that were dropped count as wholly lost."""
    total = 0.0
    for j, name in enumerate(coded.names):
        cost: dict[str, float] = {}
        for at in range(coded.levels[j].depth):
            for label, loss_of in zip(coded.levels[j].labels(at), coded.levels[j].costs(at), strict=True):
                cost[label] = max(cost.get(label, 0.0), float(loss_of))
        total += sum(cost[v] for v in columns[name]) + coded.size - len(columns[name])
    return 100 * total / (coded.size * len(coded.names))


def peers() -> None:
    """anjana and anonypy, run beside us."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    rows = []
    for peer, share, n, ours in (
        ("anjana==1.2.3", 0.05, 30162, Datafly(suppress=0.05)),
        ("anjana==1.2.3", 0.05, 30162, Lattice(suppress=0.05)),
        ("anonypy==0.2.1", 0.0, 2000, Mondrian()),
    ):
        name = peer.partition("=")[0]
        script = str(Path(__file__).with_name("peer_tables.py"))
        command = [uv, "run", "-q", "--no-project", "--with", peer, "--with", "setuptools", "python", script]
        out = subprocess.run([*command, name, str(data.ADULT), "5", str(share), str(n)], capture_output=True, text=True)
        coded = adult(n)
        score(coded, ours, 500)
        seconds, gcp, _, _ = score(coded, ours, 5)
        if out.returncode:
            rows.append((peer, n, ours.use, seconds, f"{gcp:.1f}", "could not be run here", "", ""))
            continue
        found = json.loads(out.stdout.strip().split("\n")[-1])
        theirs = f"{labels_gcp(coded, found['columns']):.1f}" if "columns" in found else "value sets"
        rows.append((peer, n, ours.use, seconds, f"{gcp:.1f}", found["seconds"], theirs, seconds / found["seconds"]))
    head = ("peer", "rows", "ours", "CPU s", "GCP %", "their CPU s", "their GCP %", "time ours / theirs")
    table("Run beside us, k = 5", head, rows)


def main() -> None:
    """Print all tables."""
    if not data.ADULT.is_dir():
        print("the shared data is not beside the repository: nothing to measure")
        return
    all_methods(adult())
    forests()
    cold()
    peers()


if __name__ == "__main__":
    main()
