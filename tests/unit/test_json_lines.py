"""Where a fast reader and a decoder of JSON would not read the same, beside a slow twin; and that events are one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.connect.events import Events
from shoal.connect.ndjson import Keys

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


@settings(max_examples=300)
@given(st.lists(st.tuples(pairs, st.sampled_from(["", " ", "\t"]), st.booleans()), min_size=1, max_size=4), st.data())
def test_what_must_be_decoded_is_found_beside_a_slow_twin(lines: list[Any], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    made = [spelled(*line) for line in lines]
    found = Keys(names).odd("\n".join(made).encode() + b"\n")
    odd = [at for at, line in enumerate(made) if slowly(line, names)]
    first = odd[0] if odd else len(made)
    # a key that only a decoder can read may be found before: that costs time, never a value
    assert (len(made) if found is None else found) <= first
    doubtful = any("\\" in json.dumps(k) for line, _, _ in lines[:first] for k, _ in line)
    assert doubtful or (found is None and not odd) or found == first


@pytest.mark.parametrize("line", ['{"\\u0077ho": 1}', '{"who": 1, "\\u0077ho": 2}', '{"x": "', '{"wh\\o": 1}'])
def test_spellings_that_only_a_decoder_reads_are_left_to_one(line: str) -> None:
    assert Keys(["who"]).odd(f'{{"who": 0}}\n{line}\n'.encode()) == 1


def test_names_beyond_ascii_that_nobody_asked_for_cost_nothing() -> None:
    assert Keys(["who"]).odd(b'{"gr\\u00f6\\u00dfe": 1, "who": 2}\n') is None


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
