"""Plain lines are read as a decoder reads them, or left to one; and whichever reads them, events are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.connect.events import Events
from shoal.connect.ndjson import Flat

NAMES = ["who", "grö", 'a"b']
texts = st.sampled_from(["who", "grö", 'a"b', "else", "größe", ":", "{", "[", "\\", '"who":1', "é"])
plain = st.one_of(texts, st.integers(-3, 3), st.floats(-2, 2), st.booleans(), st.none())
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=3
)
pairs = st.lists(st.tuples(texts, values), max_size=5)


def spelled(items: list[tuple[str, Any]], blank: str, ascii_only: bool) -> str:
    """A line that keeps what stands twice."""
    dump = lambda value: json.dumps(value, ensure_ascii=ascii_only)  # noqa: E731
    return "{" + f",{blank}".join(f"{blank}{dump(k)}{blank}:{blank}{dump(v)}" for k, v in items) + f"{blank}}}"


def slowly(line: str, names: list[str]) -> bool:
    mine = [(k, v) for k, v in json.loads(line, object_pairs_hook=list) if k in names]
    nested = any(isinstance(v, list) for _, v in mine)
    return nested or len({k for k, _ in mine}) < len(mine)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(["", ', "who": 7', ', "at": 9'])),
                min_size=1, max_size=6), st.booleans())  # fmt: skip
def test_a_name_that_stands_twice_is_read_alike_whatever_stands_in_other_lines(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, str]], torn: bool
) -> None:
    """The last one counts, as on a topic, also where no other line sends the chunk down the slow road."""
    lines = [f'{{"at": {at}, "who": {who}{more}}}' for at, who, more in rows]
    file = Path(tmp_path_factory.mktemp("twice")) / "e.ndjson"
    file.write_text("\n".join([*lines, *(["no record"] if torn else [])]) + "\n")
    found = [row for frame in Events(str(file), ["at", "who"]) for row in frame.rows()]
    expected = [tuple(json.loads(line)[name] for name in ("at", "who")) for line in lines]
    assert found[: len(lines)] == expected


SCHEMA = {"who": pl.String(), "at": pl.Float64(), "age": pl.Int64(), "ok": pl.Boolean(), "grö": pl.String()}
KINDS = {"who": str, "at": (int, float), "age": int, "ok": bool, "grö": str}
keys = st.sampled_from([*SCHEMA, "else", "wh", "whom", ""])
scalars = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=9),
    st.text("ad* é0", max_size=5),
    st.integers(-(10**20), 10**20),
    st.integers(-99, 99),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-(10**9), 10**9, allow_nan=False, places=7).map(float),
    st.booleans(),
    st.none(),
    st.just([1]),
)


@example([([("else", [1]), ("else", "")], "", False)], False)
@settings(max_examples=300)
@given(st.lists(st.tuples(st.lists(st.tuples(keys, scalars), max_size=6), st.sampled_from(["", " ", "\t", "\r"]),
                          st.booleans()), min_size=1, max_size=4), st.booleans())  # fmt: skip
def test_lines_of_the_plain_kind_are_read_as_a_decoder_reads_them(lines: list[Any], ends: bool) -> None:
    """Or they are left to one."""
    made = [spelled(*line) for line in lines]
    frame = Flat(SCHEMA).read("\n".join(made).encode() + b"\n" * ends)
    records = [json.loads(line) for line in made]
    if frame is not None:
        assert frame.schema == pl.Schema(SCHEMA)
        assert frame.rows() == [tuple(record.get(name) for name in SCHEMA) for record in records]
        assert not any(slowly(line, list(SCHEMA)) for line in made)
    elif all("\\" not in line and "e" not in line.replace("else", "").replace("true", "").replace("false", "")
             for line in made):  # fmt: skip
        assert any(slowly(line, list(SCHEMA)) for line in made) or not all(map(plainly, made))


def plainly(line: str) -> bool:
    """Whether every value is a single one, of its column's type, and no number is a long one."""
    for name, value in json.loads(line, object_pairs_hook=list):  # also where a name stands twice
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        digits = sum(character.isdigit() for character in repr(value)) if number else 0
        if isinstance(value, list) or digits > 15 or value == 0:
            return False
        right = KINDS.get(name, object)
        if not isinstance(value, right) or (isinstance(value, bool) and right is not bool and right is not object):
            return False
    return True


@pytest.mark.parametrize(
    "line",
    ["", "{", "{}x", '{"age": 01}', '{"age": 1.}', '{"age": .5}', '{"age": -}', '{"age": 1e3}', '{"age": 1.5}',
     '{"age": tru}', '{"ok": nul', '{"who": "a\\n"}', '{"who": "a', '{"who" "a"}', '{"who": "a",}', '{"age": 1 2}',
     '{"age": "1"}', '{"who": 1}', '{"ok": 1}', '{"age": true}', '{"who": "a", "who": "b"}', '{"else": {"who": 1}}',
     "[1]", '{"who": "\x01"}', '{"age": 9223372036854775808}', '{who: 1}', '{"age": --1}', '\ufeff{"age": 1}'],
)  # fmt: skip
def test_other_lines_are_left_to_a_decoder(line: str) -> None:
    plain_line = b'{"age": 1, "who": "x"}\n'
    assert Flat(SCHEMA).read(plain_line * 2) is not None
    for lines in (line.encode() + b"\n", plain_line + line.encode() + b"\n", line.encode() + b"\n" + plain_line):
        assert Flat(SCHEMA).read(lines) is None
    assert line == "" or Flat(SCHEMA).read(plain_line + line.encode()) is None


def test_without_a_column_nothing_is_read() -> None:
    assert Flat({}).read(b'{"who": "ada"}\n') is None


def test_bytes_that_are_no_text_are_left_to_a_decoder() -> None:
    assert Flat(SCHEMA).read('{"who": "é"}\n'.encode()) is not None
    assert Flat(SCHEMA).read(b'{"who": "\xc3"}\n') is None


@settings(max_examples=500)
@given(st.integers(0, 10**18 - 1), st.integers(0, 18))
@example(16000000000272772, 7)
@example(9007199254740993, 0)  # just between two numbers
def test_decimals_are_rounded_as_python_rounds_them(digits: int, decimals: int) -> None:
    text = f"{digits:0{decimals + 1}}"
    text = f"{text[:-decimals]}.{text[-decimals:]}" if decimals else text
    frame = Flat({"at": pl.Float64()}).read(f'{{"at": {text}}}\n{{"at": -{text}}}\n'.encode())
    short = len(text.replace(".", "")) <= 18
    if frame is not None:
        assert frame["at"].to_list() == [float(text), -float(text)]
    else:
        assert not short or digits == 0 or digits > 2**53


def test_both_roads_of_events_read_the_same(tmp_path: Path) -> None:
    """A chunk of plain lines, and the same beside one line that sends them all to the other reader."""
    lines = [f'{{"at": {at / 7:.6f}, "who": "u{at % 5}", "n": {at}, "x": null}}' for at in range(50)]
    plain_file, other = tmp_path / "plain.ndjson", tmp_path / "other.ndjson"
    plain_file.write_text("\n".join(lines) + "\n")
    other.write_text("\n".join([*lines, '{"who": "\\u00e9"}']))
    columns = ["who", "at", "n", "x"]
    first, second = (pl.concat(Events(str(file), columns)) for file in (plain_file, other))
    assert first.equals(second.head(50))
    assert second["who"][50] == "é"
