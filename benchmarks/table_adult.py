"""Adult, 30,162 x 9, nothing withheld: what `local` loses at normal and high effort, beside what was asked."""

from __future__ import annotations

from benchmarks import cpu, table
from benchmarks.bench_local import scored
from benchmarks.data import adult, coded, trees
from benchmarks.table_cases import compile_for
from shoal.core.schema import Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.release.compare import compare
from shoal.tables.local import Local

# GCP % at k: found when the edges were, and asked for with effort high
NORMAL = {2: 2.352, 5: 5.793, 10: 8.487, 50: 16.192}
HIGH = {2: 2.29, 5: 5.65, 10: 8.37, 50: 16.10}


def losses(words: list[str]) -> None:
    """A line per k and effort; ``words`` may name the k and the efforts."""
    data = adult()
    ready = coded(data)
    compile_for(ready, Local(effort=100), [KAnonymity(500)])
    rows = []
    for k in NORMAL:
        for effort, asked in (("normal", NORMAL[k]), ("high", HIGH[k])):
            if words and (str(k) not in words or effort not in words):
                continue
            seconds, found = cpu(lambda k=k, e=effort: Local(effort=e).group(ready, [KAnonymity(k)]))
            lost, least = scored(data, ready, found.labels)
            rows.append([k, effort, f"{lost:.3f}", f"<= {asked}", f"{seconds:.2f}", least])
    table("Adult: loss of local", ["k", "effort", "GCP %", "asked", "CPU s", "least group"], rows)


def learned() -> None:
    """Income learned from releases of the other eight columns."""
    data = adult()
    schema = Schema.build(quasi=trees(c for c in data.columns if c != "salary-class"))
    found = compare(data, schema, methods=["local", "mondrian", "datafly"], ks=[5, 50], learn="salary-class")
    rows = [
        [r.method, r.k, f"{100 * (r.gcp or 0):.2f}", r.learned.original, r.learned.released, r.learned.guessed]
        for r in found.rows
        if r.learned is not None
    ]
    table(
        "Adult: a model of income, trained on releases, right about others",
        ["method", "k", "GCP %", "original", "released", "guessed"],
        rows,
    )


if __name__ == "__main__":
    import sys

    losses(sys.argv[1:])
