"""Masks and views: JSON records beside a hand-written orjson loop, columns beside hand-written polars expressions,
microaggregation beside microagg1d; how many records two roles link. CPU time; compile time apart.

``python -m benchmarks.bench_masks [PART …]``, or all: records columns microaggregation masks beside vault
text linking collusion.
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import SHARED, cpu, table
from shoal.connect.files import read
from shoal.core.schema import Column, Schema
from shoal.kernels.shared.microaggregation import microaggregate, squared_error
from shoal.masks import MASKS
from shoal.masks.base import Context
from shoal.release.collusion import Cause, Seen, collusion
from shoal.testing.masks import fixed_ring
from shoal.views.frames import FrameGate
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView

RECORDS = 100_000
SCHEMA = Schema(
    {
        "pid": Column("subject", type="str"),
        "name": Column("identifier", type="str"),
        "email": Column("identifier", type="str"),
        "zip": Column("quasi", type="str"),
        "sex": Column("quasi", type="str"),
        "age": Column("quasi", type="int"),
        "ins.co": Column("quasi", type="str"),
        "ins.no": Column("identifier", type="str"),
        "diag": Column("sensitive", type="str"),
        "gluc": Column("plain", type="float"),
        "hba1c": Column("plain", type="float"),
        "ts": Column("time", type="int"),
    }
)
# two constants, one prefix, one bucket, one nested constant
FIVE = {
    "pid": {"use": "suppress", "nulls": True},
    "name": {"use": "suppress", "nulls": True},
    "zip": {"use": "blur", "first": 2, "length": 3},
    "age": {"use": "bucket", "width": 10},
    "ins.no": {"use": "suppress", "nulls": True},
}
KEYS = fixed_ring()


def hospital(n: int) -> list[bytes]:
    import orjson

    draw = random.Random(1)
    return [
        orjson.dumps(
            {
                "pid": f"{i:07}",
                "name": draw.choice(["F. Ott", "L. Lieb", "T. Zeit", "H. Lang"]),
                "email": f"p{i % 5000}@example.org",
                "zip": f"{draw.randrange(10_000, 99_999)}",
                "sex": draw.choice("FMD"),
                "age": draw.randrange(95),
                "ins": {"co": draw.choice(["TK", "AOK", "IKK"]), "no": f"K{draw.randrange(10_000, 99_999)}"},
                "diag": draw.choice(["E10", "E11"]),
                "gluc": draw.randrange(150, 250) / 10,
                "hba1c": draw.randrange(500, 900) / 100,
                "ts": 1_700_000_000 + i,
            }
        )
        for i in range(n)
    ]


def view(role: str, masks: dict[str, dict[str, object]]) -> RoleView:
    return RoleView.resolve(role, SCHEMA, "everything", {c: MASKS.decode(m) for c, m in masks.items()})


def by_hand(o: dict) -> dict:  # type: ignore[type-arg]
    """What a careful person writes: a new dictionary, an allow-list, no interpreter of rules."""
    low = o["age"] // 10 * 10
    return {
        "pid": "*",
        "name": "*",
        "email": o["email"],
        "zip": o["zip"][:2] + "XXX",
        "sex": o["sex"],
        "age": f"[{low}, {low + 9}]",
        "ins": {"co": o["ins"]["co"], "no": "*"},
        "diag": o["diag"],
        "gluc": o["gluc"],
        "hba1c": o["hba1c"],
        "ts": o["ts"],
    }


def records() -> None:
    import orjson

    lines = hospital(RECORDS)
    loads, dumps = orjson.loads, orjson.dumps
    rows = []
    for roles in (1, 3):
        ours = RecordGate([view(f"role{n}", FIVE) for n in range(roles)], KEYS)._call
        assert [loads(r) for r in ours(lines[0])] == [by_hand(loads(lines[0]))] * roles

        def peer(line: bytes, roles: int = roles) -> tuple[bytes, ...]:
            record = loads(line)
            return tuple(dumps(by_hand(record)) for _ in range(roles))

        a, b = micro(ours, lines), micro(peer, lines)
        rows.append([f"{roles} view{'s' * (roles > 1)}, five masks each", a, b, a / b])
    table("JSON bytes in, views out: µs of CPU per record", ["", "shoal", "orjson by hand", "ours / peer"], rows)


def micro(function: Callable[[bytes], object], lines: list[bytes]) -> float:
    """Microseconds per record, the best of five runs; outputs are let go at once, as a producer would."""

    def run() -> None:
        for line in lines:
            function(line)

    gc.collect()
    return cpu(run, 5)[0] / len(lines) * 1e6


def each_mask() -> None:
    lines = hospital(20_000)
    masks: dict[str, tuple[str, dict[str, object]]] = {
        "suppress": ("name", {"use": "suppress"}),
        "blur": ("zip", {"use": "blur", "first": 2, "length": 3}),
        "substitute, surrogate": ("name", {"use": "substitute", "choose": "names"}),
        "tokenize, AES-SIV": ("pid", {"use": "tokenize"}),
        "tokenize, FF1": ("pid", {"use": "tokenize", "form": "ff1"}),
        "pseudonym": ("pid", {"use": "pseudonym"}),
        "pseudonym, rotating": ("pid", {"use": "pseudonym", "rotate": "24h"}),
        "generalize": ("zip", {"use": "generalize", "level": 2, "hierarchy": {"use": "prefix", "length": 3}}),
        "bucket": ("age", {"use": "bucket", "width": 10}),
        "noise": ("gluc", {"use": "noise", "spread": 2}),
        "conditional, match": ("gluc", {"use": "conditional", "when": {"column": "diag", "equals": "E10"}, "then": 0}),
        "conditional, regex": ("name", {"use": "conditional", "when": {"matches": "^[A-K]"}, "then": "x"}),
    }
    nothing = micro(RecordGate([view("role", {})], KEYS)._call, lines)
    rows = [["no mask: the whole record", nothing, ""]]
    for name, (column, spec) in masks.items():
        cost = micro(RecordGate([view("role", {column: spec})], KEYS)._call, lines)
        rows.append([name, cost, f"{cost - nothing:+.2f}"])
    table("One mask on one column of JSON records: µs of CPU per record", ["", "record", "the mask adds"], rows)


def columns() -> None:
    n = 1_000_000
    draw = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "pid": draw.integers(0, n, n).astype(str),
            "name": draw.choice(["F. Ott", "L. Lieb", "T. Zeit"], n),
            "zip": draw.integers(10_000, 99_999, n).astype(str),
            "age": draw.integers(0, 95, n),
            "ins_no": draw.integers(10_000, 99_999, n).astype(str),
            "diag": draw.choice(["E10", "E11"], n),
        }
    )
    kinds = {"pid": "str", "name": "str", "zip": "str", "age": "int", "ins_no": "str", "diag": "str"}
    schema = Schema({c: Column("plain", type=k) for c, k in kinds.items()})  # type: ignore[arg-type]
    masks = {c.replace("ins.no", "ins_no"): MASKS.decode(m) for c, m in FIVE.items()}
    compiled = FrameGate(RoleView.resolve("role", schema, "everything", masks), frame.schema, KEYS)
    low = pl.col("age") // 10 * 10
    hand = [
        pl.lit("*").alias("pid"),
        pl.lit("*").alias("name"),
        (pl.col("zip").str.slice(0, 2) + "XXX").alias("zip"),
        pl.format("[{}, {}]", low, low + 9).alias("age"),
        pl.lit("*").alias("ins_no"),
    ]
    ours, made = cpu(lambda: compiled.apply(frame).data, 5)
    peer, expected = cpu(lambda: frame.lazy().with_columns(hand).collect(), 5)
    assert made.equals(expected)
    expressions, _ = cpu(lambda: frame.lazy().with_columns(compiled.expressions()).collect(), 5)
    table(
        "Five masks on a million rows of columns: seconds of CPU",
        ["", "shoal", "polars by hand", "ours / peer"],
        [
            ["expressions alone", expressions, peer, expressions / peer],
            ["whole view (types, subjects, nulls, short values)", ours, peer, ours / peer],
        ],
    )


def beside() -> None:
    """Newer masks beside a polars expression and an orjson loop."""
    from benchmarks import masks_beside

    masks_beside.beside()


def text() -> None:
    """People in text."""
    from benchmarks import masks_beside

    masks_beside.text()


def vault() -> None:
    """A view with a vault."""
    from benchmarks import masks_beside

    masks_beside.vault()


def microaggregation() -> None:
    import microagg1d

    n = 1_000_000
    draw = np.random.default_rng(1)
    rows = []
    for name, values in (("normal", draw.normal(size=n)), ("skewed", draw.exponential(size=n) ** 3)):
        x = np.sort(values)
        for k in (5, 50):
            microaggregate(x[:1000], k)
            microagg1d.univariate_microaggregation(x[:1000], k)
            ours, mine = cpu(lambda x=x, k=k: microaggregate(x, k), 3)  # type: ignore[misc]
            peer, theirs = cpu(lambda x=x, k=k: microagg1d.univariate_microaggregation(x, k), 3)  # type: ignore[misc]
            cost, other = squared_error(x, mine), squared_error(x, theirs.astype(np.int32))
            rows.append([f"{name}, k={k}", ours, peer, ours / peer, f"{cost:.6f}", f"{other:.6f}"])
    header = ["a million sorted values", "shoal s", "microagg1d s", "ours / peer", "our cost", "their cost"]
    table("Optimal univariate microaggregation: CPU seconds, squared error", header, rows)
    series = pl.Series(draw.normal(size=n))
    mask = MASKS.decode({"use": "microaggregate", "k": 5}).start(Context(type="float"))
    whole, _ = cpu(lambda: mask.apply(series, None), 3)  # type: ignore[attr-defined]
    table("The whole mask (sort, group, mean), k=5", ["", "CPU s"], [["a million values", whole]])


def linking() -> None:
    """What nurse and administration link of real patients by what both see (Allgöwer 2023: hardly anything)."""
    file = SHARED / "data" / "diabetes_130us" / "diabetic_data.csv.gz"
    if not file.is_file():
        print("linking: the shared data is not beside the repository\n")
        return
    both = ["payer_code", "diag_1", "insulin", "metformin"]
    shown = {"nurse": [*both, "gender", "age", "race"], "administration": [*both, "encounter_id"]}
    kinds = {"patient_nbr": "subject", "encounter_id": "identifier", "diag_1": "sensitive"}
    names = ["patient_nbr", "encounter_id", *both, "gender", "age", "race"]
    schema = Schema({n: Column(kinds.get(n, "quasi")) for n in names})  # type: ignore[arg-type]
    whole = pl.read_csv(file, infer_schema=False).select(names)
    rows = []
    for size in (1_000, 10_000, 100_000):
        frame = whole.sample(size, seed=1)
        views = []
        for role, clear in shown.items():
            hidden = [c for c in names if c not in clear]
            data = frame.with_columns(pl.lit("*").alias(c) for c in hidden)
            order = pl.Series(range(size)).sample(fraction=1, shuffle=True, seed=len(role))
            views.append(Seen(role, data[order], order, clear=frozenset(clear), hidden=frozenset(hidden)))
        seconds, (pool,) = cpu(lambda views=views, frame=frame: collusion(views, schema, subjects=frame["patient_nbr"]))
        rows.append([f"{size:,}", pool.linked, f"{100 * pool.share:.1f}", max(pool.causes, key=_alone).column, seconds])
    head = ["records", "linked exactly", "%", "most by", "CPU s"]
    table("Diabetes 130-US hospitals, samples: two roles share payer, diagnosis, insulin, metformin", head, rows)


def pooled() -> None:
    """What four roles of a hospital and of a shop learn together, as `shoal check` says it."""
    from shoal.policy.load import load
    from shoal.release.roles import pools

    folder = Path(__file__).parent.parent / "examples" / "collusion"
    files = {
        "hospital": SHARED / "data" / "diabetes_130us" / "diabetic_data.csv.gz",
        "retail": SHARED / "data" / "online_retail" / "online_retail.parquet",
    }
    for name, file in files.items():
        if not file.is_file():
            print(f"collusion, {name}: the shared data is not beside the repository\n")
            continue
        policy = load(str(folder / f"{name}.yaml"))
        frame = read(str(file), types=policy.types()).head(100_000)
        seconds, (found, _) = cpu(lambda policy=policy, frame=frame: pools(frame, policy, keys=KEYS, most=4))  # type: ignore[misc]
        rows = [[" + ".join(p.roles), f"{100 * p.share:.1f}", p.worst.column if p.worst else ""] for p in found]
        table(f"{name}: four roles, 100,000 rows, {seconds:.1f} CPU s", ["roles", "% linked", "above all by"], rows)


def _alone(cause: Cause) -> float:
    return cause.alone


PARTS = {
    "records": records,
    "columns": columns,
    "microaggregation": microaggregation,
    "masks": each_mask,
    "beside": beside,
    "vault": vault,
    "text": text,
    "linking": linking,
    "collusion": pooled,
}


def main() -> None:
    """The parts named on the command line, or all."""
    for name, part in PARTS.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            part()


if __name__ == "__main__":
    main()
