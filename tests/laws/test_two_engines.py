"""RE2 on records and polars' engine on columns mean the same by every pattern that both are given."""

from __future__ import annotations

import sys

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.masks import MASKS, patterns
from shoal.masks.base import Context
from shoal.masks.condition import Condition
from shoal.masks.patterns import finder, for_columns, pattern, replacer

ATOMS = [*"ab1 _-é☃", ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\.", r"\n", r"\b", "^", "$", "[ab]", "[^a1]"]
ATOMS += [
    "[a-c0-9]",
    r"[\w-]",
    r"[\d.]",
    "[]a]",
    "[a-]",
    "[^]]",
    "[é-☃]",
    r"\$",
    r"\[",
    "k",
    "ſ",
    r"\B",
    r"\pL",
    "[[:alpha:]]",
]
atom = st.sampled_from(ATOMS)
quantifier = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?", "??", "{1,2}?"])


def joined(parts):
    return st.lists(st.tuples(parts, quantifier).map("".join), min_size=1, max_size=4).map("".join)


grouped = st.recursive(
    joined(atom),
    lambda inner: joined(
        st.one_of(atom, inner.map(lambda p: f"({p})"), st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"))
    ),
    max_leaves=6,
)
patterned = st.tuples(st.sampled_from(["", "", "(?i)"]), grouped).map("".join)
texts = st.text(alphabet="aAbB1 _-.\n$[]éÉ☃kK\u212asSſ²٣", max_size=12)


def accepted(text):
    try:
        return pattern(text) is not None
    except ValueError:
        return False


@settings(max_examples=400, deadline=None)
@given(patterned, st.lists(texts, min_size=1, max_size=6))
def test_both_roads_replace_and_match_alike(find, values):
    if not accepted(find):
        return
    mask = MASKS.decode({"use": "replace", "find": find, "by": "<$1\\1>"}).start(Context(type="str"))
    column = pl.DataFrame({"v": values})
    assert column.select(mask.expression(pl.col("v"))).to_series().to_list() == [mask.one(v) for v in values]
    test = Condition(matches=find)
    told = column.select(test.express({None: pl.col("v")}, {None: "str"})).to_series().to_list()
    assert told == [test.test({None: 0})((v,)) for v in values]
    # and both as the published wrapper of the engine does it
    assert [mask.one(v) for v in values] == [pattern(find).sub(lambda _: "<$1\\1>", v) for v in values]


def test_the_usual_patterns_run_in_the_engine_of_columns():
    for usual in (
        "[0-9]{3,}",
        r"\b\d{5}\b",
        r"(?i)ward \d+",
        r"[\w.+-]+@[\w-]+\.[a-z]{2,}",
        "(?:Mr|Mrs) [A-Z][a-z]+",
        "☃+",
    ):
        assert for_columns(usual) is not None, usual
    for other in (r"\pL+", "[[:alpha:]]", "a*", r"\Ba", "(?s).", "(a*)+", "(?i)é", "[a&&b]", "a{,2}", r"\x41", "a++"):
        assert for_columns(other) is None, other


@pytest.mark.parametrize(
    "part", [r"\d", r"\w", r"\s", ".", "[^a]", r"\W", "(?i)[a-z]", "(?i)k", "(?i)[^s]", "(?i)[^a-z]"]
)
def test_every_character_of_unicode_is_in_the_same_classes(part):
    every = "".join(chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000)
    part = f"(?i)(?:{part[4:]})+" if part.startswith("(?i)") else f"(?:{part})+"  # fewer matches, each of many
    theirs = pl.Series([every]).str.replace_all(for_columns(part), "")[0]
    assert theirs == replacer(part, "")(every)


def test_a_wrapper_without_its_inner_parts_gives_the_same(monkeypatch):
    quick = replacer("[0-9]{2,}", "#é"), finder("[0-9]{2,}")
    monkeypatch.setattr(patterns, "_match_of", lambda compiled: None)
    slow = replacer("[0-9]{2,}", "#é"), finder("[0-9]{2,}")
    for text in ("", "1", "a12b345é67", "\ud800 12", "no"):
        assert [made(text) for made in quick] == [made(text) for made in slow]


simple = st.lists(
    st.tuples(st.sampled_from([*"ab1 _-", r"\d", r"\w", r"\.", r"\$", "[ab]", "[a-c0-9]", r"[\d_]", "[b ]"]),
              st.sampled_from(["", "{2}"])).map("".join),
    max_size=3,
).map("".join)  # fmt: skip
plain = st.tuples(
    st.sampled_from(["", "^"]),
    simple,
    st.sampled_from(["a", r"\d", "[ab1]"]),
    st.sampled_from(["", "+", "{2,}", "{3}"]),
).map("".join)


@settings(max_examples=400, deadline=None)
@given(plain, st.text(alphabet="ab1 _-.$\n\\", max_size=40), st.sampled_from(["*", "<\\1$1>", "é\ud800"]))
def test_pythons_engine_says_what_re2_says_where_it_is_asked(find, value, by):
    assert patterns._unambiguous(find) is not None
    assert replacer(find, by)(value) == pattern(find).sub(lambda _: by.encode("utf-8", "replace").decode(), value)
    assert finder(find)(value) == (pattern(find).search(value) is not None)


@pytest.mark.parametrize(
    "find",
    ["(a+)+b", "a+b", "a*", "a|b", "a$", r"\s", r"\b", ".", "[^a]", "(?i)a", "a+?", "a++", "a{2,}b", "é", "a{0,}", ""],
)  # fmt: skip
def test_pythons_engine_is_not_asked_what_it_may_try_twice_or_read_otherwise(find):
    assert patterns._unambiguous(find) is None
