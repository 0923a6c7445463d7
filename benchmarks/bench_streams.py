"""Streams with delay under every promise: loss, speed, pauses; and z-anonymity beside zanon by hierarchy and batch.

``python -m benchmarks.bench_streams [loss] [speed] [pause] [z] [ndjson] [tuner]``: all parts, or those named;
``--small``: a tenth of the rows, to see that it runs. Rates and pauses are of CPU time. Loss is the mean share of the
domain per quasi cell, a withheld tuple counts 1; it is scored from the released text by :mod:`benchmarks.score`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks import bench_tuner, bench_z, data, score, table
from shoal.core.hierarchy import HIERARCHIES, Hierarchy
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.datasets.hospital import hospital
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.streams.base import Batch, Outcomes, StreamMethod
from shoal.streams.batches import Batches
from shoal.streams.castle import Castle
from shoal.streams.fads import Fads
from shoal.streams.z_stream import ZStream, z_anonymity

KEY = bytes(range(32))
BATCH = 4096
SMALL = "--small" in sys.argv
Paths = list[list[str]]


class Stream(NamedTuple):
    """Rows in their order, what their columns are, the trees their text is scored by, and the sensitive column."""

    rows: pl.DataFrame
    schema: Schema
    trees: Mapping[str, Paths | None]
    sensitive: str
    t: float


def adult() -> Stream:
    """Adult in file order: eight columns with the hierarchies that came with it, the occupation sensitive."""
    rows = data.adult(3000 if SMALL else None)
    quasi = [c for c in rows.columns if c != "occupation"]
    trees: dict[str, Paths | None] = {c: score.paths(data.HIERARCHIES / f"{c}.csv") for c in quasi}
    return Stream(rows, data.adult_schema(rows, ["occupation"]), trees, "occupation", 0.8)


def ratings(count: int = 20_000) -> Stream:
    """Generated, in the shape of MovieLens 1M: 6,040 people who rate again and again; the genre is sensitive."""
    rng = np.random.default_rng(1)
    people = 6040
    ages = np.array(["1", "18", "25", "35", "45", "50", "56"])
    age = rng.choice(ages, people, p=[0.04, 0.18, 0.35, 0.2, 0.09, 0.08, 0.06])
    work = rng.integers(0, 21, people)
    zips = np.array([f"{z:05d}" for z in (rng.zipf(1.3, people) * 977) % 100_000])
    sex = rng.choice(["F", "M"], people, p=[0.28, 0.72])
    share = rng.dirichlet(np.full(18, 0.8))
    who = np.minimum((rng.pareto(1.2, count) * 600).astype(np.int64), people - 1)
    rows = pl.DataFrame(
        {
            "who": [f"u{i}" for i in who],
            "sex": sex[who],
            "age": age[who],
            "work": [f"w{i:02}" for i in work[who]],
            "zip": zips[who],
            "genre": [f"g{i}" for i in rng.choice(18, count, p=share)],
        }
    )
    bands = {"young": ["1", "18", "25"], "old": ["35", "45", "50", "56"]}
    kinds = {f"k{i}": [f"w{j:02}" for j in range(i * 7, i * 7 + 7)] for i in range(3)}
    trees: dict[str, Paths | None] = {
        "sex": _flat(["F", "M"]),
        "age": [[leaf, band, "*"] for band, leaves in bands.items() for leaf in leaves],
        "work": [[leaf, kind, "*"] for kind, leaves in kinds.items() for leaf in leaves],
        "zip": _prefixes(zips),
    }
    schema = Schema.build(
        quasi={"sex": Suppress(), "age": Tree(nodes=bands), "work": Tree(nodes=kinds), "zip": Prefix(5)},
        sensitive=["genre"],
        subject="who",
    )
    return Stream(rows, schema, trees, "genre", 0.8)


def patients(count: int = 20_000) -> Stream:
    """Generated: patients who come twice on average; the diagnosis, of two, follows the age."""
    whole = hospital(count, seed=2, visits=2.0)
    rows = whole.select(pl.col("pid").cast(pl.String), "zip", "sex", "age", "ins_co", "diag")
    zips = rows["zip"].unique().to_numpy()
    schema = Schema.build(
        quasi={"zip": Prefix(5), "sex": Suppress(), "age": Range(min=0, max=120), "ins_co": Suppress()},
        sensitive=["diag"],
        subject="pid",
    )
    trees: dict[str, Paths | None] = {
        "zip": _prefixes(zips),
        "sex": _flat(rows["sex"].unique().to_list()),
        "age": None,
        "ins_co": _flat(rows["ins_co"].unique().to_list()),
    }
    return Stream(rows, schema, trees, "diag", 0.6)


def _flat(leaves: Sequence[str]) -> Paths:
    return [[leaf, "*"] for leaf in leaves]


def _prefixes(values: NDArray[Any]) -> Paths:
    return [[*(v[:n] + "*" * (5 - n) for n in range(5, 0, -1)), "*"] for v in sorted(set(values.tolist()))]


def played(stream: Stream, method: StreamMethod, promises: Sequence[Promise]) -> tuple[float, list[Outcomes], Any]:
    """A whole stream in batches: CPU seconds, outcomes, and the method at its end."""
    rows, subject = stream.rows, stream.schema.subject
    shown = rows.drop(subject) if subject else rows
    people = rows[subject] if subject else pl.Series([f"p{i}" for i in range(rows.height)])
    running = method.start(stream.schema, promises, key=KEY)
    outs: list[Outcomes] = []
    start = time.process_time()
    for at in range(0, rows.height, BATCH):
        part = slice(at, at + BATCH)
        outs.append(running.push(Batch(shown[part], np.arange(at, min(at + BATCH, rows.height)), people[part], at)))
    outs.append(running.flush())
    return time.process_time() - start, outs, running


def lost(stream: Stream, outs: list[Outcomes]) -> float:
    """The loss, from the text."""
    parts = [out.released for out in outs if out.released is not None]
    if not parts:
        return 1.0
    named = [c for c, tree in stream.trees.items() if tree is not None]
    original = stream.rows.with_columns(pl.col(named).cast(pl.String))
    return score.gcp(original, pl.concat(parts), stream.trees) / 100


def satisfied(stream: Stream, outs: list[Outcomes]) -> tuple[float, float]:
    """Of the tuples released, the shares whose box keeps l and t by their definitions, over all people who got it.

    Someone who comes again and shows another value with the same box holds both. By tuples instead of people most boxes
    of a stream like the ratings would seem close that are not.
    """
    names, codes = np.unique(stream.rows[stream.sensitive].cast(pl.String).to_numpy(), return_inverse=True)
    whole = np.bincount(codes, minlength=len(names)) / len(codes)
    subject = stream.schema.subject
    people = np.unique(stream.rows[subject].to_numpy(), return_inverse=True)[1] if subject else np.arange(len(codes))
    groups = np.concatenate([out.groups for out in outs if out.groups is not None])
    events = np.concatenate([out.events for out in outs])
    order = np.argsort(groups, kind="stable")
    order = order[groups[order] >= 0]
    diverse = close = 0
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if len(order) else []:
        held = np.unique(np.stack([people[events[rows]], codes[events[rows]]]), axis=1)
        counts = np.bincount(held[1], minlength=len(names))
        crowd = len(np.unique(held[0]))
        gap = counts / crowd - whole
        diverse += len(rows) * int((counts > 0).sum() >= 2 and counts.max() < crowd)
        close += len(rows) * int(max(gap[gap > 0].sum(), -gap[gap < 0].sum()) <= stream.t)
    return diverse / max(1, len(order)), close / max(1, len(order))


def loss() -> None:
    """Every method by k alone and with l and t beside it: what holds anyway must cost nothing."""
    count = 2000 if SMALL else 20_000
    for title, stream in (("Adult", adult()), ("ratings", ratings(count)), ("patients", patients(count))):
        delay, k = (100, 5) if SMALL else (1000, 5)
        methods: dict[str, StreamMethod] = {
            "batches, never": Batches(delay=delay, reuse="never"),
            "batches, default": Batches(delay=delay),
            "batches, forever": Batches(delay=delay, reuse="forever"),
            "castle": Castle(delay=delay),
            "fads": Fads(delay=delay),
        }
        found = []
        for name, method in methods.items():
            _, alone, _ = played(stream, method, [KAnonymity(k)])
            base = lost(stream, alone)
            diverse, close = satisfied(stream, alone)
            cells: list[str] = []
            for promise, holds in (
                (LDiversity(2, stream.sensitive), diverse),
                (TCloseness(stream.t, stream.sensitive), close),
            ):
                beside = lost(stream, played(stream, method, [KAnonymity(k), promise])[1])
                cells += [f"{holds:.1%}", f"{beside:.4f}", f"{beside / base:.2f}"]
            found.append([name, f"{base:.4f}", *cells])
        table(
            f"{title}: loss, k = {k}, delay = {delay}, {stream.rows.height:,} tuples, l = 2 and t = {stream.t} of "
            f"{stream.sensitive!r} (asked: ours / k alone <= 1.10 where k alone keeps it)",
            ["method", "k", "k keeps l", "k + l", "/ k", "k keeps t", "k + t", "/ k"],
            found,
        )


def columns(q: int, count: int) -> Stream:
    """Generated: q columns, every third one a tree, the others numbers; as skewed as real ones."""
    rng = np.random.default_rng(q)
    nodes = {f"n{i}": [f"v{i}{j}" for j in range(6)] for i in range(6)}
    leaves = np.array([leaf for some in nodes.values() for leaf in some])
    made, quasi = {}, {}
    for j in range(q):
        if j % 3 == 2:
            made[f"c{j}"], quasi[f"c{j}"] = leaves[np.minimum(rng.geometric(0.12, count) - 1, 35)], Tree(nodes=nodes)
        else:
            made[f"c{j}"] = np.minimum(rng.gamma(3.0, 8.0, count).astype(np.int64), 99)
            quasi[f"c{j}"] = Range(min=0, max=99)
    return Stream(pl.DataFrame(made), Schema.build(quasi=quasi), {}, "", 0.0)


ASKED = {1: 250_000, 4: 220_000, 9: 120_000, 15: 60_000}


def speed() -> None:
    """Tuples per CPU-second by columns, best of three."""
    count = 10_000 if SMALL else 60_000
    played(columns(4, 1000), Batches(delay=100), [KAnonymity(10)])  # loads what was compiled
    played(columns(4, 1000), Castle(delay=100), [KAnonymity(10)])
    found = []
    for q, asked in ASKED.items():
        stream = columns(q, count)
        for reuse in ("never", None):
            spent = min(played(stream, Batches(delay=100, reuse=reuse), [KAnonymity(10)])[0] for _ in range(3))
            found.append([f"batches, {reuse or 'default'}", q, "10, 100", f"{count / spent:,.0f}", f">= {asked:,}"])
    stream = columns(4, count // 3)
    spent = min(played(stream, Castle(delay=1000), [KAnonymity(50)])[0] for _ in range(2))
    found.append(["castle", 4, "50, 1,000", f"{count // 3 / spent:,.0f}", ">= 20,000"])
    table("tuples per CPU-second", ["method", "columns", "k, delay", "rate", "asked"], found)


def laps(stream: Stream, method: StreamMethod, k: int, most: int) -> list[float]:
    """CPU seconds of this thread for each call of 64 tuples: other threads and other people do not count."""
    running = method.start(stream.schema, [KAnonymity(k)], key=KEY)
    found = []
    for at in range(0, min(most, stream.rows.height), 64):
        batch = Batch(stream.rows[at : at + 64], np.arange(at, min(at + 64, stream.rows.height)), None, at)
        start = time.thread_time()
        running.push(batch)
        found.append(time.thread_time() - start)
    return found


def pause() -> None:
    """The longest single call, pushed 64 at a time: what a reader of the stream waits for at most.

    The same calls do the same work in every run, so each counts with the least of three: what is beyond is the machine.
    """
    methods: tuple[type[Batches | Castle | Fads], ...] = (Batches, Castle, Fads)
    found = []
    for k, delay in ((10, 1000), (100, 1000), (10, 10_000), (1000, 10_000), (10, 100_000), (1000, 100_000)):
        if SMALL and delay > 10_000:
            break
        count = (delay * 13) // 10 + 2000
        stream = columns(4, count)
        cells = []
        for method in methods:
            laps(stream, method(delay=300), min(k, 300), 1200)  # loads what was compiled
            laps(stream, method(delay=3000), min(k, 300), 4000)
            runs = [laps(stream, method(delay=delay), k, count) for _ in range(1 if SMALL else 3)]
            ordered = sorted(np.min(runs, axis=0).tolist())
            longest = " / ".join(f"{1e3 * ordered[-n]:.1f}" for n in (1, 2))
            cells += [longest, f"{1e6 * sum(ordered) / count:.1f}"]
        found.append([f"{k}, {delay:,}", *cells])
    heads = [head for method in methods for head in (f"{method.__name__.lower()}: longest", "µs per tuple")]
    table(
        "pauses, CPU ms of the longest and the second longest call of 64 tuples, each the least of three runs "
        "(asked: <= 50), 4 columns",
        ["k, delay", *heads],
        found,
    )


def hierarchies(count: int) -> dict[str, tuple[Hierarchy, Sequence[str], list[str]]]:
    """Per hierarchy: the values a person shows, and how the peer spells the same (levels joined by a star)."""
    rng = np.random.default_rng(1)
    size = 20_000
    p = 1.0 / np.arange(1, size + 1)
    at = rng.choice(size, count, p=p / p.sum())
    c3, c2, c1 = rng.integers(0, 450, size), rng.integers(0, 60, 450), rng.integers(0, 12, 60)
    steps = [(f"d{c1[c2[c3[i]]]}", f"c{c2[c3[i]]}", f"b{c3[i]}", f"a{i}") for i in range(size)]
    nodes: dict[str, Any] = {}
    for a, b, c, d in steps:
        nodes.setdefault(a, {}).setdefault(b, {}).setdefault(c, []).append(d)
    codes = [f"{(i * 7919) % 100_000:05d}" for i in range(size)]
    spots = [(52 + (i % 200) / 500, 13 + (i // 200) / 250) for i in range(size)]
    path, prefix = HIERARCHIES.decode({"use": "path", "separator": "*"}), Prefix(5)
    grid = HIERARCHIES.decode({"use": "grid", "sizes": [200, 1000, 5000]})
    cells = [[f"{lat * 10**n:.0f},{lon * 10**n:.0f}" for n in (0, 1, 2, 3)] for lat, lon in spots]
    ours = {
        "path": (path, ["*".join(s) for s in steps], ["*".join(s) for s in steps]),
        "tree": (Tree(nodes=nodes), [s[-1] for s in steps], ["*".join(s) for s in steps]),
        "prefix": (prefix, codes, ["*".join(c[:n] for n in range(1, 6)) for c in codes]),
        "grid": (grid, [f"{lat:.4f},{lon:.4f}" for lat, lon in spots], ["*".join(c) for c in cells]),
    }
    return {
        name: (one, [values[i] for i in at.tolist()], [peers[i] for i in at.tolist()])
        for name, (one, values, peers) in ours.items()
    }


def z() -> None:
    """Events per CPU-second beside the peer, in one run: untuned and tuned, by hierarchy and batch size."""
    count = 10_000 if SMALL else 131_072
    rng = np.random.default_rng(5)
    times = np.sort(rng.uniform(1_600_000_000, 1_600_000_000 + 6 * 3600, count))
    people = [f"u{i}" for i in rng.integers(0, 50_000, count)]
    have = bench_z.have_zanon()
    found = []
    for name, (hierarchy, values, peers) in hierarchies(count).items():
        for tuned in (False, True):
            rows = list(zip(times.tolist(), people, peers, strict=True))
            theirs = bench_z.zanon_run(rows, tuned)[0] if have else float("nan")
            cells = [f"{count / theirs:,.0f}"]
            columns = (times, pl.Series(people), pl.Series(values))

            def fresh(tuned: bool = tuned, hierarchy: Hierarchy = hierarchy) -> ZStream:
                options: dict[str, Any] = {"tune": bench_z.TUNE} if tuned else {}
                return z_anonymity(1 if tuned else 20, "1h", hierarchy, **options)

            def singly(most: int, fresh: Any = fresh, values: Sequence[str] = values) -> float:
                push, events = fresh().push, list(zip(times[:most].tolist(), people, values, strict=False))
                start = time.process_time()
                for t, u, v in events:
                    push(t, u, v)
                return time.process_time() - start

            singly(200)
            for size, asked in ((65_536, 50), (4096, 30)):
                # a tree is read when a stream starts, not per event: the clock starts behind it
                # a tenth of a second is easily disturbed, the peer's seconds are not: so it is run several times
                spent = min(sum(bench_z.in_batches(fresh(), columns, size)) for _ in range(5))
                cells += [f"{count / spent:,.0f}", f"{theirs / spent:.0f} (>= {asked})"]
            spent = min(singly(count) for _ in range(3))
            cells += [f"{count / spent:,.0f}", f"{theirs / spent:.1f} (>= 8)"]
            found.append([f"{name}{', tuned' if tuned else ''}", *cells])
    table(
        f"z-anonymity beside zanon 0.3.4, {count:,} events, z = 20 or tuned, 1 h: events per CPU-second, ours / peer",
        ["hierarchy", "zanon", "65,536", "ratio", "4,096", "ratio", "one by one", "ratio"],
        found,
    )


def ndjson() -> None:
    """NDJSON to NDJSON, beside bare parsing and writing."""
    bench_z.end_to_end(200_000 if SMALL else 1_000_000)


PARTS = {"loss": loss, "speed": speed, "pause": pause, "z": z, "ndjson": ndjson, "tuner": bench_tuner.main}


def main() -> None:
    """All parts, or those named."""
    for name in [a for a in sys.argv[1:] if not a.startswith("-")] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
