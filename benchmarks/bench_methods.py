"""Table methods on Adult (30,162 x 9, shared hierarchies): loss and CPU time beside the figures of peers.

Our columns are measured here. Figures marked "quoted" were taken once, on the same rows and by the same GCP, of ARX
3.9.2, anjana 1.2.3, kaylode's Mondrian and top-down greedy, and gar-r/k-anon 1.2.6 (the Go forest). anjana, anonypy
and anonypyx run beside us where `uv` can fetch them (``benchmarks/peer_tables.py``).
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
# quoted: GCP % at k = 2, 5, 10, 50, and seconds at k = 5 (ARX with a cold JVM, without loading)
PEERS = {
    "lattice": ("ARX 3.9.2 global, s = 0", (61.3, 65.0, 65.0, 65.0), 0.5),
    "lattice, suppress 5 %": ("ARX 3.9.2 global, s = 5 %", (20.3, 29.1, 34.8, 48.3), 1.8),
    "lattice, suppress all": ("ARX 3.9.2 global, s = 100 %", (18.5, 25.3, 29.2, 40.5), 5.4),
    "datafly, suppress 5 %": ("anjana 1.2.3, s = 5 %", (21.8, 33.3, 43.6, 53.0), 5.5),
    "topdown": ("kaylode top-down greedy", (4.05, 10.7, 17.6, 41.6), 37.0),
    "mondrian": ("kaylode basic Mondrian", (4.44, 13.6, 21.3, 43.8), 0.9),
}
# ARX 3.9.2 global at k = 5, quoted: share suppressed, mean group over k, discernibility
ARX_SHAPE = {0.0: ("0", "251", "7.0e+07"), 0.05: ("4.5", "14.5", "5.9e+07"), 1.0: ("8.5", "9.2", "8.4e+07")}


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
        "microaggregation, block 2000": Microaggregation(block=2000),
        "forest": Forest(),
        "datafly, suppress 5 %": Datafly(suppress=0.05),
        "lattice": Lattice(),
        "lattice, suppress 5 %": Lattice(suppress=0.05),
        "lattice, suppress all": Lattice(suppress=1.0),
    }
    losses, times = [], []
    for name, method in methods.items():
        score(coded, method, 500)  # compiles, or loads what is compiled
        scores = [score(coded, method, k) for k in KS]
        peer, quoted, seconds = PEERS.get(name, ("", (), None))
        ratio = " ".join(f"{s[1] / q:.2f}" for s, q in zip(scores, quoted, strict=False))
        gcp = " / ".join(f"{s[1]:.2f}" for s in scores)
        suppressed = " ".join(f"{100 * s[2] / coded.size:.1f}" for s in scores)
        losses.append((name, gcp, suppressed, peer, " / ".join(map(str, quoted)), ratio))
        ours = scores[KS.index(5)][0]
        beside = (peer, seconds, f"{ours / seconds:.3f}") if seconds else ("", "", "")
        times.append((name, " / ".join(f"{s[0]:.2f}" for s in scores), *beside))
    title = f"Adult {coded.size:,} rows, k = {', '.join(map(str, KS))}"
    head = ("method", "GCP %", "suppressed %", "peer (quoted)", "its GCP %", "ours / peer")
    table(f"{title}: loss", head, losses)
    table(f"{title}: time", ("method", "CPU s", "peer (quoted)", "its s at k = 5", "ours / peer at k = 5"), times)


def lattices(coded: Table) -> None:
    """What the lattice chose at k = 5, and how much it judged to be sure; beside the shape of ARX's choice."""
    rows: list[tuple[object, ...]] = []
    for share, quoted in ARX_SHAPE.items():
        said: list[str] = []
        found = Lattice(suppress=share).group(
            coded, [KAnonymity(5)], progress=lambda _, word, said=said: said.append(word)
        )
        kept = found.labels >= 0
        sizes = np.bincount(found.labels[kept])
        lost = int((~kept).sum())
        shape = (100 * lost / coded.size, sizes.sum() / len(sizes) / 5, float((sizes**2).sum() + lost * coded.size))
        levels = " ".join(map(str, found.floor[0]))
        ours = (f"{shape[0]:.1f}", f"{shape[1]:.3g}", f"{shape[2]:.1e}")
        judged = next((word.partition(" level")[0] for word in said if "judged" in word), "")
        beside = (f"{mine} / {theirs}" for mine, theirs in zip(ours, quoted, strict=True))
        rows.append((f"{100 * share:g} %", levels, judged, *beside))
    print("levels in the order", ", ".join(coded.names))
    head = ("suppress", "levels", "level vectors judged", "suppressed %", "mean group / k", "discernibility")
    table("lattice, k = 5: the choice, ours / ARX 3.9.2 (quoted; its level vector is not at hand)", head, rows)


def forests() -> None:
    """The forest by rows, with and without the improvement of `local`, beside the Go original and what was asked."""
    quoted = {1000: (32.2, 55.0), 2000: (26.2, 312.0)}
    asked = {("forest", 2000): ("", "< 1"), ("forest, improved", 2000): ("< 16.6", ""), ("forest", 30162): ("", "< 60")}
    rows = []
    score(adult(1000), Forest(improve=1), 5)  # compiles, or loads what is compiled
    for n in (1000, 2000, 30162):
        coded = adult(n)
        for name, method in (("forest", Forest()), ("forest, improved", Forest(improve=20_000))):
            seconds, gcp, _, least = score(coded, method, 5)
            theirs = quoted.get(n)
            loss_asked, time_asked = asked.get((name, n), ("", ""))
            beside = (f"{theirs[0]} in {theirs[1]} s", seconds / theirs[1]) if theirs else ("", "")
            rows.append((name, n, gcp, loss_asked, seconds, time_asked, least, *beside))
    head = ("method", "rows", "GCP %", "asked", "CPU s", "asked", "least group", "Go (quoted)", "time ours / Go")
    table("Forest, k = 5 (Go: gar-r/k-anon 1.2.6, GCP % and CPU s; it broke k)", head, rows)


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
    table("First call in a process (asked: 0.5 s)", ("method", "CPU s", "ARX 3.9.2 cold (quoted)", "ours / ARX"), rows)


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


def labels_levels(coded: Table, columns: dict[str, list[str]]) -> str:
    """The lowest level of every column that has all published labels."""
    levels = []
    for j, name in enumerate(coded.names):
        used = set(columns[name])
        tree = coded.levels[j]
        levels.append(next((at for at in range(tree.depth) if used <= set(tree.labels(at))), "?"))
    return " ".join(map(str, levels))


def peers() -> None:
    """anjana, anonypy and anonypyx, run beside us. anonypy publishes sets of values, which have no GCP."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    script = str(Path(__file__).with_name("peer_tables.py"))
    rows = []
    for peer, share, n, ours in (
        ("anjana==1.2.3", 0.05, 30162, Datafly(suppress=0.05)),
        ("anjana==1.2.3", 0.05, 30162, Lattice(suppress=0.05)),
        ("anjana==1.2.3", 0.0, 30162, Lattice()),
        ("anonypy==0.2.1", 0.0, 2000, Mondrian()),
        ("anonypyx==0.2.11", 0.0, 2000, Microaggregation()),
    ):
        name = peer.partition("=")[0]
        needs = ("pandas<3",) if name == "anonypyx" else ("setuptools",)
        with_these = [word for part in (peer, *needs) for word in ("--with", part)]
        command = [uv, "run", "-q", "--no-project", *with_these, "python", "-W", "ignore", script]
        out = subprocess.run([*command, name, str(data.ADULT), "5", str(share), str(n)], capture_output=True, text=True)
        coded = adult(n)
        called = f"{ours.use}{f', suppress {100 * share:g} %' if share else ''}"
        score(coded, ours, 500)
        seconds, gcp, _, _ = score(coded, ours, 5)
        if out.returncode:
            rows.append((peer, n, called, seconds, f"{gcp:.1f}", "could not be run here", "", "", ""))
            continue
        found = json.loads(out.stdout.strip().split("\n")[-1])
        theirs, levels = "value sets", ""
        if "columns" in found:
            theirs = f"{labels_gcp(coded, found['columns']):.1f}"
            mine = " ".join(map(str, ours.group(coded, [KAnonymity(5)]).floor[0]))  # type: ignore[index]
            levels = f"{mine}; {labels_levels(coded, found['columns'])}"
        elif "labels" in found:
            labels = np.array(found["labels"], np.int32)[coded.rows]  # theirs are in the order of the file
            theirs = f"{100 * loss(coded, labels, boxes_of(coded, labels)).gcp:.1f}"
        ratio = f"{seconds / found['seconds']:.4f}"
        rows.append((peer, n, called, seconds, f"{gcp:.1f}", found["seconds"], theirs, ratio, levels))
    head = (
        "peer",
        "rows",
        "ours",
        "CPU s",
        "GCP %",
        "their CPU s",
        "their GCP %",
        "time ours / theirs",
        "levels: ours; theirs",
    )
    table("Run beside us, k = 5", head, rows)


def main() -> None:
    """Print all tables."""
    if not data.ADULT.is_dir():
        print("the shared data is not beside the repository: nothing to measure")
        return
    whole = adult()
    all_methods(whole)
    lattices(whole)
    forests()
    cold()
    peers()


if __name__ == "__main__":
    main()
