"""Laws of masks. A failed law is an ``AssertionError`` that names the law and the place, never a value."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from shoal.core.errors import ShoalError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.keys import KeyRing
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running, dtype_of
from shoal.masks.window_mask import RunningWindow
from shoal.testing.law import law

PYTHON: dict[Type | None, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "bool": (bool,),
    "date": (datetime.date,),
    "datetime": (datetime.datetime,),
}
ODD: tuple[Any, ...] = ("", " ", "*", "\0", "🐟" * 50, "x" * 5000, 0, -1, 2**62, 1e308, -0.0, math.inf, math.nan, True)
SAMPLES: dict[Type, tuple[Any, ...]] = {
    "str": ("", "*", "F. Ott", "a@b.org", "@@", "192.0.2.1", "2024-02-29", "10115", "x" * 300, "naïve\n🐟", "K15489"),
    "int": (0, 1, -1, 27, 68, 10**6, -(10**12), 2**53),
    "float": (0.0, -0.5, 22.1, 1e9, -1e-9, 29.83, 5.0),
    "bool": (True, False),
    "date": (datetime.date(1970, 1, 1), datetime.date(2024, 2, 29)),
    "datetime": (datetime.datetime(1970, 1, 1), datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999)),
}


def fixed_ring(*names: str) -> KeyRing:
    """A ring with fixed, worthless keys.

    >>> sorted(fixed_ring("default", "cards").keys)
    ['cards', 'default']
    """
    return KeyRing({name: {1: bytes(range(32)), 2: bytes(range(1, 33))} for name in ("default", *names)})


def check_mask(
    spec: Mask, kind: Type = "str", values: Sequence[Any] | None = None, *, hierarchy: Hierarchy | None = None
) -> None:
    """Hold a mask to its laws on a column of type ``kind``, with fixed keys, a subject and a time beside it.

    >>> from shoal.masks.blur import Blur
    >>> check_mask(Blur(first=1))
    """
    beside: dict[str, Any] = {"subject": "pid", "time": "time", "types": {"pid": "int"}}
    context = Context(type=kind, role="nurse", keys=fixed_ring(), hierarchy=hierarchy, **beside)
    if spec.scope == "window":
        chosen = [*(values if values is not None else SAMPLES[kind]), None]
        window_mask_laws(spec, context, chosen, [at % 5 for at in range(len(chosen))])
        window_mask_laws(spec, context, chosen[:1], [0])
    else:
        mask_laws(spec, context, values)


def mask_laws(mask: Mask, context: Context, values: Sequence[Any] | None = None) -> None:
    """Hold a mask of single values, or of tuples, to its laws and its declared traits.

    >>> from shoal.masks.suppress import Suppress
    >>> mask_laws(Suppress(), Context("name", "str"))
    """
    kind = context.type
    chosen = list(values if values is not None else SAMPLES[kind] if kind else SAMPLES["str"])
    running = mask.start(context)
    made = _each(running, chosen)
    law(running.type == mask.output(kind), mask, "its output type is the one it declared")
    law(bool(mask.attack) and bool(mask.describe()), mask, "it names the attack it falls to, and describes itself")
    for at, value in enumerate(made):
        fits = value is None or running.type is None or isinstance(value, PYTHON[running.type])
        law(fits, mask, f"value {at} has the declared type")
    law(_same(made, _each(running, chosen)), mask, "the same record gets the same answer again")
    law(_same(made, _each(mask.start(context), chosen)), mask, "a restart changes nothing")
    if mask.repeatable and mask.scope == "value":
        others = [running.one(v, *_by(running, at + 1)) for at, v in enumerate(chosen)]
        rotating = getattr(mask, "rotate", None) is not None
        law(rotating or _same(made, others), mask, "equal values of one column read alike")
    if mask.constant:
        told = {repr(value) for value, given in zip(made, chosen, strict=True) if given is not None}
        law(len(told) <= 1, mask, "all values read alike")
    if mask.keyed:
        other = mask.start(replace(context, role=context.role + "'"))
        shared = sum(a == b for a, b in zip(made, _each(other, chosen), strict=True) if isinstance(a, str) and a != "*")
        law(shared < len(chosen), mask, "another role is answered otherwise")
    if mask.reversible:
        _reveals(mask, running, chosen, made)
    _columns(mask, running, chosen, made, kind)
    _odd(mask, context)


def window_mask_laws(mask: Mask, context: Context, values: Sequence[Any], people: Sequence[Any]) -> None:
    """Hold a mask of windows to its laws.

    >>> from shoal.masks.aggregate import Aggregate
    >>> mean = Aggregate(function="mean", k=2)
    >>> window_mask_laws(mean, Context("pay", "float"), [4.0, 6.0, None], ["ada", "bob", "eve"])
    """
    running = mask.start(context)
    assert isinstance(running, RunningWindow)
    series = pl.Series("v", values, dtype=dtype_of(context.type))
    who = pl.Series("who", people)
    before = series.clone()
    made = running.apply(series, who)
    law(series.equals(before), mask, "the input is untouched")
    enough = who.filter(series.is_not_null()).n_unique() >= running.k
    law((made is not None) == enough, mask, "a window is published if and only if k people are in it")
    if made is not None:
        law(len(made) == len(series), mask, "every tuple keeps its place")
        again = mask.start(context)
        assert isinstance(again, RunningWindow)
        law(made.equals(again.apply(series, who), null_equal=True), mask, "a replay gives the same")  # type: ignore[arg-type]
        law(made.dtype == dtype_of(mask.output(context.type)), mask, "its output type is the one it declared")


def _by(running: Running, at: int) -> tuple[Any, ...]:
    """Other columns of record ``at``: a person, a time."""
    return tuple(1_700_000_000 + at for _ in running.by)


def _each(running: Running, values: Sequence[Any]) -> list[Any]:
    made = [running.one(v, *_by(running, at)) for at, v in enumerate(values)]
    running.settle()
    return made


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


def _reveals(mask: Mask, running: Running, values: Sequence[Any], made: Sequence[Any]) -> None:
    back = [running.reveal(token) for token in made]
    law(back == list(values), mask, "whoever holds the key gets the value back")
    for wrong in ("", "t1.", "t9.aaaa", "nonsense", str(made[0])[:-1] + "!"):
        try:
            running.reveal(wrong)
        except ShoalError as error:
            quoted = wrong and wrong in str(error)
            law(not quoted, mask, "an error quotes no token")
        else:
            law(False, mask, "what is no token is an error, not garbage")


def _columns(mask: Mask, running: Running, values: Sequence[Any], made: Sequence[Any], kind: Type | None) -> None:
    by = [
        pl.Series(f"by{n}", [1_700_000_000 + at for at in range(len(values))] + [None]) for n in range(len(running.by))
    ]
    series = pl.Series("v", [*values, None], dtype=dtype_of(kind) if kind else None)
    before = series.clone()
    frame = pl.DataFrame([series, *by])
    out = frame.with_columns(running.expression(pl.col("v"), *(pl.col(b.name) for b in by)).alias("v"))["v"]
    running.settle()
    law(series.equals(before, null_equal=True), mask, "the input is untouched")
    if running.nulls:
        law(out[-1] == running.one(None, *(None for _ in by)), mask, "a null is hidden if asked")
    else:
        law(out[-1] is None, mask, "a null stays null")
    law(out.dtype == dtype_of(running.type), mask, "the column has the declared type")
    law(_same(out.to_list()[:-1], made), mask, "columns and single values agree")


def _odd(mask: Mask, context: Context) -> None:
    """Values of other types than declared may come from elsewhere: suppressed, never an exception."""
    running = mask.start(replace(context, type=None)) if _takes_any(mask) else mask.start(context)
    for at, value in enumerate(ODD):
        try:
            running.one(value, *_by(running, at))
        except Exception as error:
            raise AssertionError(f"{mask.use}: no exception on any value ({type(error).__name__} at {at})") from None
    running.settle()


def _takes_any(mask: Mask) -> bool:
    try:
        mask.output(None)
    except ShoalError:
        return False
    return True
