"""Texts handed to polars as they lie in memory."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import arrow
from shoal.streams.texts import Printer


def handed(texts: list[str | None]) -> pl.Series:
    raw = [(text or "").encode() for text in texts]
    offsets = np.cumsum([0, *map(len, raw)], dtype=np.int64)
    valid = np.array([text is not None for text in texts], bool)
    return arrow.texts(np.frombuffer(b"".join(raw) or b"\0", np.uint8), offsets, None if valid.all() else valid)


@given(st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=20), max_size=70))
def test_they_are_what_they_were(texts: list[str | None]) -> None:
    found = handed(texts)
    assert found.equals(pl.Series(texts, dtype=pl.String))
    assert found.filter(found.is_not_null()).to_list() == [text for text in texts if text is not None]


TEXTS = st.none() | st.text(st.sampled_from("ab\x00ä€😀"), max_size=20)


@given(st.lists(TEXTS, min_size=1, max_size=30), st.integers(0, 20), st.booleans())
def test_they_are_read_from_memory_as_by_expressions(texts: list[str | None], off: int, several: bool) -> None:
    many = pl.Series(texts * (1 + (arrow.FEW + off) // len(texts)), dtype=pl.String)
    if several:
        many = pl.concat([many, many], rechunk=False)
    many = many[off:]
    assert len(many) >= arrow.FEW
    data, starts, lengths = arrow.raw_texts(many)
    raw = [None if text is None else text.encode() for text in many.to_list()]
    assert lengths.tolist() == [-1 if one is None else len(one) for one in raw]
    assert [data[a : a + max(n, 0)].tobytes() for a, n in zip(starts, lengths, strict=True)] == [
        one or b"" for one in raw
    ]
    few = arrow.raw_texts(many[: arrow.FEW - 1])
    size = int(np.maximum(few[2], 0).sum())
    assert (data[:size] == few[0][:size]).all()
    assert starts[: len(few[1])].tolist() == few[1].tolist()
    assert lengths[: len(few[2])].tolist() == few[2].tolist()


@given(st.binary(min_size=1, max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(-1, 60)), max_size=20))
def test_pieces_of_a_buffer_are_texts_of_their_own(raw: bytes, places: list[tuple[int, int]]) -> None:
    data = np.frombuffer(raw.translate(bytes(b & 127 for b in range(256))), np.uint8)
    starts = np.array([min(at, len(data)) for at, _ in places], np.int64)
    lengths = np.array([min(n, len(data) - int(at)) for at, (_, n) in zip(starts, places, strict=True)], np.int64)
    wanted = [
        None if n < 0 else data[at : at + n].tobytes().decode() for at, n in zip(starts.tolist(), lengths, strict=True)
    ]
    found = arrow.pieces(data, starts, lengths)
    assert found.equals(pl.Series(wanted, dtype=pl.String))
    # as a key, too: bytes of a view that are not the text's must be zero
    assert found.unique().sort().equals(pl.Series(wanted, dtype=pl.String).unique().sort())
    assert len(found) == len(wanted)


@given(st.lists(TEXTS, min_size=1, max_size=30), st.integers(0, 20))
def test_fingerprints_of_a_column_are_those_of_its_texts(texts: list[str | None], off: int) -> None:
    printer = Printer(bytes(range(32)), "subject")
    many = pl.Series(texts * (1 + (arrow.FEW + off) // len(texts)), dtype=pl.String)[off:]
    each = {text: 0 if text is None else printer.one(text) for text in texts}
    assert printer.column(many).tolist() == [each[text] for text in many.to_list()]


def test_their_memory_lives_as_long_as_they_do() -> None:
    gc.collect()
    before = len(arrow._held)
    found = handed(["a text that is longer than a view"] * 9)
    part = found[3:5]
    del found
    gc.collect()
    assert part.to_list() == ["a text that is longer than a view"] * 2
    del part
    gc.collect()
    assert len(arrow._held) == before


def test_a_series_may_live_longer_than_the_interpreter() -> None:
    code = """
import builtins, numpy as np
from shoal.core.arrow import texts
builtins.last = texts(np.frombuffer(b"x" * 900, np.uint8), np.arange(10) * 100).to_frame("a")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
