"""Run anjana, anonypy or anonypyx on a table, in an environment of their own (their pins are not ours); prints JSON.

uv run --no-project --with anjana==1.2.3 --with pyarrow python benchmarks/peer_tables.py anjana FOLDER K SHARE ROWS
"""

import json
import sys
import time
from pathlib import Path

import pandas as pd

QUASI = [
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
]


def hierarchies(folder: Path, frame: pd.DataFrame) -> dict:
    out = {}
    for name in QUASI:
        paths = [line.split(";") for line in (folder / f"hierarchies_arx/{name}.csv").read_text().split("\n") if line]
        kind = int if frame[name].dtype.kind == "i" else str
        present = set(frame[name])
        paths = [p for p in paths if kind(p[0]) in present]
        out[name] = {at: [kind(p[at]) if at == 0 else p[at] for p in paths] for at in range(len(paths[0]))}
    return out


def run_anjana(folder: Path, frame: pd.DataFrame, k: int, share: float) -> dict:
    from anjana.anonymity import k_anonymity

    given = hierarchies(folder, frame)
    start = time.process_time()
    out = k_anonymity(frame, [], QUASI, k, 100 * share, given)
    seconds = time.process_time() - start
    return {"seconds": seconds, "columns": {name: out[name].astype(str).tolist() for name in QUASI}}


def run_anonypy(frame: pd.DataFrame, k: int) -> dict:
    import anonypy

    frame = frame.copy()
    frame["row"] = range(len(frame))
    for name in QUASI:
        if name != "age":
            frame[name] = frame[name].astype("category")
    start = time.process_time()
    groups = anonypy.Preserver(frame, QUASI, "row").anonymize_k_anonymity(k)
    seconds = time.process_time() - start
    return {"seconds": seconds, "groups": len(groups)}


def run_anonypyx(frame: pd.DataFrame, k: int) -> dict:
    """MDAV-generic; its matrix of all distances allows some thousands of rows."""
    from anonypyx.microaggregation import MDAVGeneric

    frame = frame.copy()
    for name in QUASI:
        if name != "age":
            frame[name] = frame[name].astype("category")
    start = time.process_time()
    clusters = MDAVGeneric(frame, QUASI).partition(k)
    seconds = time.process_time() - start
    labels = [0] * len(frame)
    for group, rows in enumerate(clusters):
        for row in rows:
            labels[int(row)] = group
    return {"seconds": seconds, "labels": labels}


def main() -> None:
    """Run one peer."""
    peer, folder, k, share, rows = (
        sys.argv[1],
        Path(sys.argv[2]),
        int(sys.argv[3]),
        float(sys.argv[4]),
        int(sys.argv[5]),
    )
    frame = pd.read_csv(folder / "adult_arx_30162.csv.gz")[QUASI].head(rows or None)
    if peer == "anjana":
        result = run_anjana(folder, frame, k, share)
    else:
        result = {"anonypy": run_anonypy, "anonypyx": run_anonypyx}[peer](frame, k)
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main()
