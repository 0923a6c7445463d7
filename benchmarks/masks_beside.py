"""The newer masks beside what a careful person writes: a polars expression for a column, an orjson loop for records."""

from __future__ import annotations

import datetime
import gc
import os
import re
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson
import polars as pl

from benchmarks import cpu, table
from shoal.core.schema import Column, Schema
from shoal.core.vault import Vault
from shoal.masks import MASKS
from shoal.masks.base import Context
from shoal.masks.locales import LOCALES
from shoal.masks.window_mask import RunningWindow
from shoal.testing.masks import fixed_ring
from shoal.views.frames import FrameGate
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView

ROWS, LINES, KEYS = 300_000, 50_000, fixed_ring()
KINDS = {"pid": "str", "pay": "float", "age": "int", "at": "datetime", "note": "str", "sex": "str"}
SCHEMA = Schema({c: Column("subject" if c == "pid" else "plain", type=k) for c, k in KINDS.items()})  # type: ignore[arg-type]
KEY = bytes(range(32))
SHORTEST = 0.1  # CPU seconds of one round
DIGITS = re.compile("[0-9]{3,}")
ENGLISH = LOCALES["en"]


def frame(n: int) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "pid": [f"p{v:06}" for v in draw.integers(0, n // 3, n)],
            "pay": draw.normal(3000, 900, n),
            "age": draw.integers(0, 105, n),
            "at": pl.Series(draw.integers(0, 10**9, n) * 1_000_000).cast(pl.Datetime("us")),
            "note": [f"room {i % 977}, see {i % 5003}" for i in range(n)],
            "sex": draw.choice(["F", "M", "D"], n),
        }
    )


# ---- by hand, one value ----------------------------------------------------------------------------------------------


def hand_hash(value: str) -> str:
    return blake2b(value.encode(), key=KEY, digest_size=16).hexdigest()


def hand_number(value: str) -> int:
    return int.from_bytes(blake2b(value.encode(), key=KEY, digest_size=16).digest(), "big") % 10**15


def hand_fake(value: str) -> str:
    drawn = int.from_bytes(blake2b(value.encode(), key=KEY, digest_size=16).digest(), "big")
    rest, first = divmod(drawn, len(ENGLISH.given))
    return f"{ENGLISH.given[first]} {ENGLISH.family[rest % len(ENGLISH.family)]}"


def hand_pram(value: str, pid: str) -> str:
    raw = blake2b(f"{value}\x1f{pid}".encode(), key=KEY, digest_size=16).digest()
    if int.from_bytes(raw[:8], "big") < 0.8 * 2.0**64:
        return value
    others = {"F": "MD", "M": "FD", "D": "FM"}[value]
    return others[raw[8] & 1]


def hand_noise(value: float, pid: str) -> float:
    raw = blake2b(f"{value}\x1f{pid}".encode(), key=KEY, digest_size=16).digest()
    uniform = (int.from_bytes(raw[:8], "big") + 0.5) / 2.0**64
    made = value + 200 * np.sqrt(12) * (uniform - 0.5)
    return float(-made if made < 0 else made)


def each(function: Callable[..., Any], *columns: str, kind: Any = pl.String) -> pl.Expr:
    """A Python function over a column, or over the distinct values of it, whatever a careful person would."""

    def run(given: list[pl.Series]) -> pl.Series:
        if len(given) == 1:
            distinct = given[0].unique()
            made = pl.Series([function(v) for v in distinct.to_list()], dtype=kind)
            return given[0].replace_strict(distinct, made)
        rows = zip(*(s.to_list() for s in given), strict=True)
        return pl.Series([function(*row) for row in rows], dtype=kind)

    return pl.map_batches([pl.col(c) for c in columns], lambda s: run(list(s)), return_dtype=kind)


def month(text: str) -> int:
    return datetime.datetime.fromisoformat(text).month


def coded(age: int) -> str:
    return "≥90" if age >= 90 else str(age)


# mask: column, spec, polars by hand, one value of a JSON record by hand; whether both must give the same
PAIRS: dict[str, tuple[str, dict[str, Any], pl.Expr, Callable[[dict[str, Any]], Any], bool]] = {
    "round": (
        "pay",
        {"use": "round", "to": 100},
        (pl.col("pay") / 100 + 0.5).floor() * 100,
        lambda o: float((o["pay"] / 100 + 0.5) // 1 * 100),
        True,
    ),
    "clip": (
        "age",
        {"use": "clip", "min": 18, "max": 90},
        pl.col("age").clip(18, 90),
        lambda o: min(max(o["age"], 18), 90),
        True,
    ),
    "clip, coded": (
        "age",
        {"use": "clip", "max": 90, "coded": True},
        pl.when(pl.col("age") >= 90).then(pl.lit("≥90")).otherwise(pl.col("age").cast(pl.String)),
        lambda o: coded(o["age"]),
        True,
    ),
    "time-part": (
        "at",
        {"use": "time-part", "part": "month"},
        pl.col("at").dt.month().cast(pl.Int64),
        lambda o: month(o["at"]),
        True,
    ),
    "replace": (
        "note",
        {"use": "replace", "find": "[0-9]{3,}"},
        pl.col("note").str.replace_all("[0-9]{3,}", "*"),
        lambda o: DIGITS.sub("*", o["note"]),
        True,
    ),
    "hash": ("pid", {"use": "hash"}, each(hand_hash, "pid"), lambda o: hand_hash(o["pid"]), False),
    "number": (
        "pid",
        {"use": "number"},
        each(hand_number, "pid", kind=pl.Int64),
        lambda o: hand_number(o["pid"]),
        False,
    ),
    "fake": ("pid", {"use": "fake"}, each(hand_fake, "pid"), lambda o: hand_fake(o["pid"]), False),
    "pram": (
        "sex",
        {"use": "pram", "values": ["F", "M", "D"]},
        each(hand_pram, "sex", "pid"),
        lambda o: hand_pram(o["sex"], o["pid"]),
        False,
    ),
    "noise, bounded": (
        "pay",
        {"use": "noise", "spread": 200, "kind": "uniform", "min": 0},
        each(hand_noise, "pay", "pid", kind=pl.Float64),
        lambda o: hand_noise(o["pay"], o["pid"]),
        False,
    ),
}


def beside() -> None:
    """Columns and records."""
    data, rows = frame(ROWS), []
    for name, (column, spec, hand, _, same) in PAIRS.items():
        context = Context(column=column, type=KINDS[column], keys=KEYS, subject="pid")  # type: ignore[arg-type]
        mask = MASKS.decode(spec).start(context)
        made = mask.expression(pl.col(column), *(pl.col(b) for b in mask.by))
        mine, theirs = data.select(made), data.select(hand)
        assert not same or mine.to_series().equals(theirs.to_series(), check_names=False)
        rows.append([name, *in_turn(lambda m=made: data.select(m), lambda h=hand: data.select(h))])  # type: ignore[misc]
    rows.append(swapped(data["pay"]))
    table(f"Newer masks, {ROWS:,} rows: CPU seconds", ["", "shoal", "polars by hand", "ours / peer"], rows)
    json_rows(data.head(LINES))


def json_rows(data: pl.DataFrame) -> None:
    """Whole records, bytes in and bytes out, one field masked."""
    lines = [orjson.dumps(r) for r in data.to_dicts()]
    rows = []
    for name, (column, spec, _, hand, same) in PAIRS.items():
        view = RoleView.resolve("role", SCHEMA, "everything", {column: MASKS.decode(spec)})
        ours = RecordGate([view], KEYS)._call

        def peer(line: bytes, column: str = column, hand: Callable[..., Any] = hand) -> tuple[bytes]:
            record = orjson.loads(line)
            record[column] = hand(record)
            return (orjson.dumps(record),)

        if same:
            assert [orjson.loads(r)[column] for r in ours(lines[0])] == [orjson.loads(peer(lines[0])[0])[column]]
        a, b, ratio = in_turn(lambda f=ours: _each(f, lines), lambda f=peer: _each(f, lines))  # type: ignore[misc]
        rows.append([name, a / len(lines) * 1e6, b / len(lines) * 1e6, ratio])
    table("JSON records, one mask: µs of CPU per record", ["", "shoal", "orjson by hand", "ours / peer"], rows)


def _each(function: Callable[[bytes], object], lines: list[bytes]) -> None:
    for line in lines:
        function(line)


def in_turn(ours: Callable[[], object], peer: Callable[[], object], rounds: int = 7) -> tuple[float, float, float]:
    """CPU seconds of both and their ratio, each the median of rounds in which one follows the other: what else the
    machine does then falls on both.

    Both run once before, each goes first in every other round (whoever goes first finds cold caches), and what is short
    is repeated: of one run of a millisecond, the clock and the caches are a third.
    """
    repeat = max(1, round(SHORTEST / max(cpu(ours)[0], cpu(peer)[0], 1e-6)))
    seconds = []
    for at in range(rounds):
        gc.collect()
        spent = {}
        for work in (ours, peer) if at % 2 else (peer, ours):
            spent[work] = cpu(lambda work=work: _again(work, repeat))[0] / repeat  # type: ignore[misc]
        seconds.append((spent[ours], spent[peer]))
    return median(a for a, _ in seconds), median(b for _, b in seconds), median(a / b for a, b in seconds)


def _again(work: Callable[[], object], repeat: int) -> None:
    for _ in range(repeat):
        work()


def swapped(values: pl.Series) -> list[object]:
    """Rank swapping beside a loop over ranks."""
    few = values.head(20_000)
    context = Context(column="pay", type="float", keys=KEYS, subject="pid")
    mask = MASKS.decode({"use": "rank-swap", "k": 2}).start(context)
    assert isinstance(mask, RunningWindow)

    def hand() -> pl.Series:
        numbers, draw = few.to_numpy().copy(), np.random.default_rng(1)
        order, reach = np.argsort(numbers, kind="stable"), int(0.05 * len(few))
        free = np.ones(len(few), bool)
        for rank in range(len(few)):
            if free[rank]:
                near = np.flatnonzero(free[rank + 1 : rank + reach + 1])
                if len(near):
                    other = rank + 1 + int(draw.choice(near))
                    free[rank] = free[other] = False
                    a, b = order[rank], order[other]
                    numbers[a], numbers[b] = numbers[b], numbers[a]
        return pl.Series(numbers)

    made = mask.apply(few, None)
    assert made is not None
    assert sorted(made) == sorted(hand())
    return ["rank-swap, 20,000 rows", *in_turn(lambda: mask.apply(few, None), hand, 3)]


def vault() -> None:
    """A view with a vault, on people it knows already."""
    data = frame(ROWS)
    with TemporaryDirectory() as folder:
        spec = MASKS.decode({"use": "tokenize", "form": "vault", "vault": "v.db"})
        view = RoleView.resolve("role", SCHEMA, "everything", {"pid": spec}, folder=Path(folder))
        gate = FrameGate(view, data.schema, KEYS)
        first, _ = cpu(lambda: gate.apply(data))
        again, _ = cpu(lambda: gate.apply(data), 3)
        Vault.at(Path(folder) / "v.db").close()  # what it remembers goes with it
        other = FrameGate(view, data.schema, KEYS)
        restarted, _ = cpu(lambda: other.apply(data))
    rows = [["new people", first], ["known people", again], ["known people, after a restart", restarted]]
    table("A view with a vault: µs of CPU per row", ["", "µs"], [[n, s / ROWS * 1e6] for n, s in rows])  # type: ignore[operator]


def text() -> None:
    """People in text: megabytes per CPU second, beside Presidio where it is installed."""
    line = "Dr. Anna Weber ({0}) wrote on 2024-02-11 to a{0}@example.org, 030 23125 {0:03}. "
    filling = "The patient came back and was seen by the team; no fever, no pain, good appetite. "
    letters = [line.format(i) + filling * 4 for i in range(2000)]
    size = sum(map(len, letters)) / 1e6
    rows: list[list[object]] = []
    for name, spec in (("text", {"use": "text"}), ("text, doubt: keep", {"use": "text", "doubt": "keep"})):
        mask = MASKS.decode(spec).start(Context(type="str"))
        rows.append([name, size / cpu(lambda m=mask: [m.one(letter) for letter in letters])[0]])  # type: ignore[misc]
    sys.path.append(os.environ.get("SHOAL_BENCH_PRESIDIO", ""))
    try:
        import spacy
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import SpacyNlpEngine
    except ImportError:
        rows.append(["Presidio", "not installed"])
    else:
        # without a model of spaCy, which no registry has: its patterns alone, which is its fastest
        engine = SpacyNlpEngine()
        engine.nlp = {"en": spacy.blank("en")}
        analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])
        few = letters[:200]
        analyzer.analyze(text=few[0], language="en")
        seconds, _ = cpu(lambda: [analyzer.analyze(text=letter, language="en") for letter in few])
        rows.append(["Presidio, patterns only", sum(map(len, few)) / 1e6 / seconds])
    table("People in text", ["", "MB per CPU s"], rows)
